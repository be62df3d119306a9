// Convolutions of stride 1, both ways, for the common widths of filters: a thread slides a
// filter along a strip of one line of the picture, which it holds in registers.
#pragma once
#include "conv.cuh"

// Direct says what a block computes: lines of some pictures, columns in strips, channels
// in groups of 8, or 4; and how it holds what it reads, chunk channels at a time: every
// strip has its own copy of the columns that it needs, a line is pitch values, a channel
// plane. Filters lie as arranged has them.
struct Direct {
  int examples;
  int outH, outW, outC, inH, inW, inC;
  int pad;
  int each, rows, parts;    // pictures of a block, lines of each, and blocks that share one
  int strips, groups, chunk, pitch, plane;
  unsigned overColumns, overTall, overQuads, overWide, overLines, overStrips, overRows;  // divide by columns, lines and so on
};

// busy says that a thread has something to compute.
template <int F>
__device__ __forceinline__ bool busy(const Direct &g) {
  const int group = threadIdx.x / (g.each * g.rows * g.strips);
  return group < g.groups && (blockIdx.z * g.groups + group) * F < g.outC;
}

// What a thread asks for at once, where it has few sums, and registers for it: pixels in fours.
#ifndef SLIDE_BATCH
#define SLIDE_BATCH 8
#endif

// slid: the sums of F channels of S pixels, a thread's own, of blocks that begin step lines
// apart. Threads are of lines first, then of strips and of groups of channels. NEAR has
// filters lie behind the pixels in shared memory; others are read through the cache.
// Whoever calls it may use the shared memory after a barrier.
template <int K, int S, int F, bool NEAR>
__device__ __forceinline__ void slid(const Direct &g, int step, float *xs, const float *__restrict__ in, const float *__restrict__ w, float (&acc)[F][S]) {
  const int SEGMENT = (S + K + 2) / 4 * 4, BATCH = F * S <= 52 ? SLIDE_BATCH : 4, TAPS = 2 * K * K;  // of a channel's filters of 8, in fours
  const int t = threadIdx.x, lines = g.each * g.rows, tall = g.rows + K - 1;
  const int example0 = blockIdx.x / g.parts * g.each, row0 = blockIdx.x % g.parts * step;
  const int column0 = blockIdx.y * g.strips * S, channel0 = blockIdx.z * g.groups * F;
  const int fours = (g.chunk + 3) / 4, columns = g.strips * S + K - 1, pixels = g.each * tall * columns * fours;
  const bool vectorIn = g.inC % 4 == 0, works = busy<F>(g);
  const float *from = xs + (t % lines / g.rows * tall + t % lines % g.rows) * g.pitch + t / lines % g.strips * SEGMENT;
  const int first = channel0 + t / (lines * g.strips) * F;  // channel
  const float4 *filter = (const float4 *)w + (size_t)(first / 8) * g.inC * TAPS + first % 8 / 4;
  float4 *near = (float4 *)(xs + g.chunk * g.plane);
#pragma unroll 1
  for (int c0 = 0; c0 < g.inC; c0 += g.chunk) {
    __syncthreads();
#pragma unroll 1
    for (int i0 = t; i0 < pixels; i0 += BATCH * blockDim.x) {
      float v[BATCH][4];
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, p = divided(i, g.overQuads), c = c0 + 4 * (i - p * fours), l = divided(p, g.overColumns), picture = divided(l, g.overTall);
        int fy = row0 + l - picture * tall - g.pad, fx = column0 + p - l * columns - g.pad;
        v[b][0] = v[b][1] = v[b][2] = v[b][3] = 0.f;
        if (i < pixels && example0 + picture < g.examples && (unsigned)fy < (unsigned)g.inH && (unsigned)fx < (unsigned)g.inW)
          load4(in + (((size_t)(example0 + picture) * g.inH + fy) * g.inW + fx) * g.inC + c, v[b], g.inC - c, vectorIn);
      }
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        int i = i0 + b * blockDim.x, p = divided(i, g.overQuads), c = 4 * (i - p * fours), l = divided(p, g.overColumns), j = p - l * columns;
        if (i >= pixels) break;
        int s = j / S, o = j % S;
        float *to = xs + c * g.plane + l * g.pitch + s * SEGMENT + o;
        if (s < g.strips)
#pragma unroll
          for (int k = 0; k < 4; k++)
            if (c + k < g.chunk) to[k * g.plane] = v[b][k];
        if (o < K - 1 && s > 0)
#pragma unroll
          for (int k = 0; k < 4; k++)
            if (c + k < g.chunk) to[k * g.plane + S - SEGMENT] = v[b][k];
      }
    }
    const int some = g.inC - c0 < g.chunk ? g.inC - c0 : g.chunk;
    if (NEAR) {
      const int AT_ONCE = 6, wide = g.groups * F < g.outC - channel0 ? g.groups * F : g.outC - channel0, each = some * TAPS, all = (wide + 7) / 8 * each;
      const float4 *far = (const float4 *)w + ((size_t)(channel0 / 8) * g.inC + c0) * TAPS;
#pragma unroll 1
      for (int i0 = t; i0 < all; i0 += AT_ONCE * blockDim.x) {
        float4 v[AT_ONCE];
#pragma unroll
        for (int b = 0; b < AT_ONCE; b++) {
          const int i = i0 + b * blockDim.x, eight = (unsigned)i / each;
          if (i < all) v[b] = __ldg(far + (size_t)eight * g.inC * TAPS + i - eight * each);
        }
#pragma unroll
        for (int b = 0; b < AT_ONCE; b++) {
          const int i = i0 + b * blockDim.x, eight = (unsigned)i / each;
          if (i < all) near[eight * g.chunk * TAPS + i - eight * each] = v[b];
        }
      }
      filter = near + (first - channel0) / 8 * g.chunk * TAPS + first % 8 / 4;
    }
    __syncthreads();
    if (!works) continue;
#pragma unroll 1
    for (int c = 0; c < some; c++, filter += TAPS)
#pragma unroll(K <= 4 ? K : 1)
      for (int ky = 0; ky < K; ky++) {
        float x[SEGMENT];
#pragma unroll
        for (int j = 0; j < SEGMENT; j += 4) *(float4 *)(x + j) = *(const float4 *)(from + c * g.plane + ky * g.pitch + j);
#pragma unroll
        for (int kx = 0; kx < K; kx++) {
          float f[F];
#pragma unroll
          for (int i = 0; i < F; i += 4) *(float4 *)(f + i) = NEAR ? filter[2 * (ky * K + kx) + i / 4] : __ldg(filter + 2 * (ky * K + kx) + i / 4);
#pragma unroll
          for (int i = 0; i < F; i++)
#pragma unroll
            for (int j = 0; j < S; j++) acc[i][j] += f[i] * x[kx + j];
        }
      }
  }
}

// direct: out = act(sum + bias), times the slope of gate at its output y.
template <int K, int S, int F, bool NEAR>
__device__ __forceinline__ void direct(const Direct &g, const float *__restrict__ in, const float *__restrict__ w, const float *bias, Act act, const float *y,
                                       Act gate, float *out) {
  DYNAMIC(xs);
  float acc[F][S] = {};
  slid<K, S, F, NEAR>(g, g.rows, xs, in, w, acc);
  const int t = threadIdx.x, lines = g.each * g.rows, wide = g.groups * F;
  const int example0 = blockIdx.x / g.parts * g.each, row0 = blockIdx.x % g.parts * g.rows;
  const int column0 = blockIdx.y * g.strips * S, channel0 = blockIdx.z * wide;
  const bool vectorOut = g.outC % 4 == 0, works = busy<F>(g);
  // Where the thread is, computed another way than above: kept, it would take registers.
  int strip = divided(t, g.overLines), line = t - strip * lines, group = divided(strip, g.overStrips), e = divided(line, g.overRows), row = line - e * g.rows;
  strip -= group * g.strips;
  const int c = channel0 + group * F, x0 = column0 + strip * S;
  if (vectorOut && gate.kind < 3) {  // straight from the registers
    if (!works || row0 + row >= g.outH || example0 + e >= g.examples) return;
    const float below = act.kind == 1 ? 0.f : act.kind == 2 ? act.slope : 1.f, shut = gate.kind == 0 ? 1.f : gate.kind == 1 ? 0.f : gate.slope;
    const size_t first = (((size_t)(example0 + e) * g.outH + row0 + row) * g.outW + x0) * g.outC + c;
#pragma unroll
    for (int h = 0; h < F; h += 4) {
      if (c + h >= g.outC) break;
      float add[4] = {};
      if (bias) load4(bias + c + h, add, 4, false);
#pragma unroll
      for (int j = 0; j < S; j++) {
        if (x0 + j >= g.outW) break;
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
          v[k] = acc[h + k][j] + add[k];
          if (!(v[k] > 0.f)) v[k] = below == 0.f ? 0.f : below * v[k];
        }
        if (y) {
          float4 q = *(const float4 *)(y + first + j * g.outC + h);
          float there[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
          for (int k = 0; k < 4; k++)
            if (!(there[k] > 0.f)) v[k] = shut == 0.f ? 0.f : shut * v[k];
        }
        *(float4 *)(out + first + j * g.outC + h) = make_float4(v[0], v[1], v[2], v[3]);
      }
    }
    return;
  }
  // Through shared memory, half of every strip at a time.
  const int HALF = (S + 1) / 2, all = lines * g.strips * g.groups, quads = wide / 4;
#pragma unroll
  for (int j0 = 0; j0 < S; j0 += HALF) {
    __syncthreads();
    if (works)
#pragma unroll
      for (int j = j0; j < j0 + HALF && j < S; j++)
#pragma unroll
        for (int h = 0; h < F; h += 4)
          ((float4 *)xs)[((j - j0) * (F / 4) + h / 4) * all + t] = make_float4(acc[h][j], acc[h + 1][j], acc[h + 2][j], acc[h + 3][j]);
    __syncthreads();
#pragma unroll 1
    for (int i = t; i < all * (F / 4) * HALF; i += blockDim.x) {
      int p = divided(i, g.overWide), q = i - p * quads, s = p / HALF, j = p % HALF, l = divided(s, g.overStrips);
      s -= l * g.strips;
      int picture = divided(l, g.overRows), fy = row0 + l - picture * g.rows, fx = column0 + s * S + j0 + j, o4 = channel0 + q * 4;
      if (example0 + picture >= g.examples || fy >= g.outH || fx >= g.outW || o4 >= g.outC || j0 + j >= S) continue;
      float4 u = ((const float4 *)xs)[(j * (F / 4) + q % (F / 4)) * all + (q / (F / 4) * g.strips + s) * lines + l];
      float v[4] = {u.x, u.y, u.z, u.w}, add[4] = {}, there[4];
      const size_t o = (((size_t)(example0 + picture) * g.outH + fy) * g.outW + fx) * g.outC + o4;
      if (bias) load4(bias + o4, add, g.outC - o4, false);
      if (y) load4(y + o, there, g.outC - o4, vectorOut);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        v[k] = apply(act, v[k] + add[k]);
        if (y) v[k] = slopeAt(gate, there[k], v[k]);
      }
      store4(out + o, v, g.outC - o4, vectorOut);
    }
  }
}

// No more than 128 registers: warps that wait for one another cost more than what longer
// strips would save.
#define DIRECT(K, S)                                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256, 2) direct_##K##_##S(Direct g, const float *in, const float *w, const float *bias, Act act,        \
                                                                        const float *y, Act gate, float *out) {                                       \
    direct<K, S, 8, false>(g, in, w, bias, act, y, gate, out);                                                                                                  \
  }
DIRECT(2, 10)
DIRECT(3, 8)
DIRECT(3, 9)
DIRECT(3, 10)
DIRECT(4, 8)
DIRECT(4, 9)
DIRECT(5, 9)
DIRECT(8, 9)

// With filters near, threads of fewer warps may have more registers.
#define SLIDES_NEAR(K, S, F, THREADS)                                                                                                                          \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) near_##K##_##S##_##F(Direct g, const float *in, const float *w, const float *bias, Act act,  \
                                                                                const float *y, Act gate, float *out) {                                 \
    direct<K, S, F, true>(g, in, w, bias, act, y, gate, out);                                                                                           \
  }
SLIDES_NEAR(3, 13, 4, 256)
SLIDES_NEAR(4, 13, 4, 256)
