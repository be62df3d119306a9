// Convolutions of stride 1 that read few channels, such as a picture's: most of the time goes
// into writing what they make, and so threads that lie side by side write side by side.
#pragma once
#include "common.cuh"

struct Thin {
  int outH, outW, outC, inH, inW, inC;
  int pad;
  unsigned overQuads, overGroups;  // divide by fours of channels, and of pixels of a line
};

// thin: out = act(sum + bias). A thread has 4 channels of 4 pixels of a line; filters lie in
// shared memory as they are. A row of blocks is of one example.
template <int K>
__device__ __forceinline__ void thin(const Thin &g, const float *__restrict__ in, const float *__restrict__ w, const float *bias, Act act, float *out) {
  DYNAMIC(ws);
  for (int i = threadIdx.x; i < K * K * g.inC * g.outC; i += blockDim.x) ws[i] = w[i];
  __syncthreads();
  const int e = blockIdx.y, quads = g.outC / 4, groups = (g.outW + 3) / 4, i = blockIdx.x * blockDim.x + threadIdx.x;
  const int p = divided(i, g.overQuads), o = 4 * (i - p * quads), line = divided(p, g.overGroups), x0 = 4 * (p - line * groups);
  if (line >= g.outH) return;
  const float *picture = in + (size_t)e * g.inH * g.inW * g.inC;
  float acc[4][4] = {};
#pragma unroll
  for (int ky = 0; ky < K; ky++) {
    const int y = line + ky - g.pad;
    if ((unsigned)y >= (unsigned)g.inH) continue;
#pragma unroll 1
    for (int c = 0; c < g.inC; c++) {
      float x[K + 3];
#pragma unroll
      for (int j = 0; j < K + 3; j++) {
        const int at = x0 + j - g.pad;
        x[j] = (unsigned)at < (unsigned)g.inW ? __ldg(picture + ((size_t)y * g.inW + at) * g.inC + c) : 0.f;
      }
#pragma unroll
      for (int kx = 0; kx < K; kx++) {
        const float4 f = *(const float4 *)(ws + ((ky * K + kx) * g.inC + c) * g.outC + o);
#pragma unroll
        for (int j = 0; j < 4; j++) acc[j][0] += f.x * x[kx + j], acc[j][1] += f.y * x[kx + j], acc[j][2] += f.z * x[kx + j], acc[j][3] += f.w * x[kx + j];
      }
    }
  }
  float add[4] = {};
  if (bias) load4(bias + o, add, 4, false);
  float *to = out + (((size_t)e * g.outH + line) * g.outW + x0) * g.outC + o;
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (x0 + j < g.outW)
      *(float4 *)(to + j * g.outC) = make_float4(apply(act, acc[j][0] + add[0]), apply(act, acc[j][1] + add[1]), apply(act, acc[j][2] + add[2]), apply(act, acc[j][3] + add[3]));
}

#define THIN(K)                                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(256) thin_##K(Thin g, const float *in, const float *w, const float *bias, Act act, float *out) { \
    thin<K>(g, in, w, bias, act, out);                                                                                                            \
  }
THIN(3)
THIN(5)
