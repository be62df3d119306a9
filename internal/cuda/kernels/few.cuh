// Linear layers of few outputs: most of their work is reading and writing, so that reads are
// of whole lines, and nothing waits for one before the next is on its way.
#pragma once
#include "common.cuh"
#include "dense.cuh"

// fewSlot is where value i of output k lies in a tile of 32 outputs, ROW values each: fours
// change places within a line of 128 bytes by k, so that neither who writes a four of outputs
// nor who reads a four of values waits for others at a bank.
template <int ROW>
__device__ __forceinline__ int fewSlot(int k, int i) {
  return k * ROW + (i ^ (k / 4 % 8 * 4));
}

// fewLoad lays 32 outputs from k0 on of ROW rows into a tile, by 256 threads: 8 threads read
// a row's line. What is not there is 0.
template <int ROW>
__device__ __forceinline__ void fewLoad(float *tile, const float *__restrict__ from, int row0, int rows, int k0, int out, bool vector) {
  const int t = threadIdx.x, k = t % 8 * 4, EACH = ROW / 32;
  float v[EACH][4];
  if (vector) {
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      const int r = row0 + t / 8 + 32 * j;
      float4 q = make_float4(0.f, 0.f, 0.f, 0.f);
      if (r < rows && k0 + k < out) q = *(const float4 *)(from + (size_t)r * out + k0 + k);
      v[j][0] = q.x, v[j][1] = q.y, v[j][2] = q.z, v[j][3] = q.w;
    }
  } else {
#pragma unroll
    for (int j = 0; j < EACH; j++) {
      const int r = row0 + t / 8 + 32 * j;
#pragma unroll
      for (int i = 0; i < 4; i++) v[j][i] = r < rows && k0 + k + i < out ? from[(size_t)r * out + k0 + k + i] : 0.f;
    }
  }
#pragma unroll
  for (int j = 0; j < EACH; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) tile[fewSlot<ROW>(k + i, t / 8 + 32 * j)] = v[j][i];
}

// fewGate takes 4 values through the slope of gate at y. Which gate it is, all threads agree.
__device__ __forceinline__ float4 fewGate(Act gate, const float *y, const float *v) {
  if (gate.kind == 1) return make_float4(y[0] > 0.f ? v[0] : 0.f, y[1] > 0.f ? v[1] : 0.f, y[2] > 0.f ? v[2] : 0.f, y[3] > 0.f ? v[3] : 0.f);
  return make_float4(slopeAt(gate, y[0], v[0]), slopeAt(gate, y[1], v[1]), slopeAt(gate, y[2], v[2]), slopeAt(gate, y[3], v[3]));
}

// few_back: the gradient at the input, times the slope of gate at its output y: 128 inputs of
// 64 examples a block of 256 threads, 8 of 4 each, 32 outputs at a time. The order of every
// sum is dense_back's. AHEAD reads y before anything else, which takes registers.
template <bool AHEAD>
__device__ __forceinline__ void fewBack(const float *__restrict__ d, const float *__restrict__ w, const float *__restrict__ y, Act gate, float *__restrict__ dx, int g, int in, int out) {
  const int INPUTS = 128, EXAMPLES = 64, OUTPUTS = 32;
  __shared__ float4 ws4[OUTPUTS * INPUTS / 4], ds4[OUTPUTS * EXAMPLES / 4];
  const int t = threadIdx.x, tx = t % 16, ty = t / 16, i0 = blockIdx.x * INPUTS, e0 = blockIdx.y * EXAMPLES;
  const bool vectorW = aligned(w) && out % 4 == 0, vectorD = aligned(d) && out % 4 == 0, vector = in % 4 == 0 && aligned(y) && aligned(dx);
  float acc[4][8] = {}, there[4][8] = {};
  auto read = [&](int p) {
    const int e = e0 + ty * 4 + p, i = i0 + tx * 4;
#pragma unroll
    for (int q = 0; q < 2; q++)
      if (gate.kind && e < g && i + q * INPUTS / 2 < in) *(float4 *)(there[p] + 4 * q) = *(const float4 *)(y + (size_t)e * in + i + q * INPUTS / 2);
  };
  if (AHEAD && vector)
#pragma unroll
    for (int p = 0; p < 4; p++) read(p);
#pragma unroll 1
  for (int k0 = 0; k0 < out; k0 += OUTPUTS) {
    if (k0) __syncthreads();
    fewLoad<INPUTS>((float *)ws4, w, i0, in, k0, out, vectorW);
    fewLoad<EXAMPLES>((float *)ds4, d, e0, g, k0, out, vectorD);
    __syncthreads();
#pragma unroll 2
    for (int q = 0; q < OUTPUTS / 4; q++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int k = 4 * q + j;
        const float4 a = ds4[k * EXAMPLES / 4 + (ty ^ q)], u = ws4[k * INPUTS / 4 + (tx ^ q)], v = ws4[k * INPUTS / 4 + INPUTS / 8 + (tx ^ q)];
        const float ar[4] = {a.x, a.y, a.z, a.w}, wr[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
#pragma unroll
        for (int p = 0; p < 4; p++)
#pragma unroll
          for (int i = 0; i < 8; i++) acc[p][i] += ar[p] * wr[i];
      }
  }
  if (vector) {
#pragma unroll
    for (int p = 0; p < 4; p++) {
      const int e = e0 + ty * 4 + p, i = i0 + tx * 4;
      if (!AHEAD) read(p);
#pragma unroll
      for (int q = 0; q < 2; q++)
        if (e < g && i + q * INPUTS / 2 < in) *(float4 *)(dx + (size_t)e * in + i + q * INPUTS / 2) = fewGate(gate, there[p] + 4 * q, acc[p] + 4 * q);
    }
    return;
  }
#pragma unroll
  for (int p = 0; p < 4; p++)
#pragma unroll
    for (int q = 0; q < 8; q++) {
      const int e = e0 + ty * 4 + p, i = i0 + q / 4 * (INPUTS / 2) + tx * 4 + q % 4;
      if (e < g && i < in) dx[(size_t)e * in + i] = slopeAt(gate, gate.kind ? y[(size_t)e * in + i] : 0.f, acc[p][q]);
    }
}

extern "C" __global__ void __launch_bounds__(256) few_back(const float *__restrict__ d, const float *__restrict__ w, const float *__restrict__ y, Act gate, float *__restrict__ dx, int g,
                                                           int in, int out) {
  fewBack<false>(d, w, y, gate, dx, g, in, out);
}

// dense_32: dense_64 of layers of up to 32 outputs: those of 128 examples a block of 128
// threads, 8 x 4 each, 32 inputs at a time. The next ones are on their way meanwhile.
extern "C" __global__ void __launch_bounds__(128) dense_32(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ parts, int g, int in, int out,
                                                           double *__restrict__ squares) {
  const int EXAMPLES = 128, OUTPUTS = 32, INPUTS = 32;
  __shared__ float4 xs4[INPUTS * EXAMPLES / 4], ws4[INPUTS * OUTPUTS / 4];
  float *xs = (float *)xs4;
  const int t = threadIdx.x, tx = t % 8, ty = t / 8, n = tx * 4, e0 = blockIdx.x * EXAMPLES, z = blockIdx.z, from = part(in, z, gridDim.z), to = part(in, z + 1, gridDim.z);
  const bool vectorX = aligned(x) && in % 4 == 0, vectorW = aligned(w) && out % 4 == 0;
  float4 rx[8], rw[2];
  float acc[8][4] = {};
  double square[8] = {};
  auto load = [&](int k0) {
    const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
    const int k = k0 + tx * 4;
    if (vectorX) {
#pragma unroll
      for (int i = 0; i < 8; i++) rx[i] = e0 + ty + 16 * i < g && k < to ? *(const float4 *)(x + (size_t)(e0 + ty + 16 * i) * in + k) : zero;
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const float *p = x + (size_t)(e0 + ty + 16 * i) * in + k;
        const bool is = e0 + ty + 16 * i < g;
        rx[i].x = is && k < to ? p[0] : 0.f, rx[i].y = is && k + 1 < to ? p[1] : 0.f, rx[i].z = is && k + 2 < to ? p[2] : 0.f, rx[i].w = is && k + 3 < to ? p[3] : 0.f;
      }
    }
    if (vectorW) {
#pragma unroll
      for (int i = 0; i < 2; i++) rw[i] = k0 + ty + 16 * i < to && n < out ? *(const float4 *)(w + (size_t)(k0 + ty + 16 * i) * out + n) : zero;
    } else {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float *p = w + (size_t)(k0 + ty + 16 * i) * out + n;
        const bool is = k0 + ty + 16 * i < to;
        rw[i].x = is && n < out ? p[0] : 0.f, rw[i].y = is && n + 1 < out ? p[1] : 0.f, rw[i].z = is && n + 2 < out ? p[2] : 0.f, rw[i].w = is && n + 3 < out ? p[3] : 0.f;
      }
    }
  };
  load(from);
#pragma unroll 1
  for (int k0 = from; k0 < to; k0 += INPUTS) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const float v[4] = {rx[i].x, rx[i].y, rx[i].z, rx[i].w};
#pragma unroll
      for (int j = 0; j < 4; j++) xs[fewSlot<EXAMPLES>(tx * 4 + j, ty + 16 * i)] = v[j];
      if (squares)
#pragma unroll
        for (int j = 0; j < 4; j++) square[i] += (double)v[j] * v[j];
    }
#pragma unroll
    for (int i = 0; i < 2; i++) ws4[t + 128 * i] = rw[i];
    __syncthreads();
    if (k0 + INPUTS < to) load(k0 + INPUTS);
#pragma unroll 2
    for (int q = 0; q < INPUTS / 4; q++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const int k = 4 * q + j;
        const float4 u = xs4[k * EXAMPLES / 4 + (ty ^ q)], v = xs4[k * EXAMPLES / 4 + EXAMPLES / 8 + (ty ^ q)], b = ws4[k * OUTPUTS / 4 + tx];
        const float xr[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w}, wr[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
          for (int m = 0; m < 4; m++) acc[i][m] += xr[i] * wr[m];
      }
  }
  float *put = parts + (size_t)z * g * out;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int e = e0 + i / 4 * (EXAMPLES / 2) + ty * 4 + i % 4;
    if (e < g && n < out) store4(put + (size_t)e * out + n, acc[i], out - n, out % 4 == 0);
  }
  if (squares)
#pragma unroll
    for (int i = 0; i < 8; i++) {  // 8 threads side by side had an example
      for (int o = 1; o < 8; o *= 2) square[i] += __shfl_xor_sync(~0u, square[i], o);
      if (tx == 0 && e0 + ty + 16 * i < g) squares[(size_t)z * g + e0 + ty + 16 * i] = square[i];
    }
}

// dense_sums_32: dense_sums_64 of layers of up to 32 outputs: those of 128 inputs a block of
// 128 threads, 8 x 4 each, 32 examples at a time. The next ones are on their way meanwhile.
extern "C" __global__ void __launch_bounds__(128) dense_sums_32(const float *__restrict__ weights, Linears all, int g) {
  const int INPUTS = 128, OUTPUTS = 32, EXAMPLES = 32;
  __shared__ float4 xs4[EXAMPLES * INPUTS / 4], ds4[EXAMPLES * OUTPUTS / 4];
  __shared__ float ws[SUM_MOST];
  const Linear &l = all.of[linearOf(all)];
  const float *__restrict__ x = l.x, *__restrict__ d = l.d;
  const int t = threadIdx.x, tx = t % 8, ty = t / 8, in = l.in, out = l.out, rows = in + l.bias, down = (rows + INPUTS - 1) / INPUTS, b = blockIdx.x - l.first, z = b / down;
  const int m0 = b % down * INPUTS, m = m0 + t % 32 * 4, n = tx * 4, from = part(g, z, l.split), to = part(g, z + 1, l.split);
  const bool vectorX = aligned(x) && in % 4 == 0, vectorD = aligned(d) && out % 4 == 0;
  float4 rx[8], rd[2];
  float acc[8][4] = {};
  for (int i = t; i < to - from; i += 128) ws[i] = weights[from + i];
  __syncthreads();
  auto load = [&](int e0) {
    const float4 zero = make_float4(0.f, 0.f, 0.f, 0.f);
    bool x1[8], d1[2];
#pragma unroll
    for (int i = 0; i < 8; i++) x1[i] = e0 + 4 * i + t / 32 < to && ws[e0 + 4 * i + t / 32 - from] != 0.f;
#pragma unroll
    for (int i = 0; i < 2; i++) d1[i] = e0 + 16 * i + t / 8 < to && ws[e0 + 16 * i + t / 8 - from] != 0.f;
    if (vectorX) {
#pragma unroll
      for (int i = 0; i < 8; i++) rx[i] = x1[i] && m < in ? *(const float4 *)(x + (size_t)(e0 + 4 * i + t / 32) * in + m) : zero;
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const float *p = x + (size_t)(e0 + 4 * i + t / 32) * in + m;
        rx[i].x = x1[i] && m < in ? p[0] : 0.f, rx[i].y = x1[i] && m + 1 < in ? p[1] : 0.f;
        rx[i].z = x1[i] && m + 2 < in ? p[2] : 0.f, rx[i].w = x1[i] && m + 3 < in ? p[3] : 0.f;
      }
    }
    if (vectorD) {
#pragma unroll
      for (int i = 0; i < 2; i++) rd[i] = d1[i] && n < out ? *(const float4 *)(d + (size_t)(e0 + 16 * i + t / 8) * out + n) : zero;
    } else {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float *p = d + (size_t)(e0 + 16 * i + t / 8) * out + n;
        rd[i].x = d1[i] && n < out ? p[0] : 0.f, rd[i].y = d1[i] && n + 1 < out ? p[1] : 0.f;
        rd[i].z = d1[i] && n + 2 < out ? p[2] : 0.f, rd[i].w = d1[i] && n + 3 < out ? p[3] : 0.f;
      }
    }
  };
  load(from);
#pragma unroll 1
  for (int e0 = from; e0 < to; e0 += EXAMPLES) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (m + 4 > in) {  // from the last input on: 1, for biases
        if (m >= in) rx[i].x = 1.f;
        if (m + 1 >= in) rx[i].y = 1.f;
        if (m + 2 >= in) rx[i].z = 1.f;
        rx[i].w = 1.f;
      }
      xs4[t + 128 * i] = rx[i];
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int e = e0 + 16 * i + t / 8;
      const float w = e < to ? ws[e - from] : 0.f;
      ds4[t + 128 * i] = make_float4(rd[i].x * w, rd[i].y * w, rd[i].z * w, rd[i].w * w);
    }
    __syncthreads();
    if (e0 + EXAMPLES < to) load(e0 + EXAMPLES);
#pragma unroll 8
    for (int k = 0; k < EXAMPLES; k++) {
      const float4 u = xs4[k * INPUTS / 4 + ty], v = xs4[k * INPUTS / 4 + INPUTS / 8 + ty], q = ds4[k * OUTPUTS / 4 + tx];
      const float xr[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w}, dr[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] += xr[i] * dr[j];
    }
  }
  float *put = l.parts + (size_t)z * rows * out;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int r = m0 + i / 4 * (INPUTS / 2) + ty * 4 + i % 4;
    if (r < rows && n < out) store4(put + (size_t)r * out + n, acc[i], out - n, out % 4 == 0);
  }
}
