// Convolutions of stride 1 whose outputs nobody reads but a max-pool of windows of 2x2: what
// lies between both stays in the block.
#pragma once
#include "direct.cuh"
#include "pooling.cuh"

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
  takeLargest(p, zs, wide, quads, blockIdx.x / g.parts, blockIdx.x % g.parts * p.lines, channel0, g.outC, act, after, out, which);
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
