// Convolutions of stride 1, both ways, for the common widths of filters: a thread slides a
// filter along a strip of one line of the picture, which it holds in registers.
#pragma once
#include "conv.cuh"

// Direct says what a block computes: lines of some pictures, columns in strips, channels
// in groups of 8; and how it holds what it reads, chunk channels at a time: every strip
// has its own copy of the columns that it needs, a line is pitch values, a channel plane.
struct Direct {
  int examples;
  int outH, outW, outC, inH, inW, inC;
  int pad, flip;            // flip: the filter is read from its end, as the way back asks for
  int each, rows, parts;    // pictures of a block, lines of each, and blocks that share one
  int strips, groups, chunk, pitch, plane;
  unsigned overColumns, overTall, overWide, overChunk, overStrips, overRows;  // divide by columns, lines and so on
};

// direct: out = act(sum + bias), times the slope of gate at its output y. A thread has 8
// channels of S pixels.
template <int K, int S>
__device__ __forceinline__ void direct(const Direct &g, const float *__restrict__ in, const float *__restrict__ w, const float *bias, Act act, const float *y,
                                       Act gate, float *out) {
  const int F = 8, SEGMENT = (S + K + 2) / 4 * 4, BATCH = 4;
  DYNAMIC(xs);
  float *ws = xs + g.chunk * g.plane;
  const int t = threadIdx.x, lines = g.each * g.rows, tall = g.rows + K - 1, wide = g.groups * F;
  const int line = t % lines, strip = t / lines % g.strips, group = t / (lines * g.strips);
  const int e = line / g.rows, row = line % g.rows;
  const int example0 = blockIdx.x / g.parts * g.each, row0 = blockIdx.x % g.parts * g.rows;
  const int column0 = blockIdx.y * g.strips * S, channel0 = blockIdx.z * wide;
  const int shift = g.chunk >> 3, columns = (g.strips * S + K - 1) << shift, pixels = g.each * tall * columns, weights = K * K * g.chunk * (wide / 4);
  const bool vectorIn = g.inC % 4 == 0, vectorOut = g.outC % 4 == 0, vectorFilter = vectorOut && aligned(w);
  const float *from = xs + (e * tall + row) * g.pitch + strip * SEGMENT, *filter = ws + group * F;
  float acc[F][S] = {};
#pragma unroll 1
  for (int c0 = 0; c0 < g.inC; c0 += g.chunk) {
    __syncthreads();
#pragma unroll 1
    for (int i0 = t; i0 < pixels; i0 += BATCH * blockDim.x) {
      float v[BATCH][4];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, l = divided(i, g.overColumns), j = i - l * columns, c = c0 + 4 * (j & ((1 << shift) - 1));
        int picture = divided(l, g.overTall), fy = row0 + l - picture * tall - g.pad, fx = column0 + (j >> shift) - g.pad;
        v[b][0] = v[b][1] = v[b][2] = v[b][3] = 0.f;
        if (i < pixels && example0 + picture < g.examples && (unsigned)fy < (unsigned)g.inH && (unsigned)fx < (unsigned)g.inW)
          load4(in + (((size_t)(example0 + picture) * g.inH + fy) * g.inW + fx) * g.inC + c, v[b], g.inC - c, vectorIn);
      }
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, l = divided(i, g.overColumns), j = i - l * columns, c = 4 * (j & ((1 << shift) - 1));
        if (i >= pixels) break;
        j >>= shift;
        int s = j / S, o = j % S;
        float *to = xs + c * g.plane + l * g.pitch + s * SEGMENT + o;
#pragma unroll
        for (int k = 0; k < 4; k++) {
          if (c + k >= g.chunk) break;
          if (s < g.strips) to[k * g.plane] = v[b][k];
          if (o < K - 1 && s > 0) to[k * g.plane + S - SEGMENT] = v[b][k];
        }
      }
    }
#pragma unroll 1
    for (int i0 = t; i0 < weights; i0 += BATCH * blockDim.x) {
      float4 v[BATCH];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, r = divided(i, g.overWide), o = channel0 + 4 * (i - r * (wide / 4)), tap = divided(r, g.overChunk), c = c0 + r - tap * g.chunk;
        float q[4] = {};
        if (i < weights && c < g.inC && o < g.outC) load4(w + ((size_t)(g.flip ? K * K - 1 - tap : tap) * g.inC + c) * g.outC + o, q, g.outC - o, vectorFilter);
        v[b] = make_float4(q[0], q[1], q[2], q[3]);
      }
#pragma unroll
      for (int b = 0; b < BATCH; b++)
        if (i0 + b * blockDim.x < weights) ((float4 *)ws)[i0 + b * blockDim.x] = v[b];
    }
    __syncthreads();
    if (group >= g.groups) continue;
    const int some = g.inC - c0 < g.chunk ? g.inC - c0 : g.chunk;
#pragma unroll 1
    for (int c = 0; c < some; c++)
#pragma unroll(K <= 4 ? K : 1)
      for (int ky = 0; ky < K; ky++) {
        float x[SEGMENT];
#pragma unroll
        for (int j = 0; j < SEGMENT; j += 4) *(float4 *)(x + j) = *(const float4 *)(from + c * g.plane + ky * g.pitch + j);
#pragma unroll
        for (int kx = 0; kx < K; kx++) {
          const float4 *p = (const float4 *)(filter + ((ky * K + kx) * g.chunk + c) * wide);
          float f[F];
          *(float4 *)f = p[0], *(float4 *)(f + 4) = p[1];
#pragma unroll
          for (int i = 0; i < F; i++)
#pragma unroll
            for (int j = 0; j < S; j++) acc[i][j] += f[i] * x[kx + j];
        }
      }
  }
  // Through shared memory, half of every strip at a time, so that threads side by side
  // write what lies side by side.
  const int HALF = (S + 1) / 2, busy = lines * g.strips * g.groups, quads = wide / 4;
#pragma unroll
  for (int j0 = 0; j0 < S; j0 += HALF) {
    __syncthreads();
    if (group < g.groups)
#pragma unroll
      for (int j = j0; j < j0 + HALF && j < S; j++)
#pragma unroll
        for (int h = 0; h < F; h += 4)
          ((float4 *)xs)[((j - j0) * 2 + h / 4) * busy + t] = make_float4(acc[h][j], acc[h + 1][j], acc[h + 2][j], acc[h + 3][j]);
    __syncthreads();
#pragma unroll 1
    for (int i = t; i < busy * 2 * HALF; i += blockDim.x) {
      int p = divided(i, g.overWide), q = i - p * quads, s = p / HALF, j = p % HALF, l = divided(s, g.overStrips);
      s -= l * g.strips;
      int picture = divided(l, g.overRows), fy = row0 + l - picture * g.rows, fx = column0 + s * S + j0 + j, c = channel0 + q * 4;
      if (example0 + picture >= g.examples || fy >= g.outH || fx >= g.outW || c >= g.outC || j0 + j >= S) continue;
      float4 u = ((const float4 *)xs)[(j * 2 + (q & 1)) * busy + ((q >> 1) * g.strips + s) * lines + l];
      float v[4] = {u.x, u.y, u.z, u.w}, add[4] = {}, there[4];
      const size_t o = (((size_t)(example0 + picture) * g.outH + fy) * g.outW + fx) * g.outC + c;
      if (bias) load4(bias + c, add, g.outC - c, false);
      if (y) load4(y + o, there, g.outC - c, vectorOut);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        v[k] = apply(act, v[k] + add[k]);
        if (y) v[k] = slopeAt(gate, there[k], v[k]);
      }
      store4(out + o, v, g.outC - c, vectorOut);
    }
  }
}

// Strips of more than 10 pixels need more than 128 registers.
#define DIRECT(K, S)                                                                                                                       \
  extern "C" __global__ void __launch_bounds__(S > 10 ? 192 : 256, 2) direct_##K##_##S(Direct g, const float *in, const float *w, const float *bias, Act act, \
                                                                                       const float *y, Act gate, float *out) {             \
    direct<K, S>(g, in, w, bias, act, y, gate, out);                                                                                       \
  }
DIRECT(2, 12)
DIRECT(3, 9)
DIRECT(3, 10)
DIRECT(3, 11)
DIRECT(3, 12)
DIRECT(3, 13)
DIRECT(3, 14)
DIRECT(4, 9)
DIRECT(4, 12)
DIRECT(4, 13)
DIRECT(5, 9)
DIRECT(5, 12)
DIRECT(8, 9)
