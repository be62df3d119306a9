// Gradients of the filters of convolutions of stride 1, one example a block, for the common
// widths: a thread slides along lines of the picture and has all its filter's columns.
#pragma once
#include "pooled.cuh"

// Taps says what a block of taps computes: channels of what the convolution reads, times
// groups of 8 of what it computes, in parts that share the picture's lines; and how it
// holds both, rows lines at a time: what is read by channels of plane values in lines of
// pitch, the gradients at what is computed in lines of wide pixels.
struct Taps {
  int outH, outW, outC, inH, inW, inC;
  int pad, bias;  // bias: gradients of biases, too
  int channels, groups, parts, rows;
  int wide, pitch, plane;
  unsigned overQuads, overColumns, overGroups, overWide;
};

// Given is the gradient at what a convolution computes, as it lies.
struct Given {
  const float *d;
  enum { BATCH = 4 };  // that a thread asks for at once
  __device__ __forceinline__ void operator()(const Taps &g, int e, int y, int x, int c, float *q) const {
    load4(d + (((size_t)e * g.outH + y) * g.outW + x) * g.outC + c, q, g.outC - c, g.outC % 4 == 0);
  }
};

// GivenPooled is that behind a pool of what it computes.
struct GivenPooled {
  const float *d;
  Unpooling pool;
  enum { BATCH = 2 };
  __device__ __forceinline__ void operator()(const Taps &g, int e, int y, int x, int c, float *q) const { unpooled(pool, d, e, y, x, c, g.outC, q); }
};

// taps: a thread has 8 filters' values of one channel read, in KY of K lines.
template <int K, int KY, class From>
__device__ __forceinline__ void taps(const Taps &g, const float *__restrict__ x, const From &given, const Room &room) {
  const int F = 8, Q = 1 + (K + 2) / 4, KG = K / KY, SUMS = F * KY * K, BATCH = 4;
  DYNAMIC(xs);
  __shared__ float columnSums[256];
  float *ds = xs + g.channels * g.plane;
  const int t = threadIdx.x, e = blockIdx.x, deep = g.groups * F, quads = (g.channels + 3) / 4, columns = g.wide + K - 1;
  const int out0 = blockIdx.y * deep, in0 = blockIdx.z * g.channels;
  const int each = g.channels * KG * g.groups, part = t / each;
  const int channel = t % g.channels, ky = t / g.channels % KG * KY, group = t / (g.channels * KG) % g.groups;
  const bool vectorIn = g.inC % 4 == 0, vectorOut = g.outC % 4 == 0, biases = g.bias && blockIdx.z == 0;
  const int beside = blockDim.x / deep;  // threads that share the sum of a bias
  const float *picture = x + (size_t)e * g.inH * g.inW * g.inC;
  const bool EXACT = SUMS <= 64;  // with more, registers are short
  const int whole = EXACT ? g.outW / 4 * 4 : g.wide;
  float acc[F][KY * K] = {}, sum = 0.f;
#pragma unroll 1
  for (int y0 = 0; y0 < g.outH; y0 += g.rows) {
    const int rows = g.outH - y0 < g.rows ? g.outH - y0 : g.rows;
    const int pixels = (rows + K - 1) * columns * quads, gradients = rows * g.wide * (deep / 4);
    __syncthreads();
#pragma unroll 1
    for (int i0 = t; i0 < pixels; i0 += BATCH * blockDim.x) {
      float v[BATCH][4];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, p = divided(i, g.overQuads), c = in0 + 4 * (i - p * quads), l = divided(p, g.overColumns);
        int fy = y0 + l - g.pad, fx = p - l * columns - g.pad;
        v[b][0] = v[b][1] = v[b][2] = v[b][3] = 0.f;
        if (i < pixels && (unsigned)fy < (unsigned)g.inH && (unsigned)fx < (unsigned)g.inW) load4(picture + (fy * g.inW + fx) * g.inC + c, v[b], g.inC - c, vectorIn);
      }
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, p = divided(i, g.overQuads), c = 4 * (i - p * quads), l = divided(p, g.overColumns);
        if (i >= pixels) break;
#pragma unroll
        for (int k = 0; k < 4; k++)
          if (c + k < g.channels) xs[(c + k) * g.plane + l * g.pitch + p - l * columns] = v[b][k];
      }
    }
#pragma unroll 1
    for (int i0 = t; i0 < gradients; i0 += From::BATCH * blockDim.x) {
      float4 v[From::BATCH];
#pragma unroll
      for (int b = 0; b < From::BATCH; b++) {
        int i = i0 + b * blockDim.x, p = divided(i, g.overGroups), c = out0 + 4 * (i - p * (deep / 4)), l = divided(p, g.overWide), fx = p - l * g.wide;
        float q[4] = {};
        if (i < gradients && fx < g.outW && c < g.outC) given(g, e, y0 + l, fx, c, q);
        v[b] = make_float4(q[0], q[1], q[2], q[3]);
      }
#pragma unroll
      for (int b = 0; b < From::BATCH; b++)
        if (i0 + b * blockDim.x < gradients) ((float4 *)ds)[i0 + b * blockDim.x] = v[b];
    }
    __syncthreads();
    if (biases && t < beside * deep)
#pragma unroll 4
      for (int i = t; i < rows * g.wide * deep; i += beside * deep) sum += ds[i];
    if (part >= g.parts) continue;
#pragma unroll 1
    for (int l = part; l < rows; l += g.parts) {
      const float *from = xs + channel * g.plane + (l + ky) * g.pitch, *slope = ds + l * g.wide * deep + group * F;
      float w[KY][4 * Q];
#pragma unroll
      for (int k = 0; k < Q - 1; k++)
#pragma unroll
        for (int i = 0; i < KY; i++) *(float4 *)(w[i] + 4 * k) = *(const float4 *)(from + i * g.pitch + 4 * k);
#pragma unroll 1
      for (int x0 = 0; x0 < whole; x0 += 4 * Q, from += 4 * Q)
#pragma unroll
        for (int u = 0; u < Q; u++) {
          if (x0 + 4 * u >= whole) break;
#pragma unroll
          for (int i = 0; i < KY; i++) *(float4 *)(w[i] + 4 * ((u + Q - 1) % Q)) = *(const float4 *)(from + i * g.pitch + 4 * (u + Q - 1));
#pragma unroll
          for (int v = 0; v < 4; v++, slope += deep) {
            float f[F];
            *(float4 *)f = *(const float4 *)slope, *(float4 *)(f + 4) = *(const float4 *)(slope + 4);
#pragma unroll
            for (int i = 0; i < KY; i++)
#pragma unroll
              for (int kx = 0; kx < K; kx++)
#pragma unroll
                for (int j = 0; j < F; j++) acc[j][i * K + kx] += f[j] * w[i][(4 * u + v + kx) % (4 * Q)];
          }
        }
      if (!EXACT || whole == g.outW) continue;
      from = xs + channel * g.plane + (l + ky) * g.pitch + whole;  // up to three pixels more
#pragma unroll
      for (int k = 0; k < Q; k++)
#pragma unroll
        for (int i = 0; i < KY; i++) *(float4 *)(w[i] + 4 * k) = *(const float4 *)(from + i * g.pitch + 4 * k);
#pragma unroll
      for (int v = 0; v < 3; v++, slope += deep) {
        if (whole + v >= g.outW) break;
        float f[F];
        *(float4 *)f = *(const float4 *)slope, *(float4 *)(f + 4) = *(const float4 *)(slope + 4);
#pragma unroll
        for (int i = 0; i < KY; i++)
#pragma unroll
          for (int kx = 0; kx < K; kx++)
#pragma unroll
            for (int j = 0; j < F; j++) acc[j][i * K + kx] += f[j] * w[i][v + kx];
      }
    }
  }
  // The parts' sums: the upper half of them to the lower, until one is left.
  for (int left = g.parts; left > 1;) {
    const int half = (left + 1) / 2, moved = (left - half) * each, to = part < half ? t : t - half * each;
    __syncthreads();
    if (part >= half && part < left)
#pragma unroll
      for (int j = 0; j < SUMS; j++) xs[j * moved + to] = acc[j % F][j / F];
    __syncthreads();
    if (part < left - half)
#pragma unroll
      for (int j = 0; j < SUMS; j++) acc[j % F][j / F] += xs[j * moved + to];
    left = half;
  }
  double square = 0;
  float *kept = room.kept + (size_t)e * room.keptRow + room.kept0;
  const int in = in0 + channel, out = out0 + group * F;
  if (part == 0 && in < g.inC && out < g.outC)
#pragma unroll
    for (int k = 0; k < KY * K; k++)
#pragma unroll
      for (int h = 0; h < F; h += 4) {
        float v[4] = {acc[h][k], acc[h + 1][k], acc[h + 2][k], acc[h + 3][k]};
        const int some = g.outC - out - h;
        if (some <= 0) break;
        store4(kept + ((size_t)(ky * K + k) * g.inC + in) * g.outC + out + h, v, some, vectorOut);
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (j < some) square += (double)v[j] * v[j];
      }
  if (biases) {
    columnSums[t] = sum;
    __syncthreads();
    if (t < deep && out0 + t < g.outC) {
      for (int i = 1; i < beside; i++) sum += columnSums[i * deep + t];
      kept[(size_t)K * K * g.inC * g.outC + out0 + t] = sum;
      square += (double)sum * sum;
    }
  }
  square = blockSum(square);
  if (t == 0) room.squares[(size_t)e * room.squaresRow + room.squares0 + blockIdx.y * gridDim.z + blockIdx.z] = square;
}

#define TAPS(K, KY)                                                                                                                        \
  extern "C" __global__ void __launch_bounds__(256, 2) taps_##K##_##KY(Taps g, const float *x, const float *d, Room room) {                \
    taps<K, KY>(g, x, Given{d}, room);                                                                                                     \
  }                                                                                                                                        \
  extern "C" __global__ void __launch_bounds__(256, 2) taps_pooled_##K##_##KY(Taps g, const float *x, const float *d, Unpooling p, Room room) { \
    taps<K, KY>(g, x, GivenPooled{d, p}, room);                                                                                            \
  }
TAPS(2, 2)
TAPS(3, 3)
TAPS(3, 1)
TAPS(4, 2)
TAPS(5, 1)
TAPS(8, 1)
