// Convolutions of stride 1 whose outputs nobody reads but a max-pool of windows of 2x2: what
// lies between both stays in the block.
#pragma once
#include "direct.cuh"

// Pooling says what a block of pooled makes of its lines, which are whole: so many pooled
// ones, of windows stride apart; and how it holds what they are made of, in lines of pitch
// values.
struct Pooling {
  int outH, outW;  // of the pool
  int lines, stride, pitch;
  unsigned overQuads, overWidth;
};

// SHUT stands where a window's number would: a ReLU lets nothing through, and so no gradient.
enum { SHUT = 255 };

// Unpooling is how gradients go back through such a pool, of windows stride apart.
struct Unpooling {
  int outH, outW, stride;
  const unsigned char *which;
};

// unpooled: the gradient at 4 channels from c on of pixel y, x, of example e: that of the
// windows that took it, in their order. d is the gradient behind the pool.
__device__ __forceinline__ void unpooled(const Unpooling &p, const float *__restrict__ d, int e, int y, int x, int c, int channels, float *s) {
  const bool vector = channels % 4 == 0;
  s[0] = s[1] = s[2] = s[3] = 0.f;
#pragma unroll
  for (int n = 3; n >= 0; n--) {  // the last window that has the pixel has it in its first place
    const int fy = y - n / 2, fx = x - n % 2, oy = p.stride == 1 ? fy : fy >> 1, ox = p.stride == 1 ? fx : fx >> 1;
    if (fy < 0 || fx < 0 || oy >= p.outH || ox >= p.outW || oy * p.stride != fy || ox * p.stride != fx) continue;
    const size_t o = (((size_t)e * p.outH + oy) * p.outW + ox) * channels + c;
    float v[4];
    load4(d + o, v, channels - c, vector);
    if (vector) {
      const unsigned took = *(const unsigned *)(p.which + o);
#pragma unroll
      for (int k = 0; k < 4; k++)
        if ((took >> 8 * k & 255) == n) s[k] += v[k];
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k < channels - c && p.which[o + k] == n) s[k] += v[k];
    }
  }
}

// pooled: out = after(the largest act(sum + bias) of every window, the first of equals); which
// says where that was. A block is of one picture.
template <int K, int S, int F, bool NEAR>
__device__ __forceinline__ void pooled(const Direct &g, const Pooling &p, const float *__restrict__ in, const float *__restrict__ w, const float *bias, Act act,
                                       Act after, float *out, unsigned char *which) {
  DYNAMIC(zs);
  float acc[F][S] = {};
  slid<K, S, F, NEAR>(g, p.lines * p.stride, zs, in, w, acc);
  const int t = threadIdx.x, wide = g.groups * F, channel0 = blockIdx.z * wide, quads = wide / 4;
  int strip = divided(t, g.overLines), line = t - strip * g.rows, group = divided(strip, g.overStrips);
  strip -= group * g.strips;
  __syncthreads();
  if (busy<F>(g)) {
    const int c = channel0 + group * F, x0 = strip * S;
    float *to = zs + line * p.pitch + x0 * wide + group * F;
#pragma unroll
    for (int h = 0; h < F; h += 4) {
      float add[4] = {};
      if (bias && c + h < g.outC) load4(bias + c + h, add, g.outC - c - h, false);
#pragma unroll
      for (int j = 0; j < S; j++)
        if (x0 + j < g.outW)
          *(float4 *)(to + j * wide + h) = make_float4(apply(act, acc[h][j] + add[0]), apply(act, acc[h + 1][j] + add[1]), apply(act, acc[h + 2][j] + add[2]),
                                                       apply(act, acc[h + 3][j] + add[3]));
    }
  }
  __syncthreads();
  const int e = blockIdx.x / g.parts, line0 = blockIdx.x % g.parts * p.lines, lines = p.outH - line0 < p.lines ? p.outH - line0 : p.lines;
  const bool vector = g.outC % 4 == 0;
#pragma unroll 1
  for (int i = t; i < lines * p.outW * quads; i += blockDim.x) {
    const int q = divided(i, p.overQuads), o4 = 4 * (i - q * quads), y = divided(q, p.overWidth), x = q - y * p.outW, some = g.outC - channel0 - o4;
    if (some <= 0) continue;
    const float *z = zs + y * p.stride * p.pitch + x * p.stride * wide + o4;
    float best[4];
    unsigned at[4] = {};
    *(float4 *)best = *(const float4 *)z;
#pragma unroll
    for (int n = 1; n < 4; n++) {
      float v[4];
      *(float4 *)v = *(const float4 *)(z + n / 2 * p.pitch + n % 2 * wide);
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (v[k] > best[k]) best[k] = v[k], at[k] = n;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (act.kind == 1 && !(best[k] > 0.f)) at[k] = SHUT;
      best[k] = apply(after, best[k]);
    }
    const size_t o = (((size_t)e * p.outH + line0 + y) * p.outW + x) * g.outC + channel0 + o4;
    store4(out + o, best, some, vector);
    if (vector)
      *(unsigned *)(which + o) = at[0] | at[1] << 8 | at[2] << 16 | at[3] << 24;
    else
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k < some) which[o + k] = at[k];
  }
}

#define POOLED(K, S)                                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(256, 2) pooled_##K##_##S(Direct g, Pooling p, const float *in, const float *w, const float *bias, Act act, \
                                                                        Act after, float *out, unsigned char *which) {                                 \
    pooled<K, S, 8, false>(g, p, in, w, bias, act, after, out, which);                                                                                      \
  }
POOLED(2, 10)
POOLED(3, 8)
POOLED(3, 9)
POOLED(4, 9)
POOLED(5, 9)
POOLED(8, 9)

// With filters near, as in direct.cuh.
#define POOLED_NEAR(K, S, F, THREADS)                                                                                                                     \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) pooled_near_##K##_##S##_##F(Direct g, Pooling p, const float *in, const float *w,              \
                                                                                       const float *bias, Act act, Act after, float *out, unsigned char *which) { \
    pooled<K, S, F, true>(g, p, in, w, bias, act, after, out, which);                                                                                     \
  }
POOLED_NEAR(3, 12, 8, 192)
POOLED_NEAR(8, 9, 4, 352)
