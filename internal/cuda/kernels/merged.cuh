// The way back of a convolution that reads a max-pool of 2x2 of the first one: what the
// gradients of the first one's filter are made of never leaves the block. A block is of one
// picture.
#pragma once
#include "taps.cuh"

// merged: the gradient at the pool, d gathered as g says; through the pool, whose windows'
// numbers say where to; and the gradients of the filter and biases of the convolution of x
// before it, as p says. A thread has 4 channels of S pixels of the pool, then 8 filters' values
// of one channel read, in one of K1 lines. Of the squares that there is room for the first is
// their norm's, the others are 0.
template <int K, int S, int K1>
__device__ __forceinline__ void merged(const Direct &g, const Taps &p, const Unpooling &pool, const float *__restrict__ d, const float *__restrict__ w,
                                       const float *__restrict__ x, const Room &room, int squares) {
  const int F = 4, T = 8, Q = 1 + (K1 + 2) / 4, BATCH = 5;
  DYNAMIC(zs);
  __shared__ float columnSums[256];
  const int t = threadIdx.x, e = blockIdx.x;
  const int pixel = (p.groups * (T / 4) | 1) * 4;  // from one to the next of the gradient before the pool: in different banks
  {
    float acc[F][S] = {};
    slid<K, S, F, true>(g, g.rows, zs, d, w, acc);
    int strip = divided(t, g.overLines), line = t - strip * g.rows, group = divided(strip, g.overStrips);
    strip -= group * g.strips;
    const int c = group * F, x0 = strip * S;
    const bool works = busy<F>(g);
    unsigned took[S];
#pragma unroll
    for (int j = 0; j < S; j++) {
      took[j] = SHUT * 0x01010101u;
      if (works && x0 + j < g.outW) took[j] = *(const unsigned *)(pool.which + (((size_t)e * g.outH + line) * g.outW + x0 + j) * g.outC + c);
    }
    __syncthreads();
#pragma unroll 4
    for (int i = t; i < p.outH * p.wide * (pixel / 4); i += blockDim.x) ((float4 *)zs)[i] = make_float4(0.f, 0.f, 0.f, 0.f);
    float *xs = zs + p.outH * p.wide * pixel;
    const float *picture = x + (size_t)e * p.inH * p.inW * p.inC;
    const int columns = p.wide + K1 - 1, pixels = (p.outH + K1 - 1) * columns * p.inC;
#pragma unroll 4
    for (int i = t; i < pixels; i += blockDim.x) {
      const int q = divided(i, p.overQuads), from = i - q * p.inC, l = divided(q, p.overColumns), column = q - l * columns, fy = l - p.pad, fx = column - p.pad;
      xs[from * p.plane + l * p.pitch + column] = (unsigned)fy < (unsigned)p.inH && (unsigned)fx < (unsigned)p.inW ? picture[(fy * p.inW + fx) * p.inC + from] : 0.f;
    }
    // Windows that took the same place of theirs have pixels of their own: one place after
    // another, in the order that a pixel's windows have.
#pragma unroll 1
    for (int n = 3; n >= 0; n--) {
      __syncthreads();
      if (!works) continue;
      float *to = zs + ((line * pool.stride + n / 2) * p.wide + x0 * pool.stride + n % 2) * pixel + c;
#pragma unroll
      for (int j0 = 0; j0 < S; j0 += BATCH) {
        float v[BATCH][4];
#pragma unroll
        for (int j = 0; j < BATCH; j++)
          if (j0 + j < S && x0 + j0 + j < g.outW) *(float4 *)v[j] = *(const float4 *)(to + (j0 + j) * pool.stride * pixel);
#pragma unroll
        for (int j = 0; j < BATCH; j++)
          if (j0 + j < S && x0 + j0 + j < g.outW) {
#pragma unroll
            for (int k = 0; k < F; k++)
              if ((took[j0 + j] >> 8 * k & 255) == n) v[j][k] += acc[k][j0 + j];
            *(float4 *)(to + (j0 + j) * pool.stride * pixel) = *(const float4 *)v[j];
          }
      }
    }
  }
  __syncthreads();
  const float *xs = zs + p.outH * p.wide * pixel;
  const int deep = p.groups * T, beside = blockDim.x / deep;  // threads that share the sum of a bias
  float sum = 0.f;
  if (p.bias && t < beside * deep)
#pragma unroll 4
    for (int i = t / deep; i < p.outH * p.wide; i += beside) sum += zs[i * pixel + t % deep];
  const int each = p.channels * K1 * p.groups, part = t / each;
  const int channel = t % p.channels, ky = t / p.channels % K1, group = t / (p.channels * K1) % p.groups;
  const int whole = p.outW / 4 * 4;
  float acc[T][K1] = {};
  if (part < p.parts)
#pragma unroll 1
    for (int l = part; l < p.outH; l += p.parts) {
      const float *from = xs + channel * p.plane + (l + ky) * p.pitch, *slope = zs + l * p.wide * pixel + group * T;
      float v[4 * Q];
#pragma unroll
      for (int k = 0; k < Q - 1; k++) *(float4 *)(v + 4 * k) = *(const float4 *)(from + 4 * k);
#pragma unroll 1
      for (int x0 = 0; x0 < whole; x0 += 4 * Q, from += 4 * Q)
#pragma unroll
        for (int u = 0; u < Q; u++) {
          if (x0 + 4 * u >= whole) break;
          *(float4 *)(v + 4 * ((u + Q - 1) % Q)) = *(const float4 *)(from + 4 * (u + Q - 1));
#pragma unroll
          for (int i = 0; i < 4; i++, slope += pixel) {
            float f[T];
            *(float4 *)f = *(const float4 *)slope, *(float4 *)(f + 4) = *(const float4 *)(slope + 4);
#pragma unroll
            for (int kx = 0; kx < K1; kx++)
#pragma unroll
              for (int j = 0; j < T; j++) acc[j][kx] += f[j] * v[(4 * u + i + kx) % (4 * Q)];
          }
        }
      if (whole == p.outW) continue;
      from = xs + channel * p.plane + (l + ky) * p.pitch + whole;  // up to three pixels more
#pragma unroll
      for (int k = 0; k < Q; k++) *(float4 *)(v + 4 * k) = *(const float4 *)(from + 4 * k);
#pragma unroll
      for (int i = 0; i < 3; i++, slope += pixel) {
        if (whole + i >= p.outW) break;
        float f[T];
        *(float4 *)f = *(const float4 *)slope, *(float4 *)(f + 4) = *(const float4 *)(slope + 4);
#pragma unroll
        for (int kx = 0; kx < K1; kx++)
#pragma unroll
          for (int j = 0; j < T; j++) acc[j][kx] += f[j] * v[i + kx];
      }
    }
  // The parts' sums, side by side, and then their own.
  __syncthreads();
  float4 *all = (float4 *)zs;
  if (part < p.parts)
#pragma unroll
    for (int k = 0; k < K1; k++)
#pragma unroll
      for (int h = 0; h < T; h += 4) all[(k * (T / 4) + h / 4) * p.parts * each + t] = make_float4(acc[h][k], acc[h + 1][k], acc[h + 2][k], acc[h + 3][k]);
  columnSums[t] = sum;
  __syncthreads();
  double square = 0;
  float *kept = room.kept + (size_t)e * room.keptRow + room.kept0;
  const bool vector = p.outC % 4 == 0;
#pragma unroll 1
  for (int i = t; i < each * K1 * (T / 4); i += blockDim.x) {
    const int k = i / each, lane = i - k * each, in = lane % p.channels, line = lane / p.channels % K1, out = lane / (p.channels * K1) * T + k % (T / 4) * 4;
    const int some = p.outC - out;
    if (some <= 0) continue;
    float v[4] = {};
    for (int j = 0; j < p.parts; j++) {
      const float4 q = all[(k * p.parts + j) * each + lane];
      v[0] += q.x, v[1] += q.y, v[2] += q.z, v[3] += q.w;
    }
    store4(kept + ((size_t)(line * K1 + k / (T / 4)) * p.inC + in) * p.outC + out, v, some, vector);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (j < some) square += (double)v[j] * v[j];
  }
  if (p.bias && t < deep && t < p.outC) {
    for (int i = 1; i < beside; i++) sum += columnSums[i * deep + t];
    kept[(size_t)K1 * K1 * p.inC * p.outC + t] = sum;
    square += (double)sum * sum;
  }
  square = blockSum(square);
  if (t < squares) room.squares[(size_t)e * room.squaresRow + room.squares0 + t] = t == 0 ? square : 0;
}

// Two blocks of 7 warps have 144 registers a thread.
#define MERGED(K, S, K1)                                                                                                                            \
  extern "C" __global__ void __launch_bounds__(224, 2) merged_##K##_##S##_##K1(Direct g, Taps p, Unpooling pool, const float *d, const float *w,       \
                                                                               const float *x, Room room, int squares) {                            \
    merged<K, S, K1>(g, p, pool, d, w, x, room, squares);                                                                                           \
  }
MERGED(4, 13, 8)
