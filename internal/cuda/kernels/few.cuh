// The way back through linear layers of few outputs: most of it is reading and writing, and
// a block has all that it multiplies by at once.
#pragma once
#include "common.cuh"

// few_back: the gradient at the input, times the slope of gate at its output y: 128 inputs of
// 64 examples a block of 256 threads, 8 of 4 each, 32 outputs at a time. The order of every
// sum is dense_back's.
extern "C" __global__ void __launch_bounds__(256) few_back(const float *__restrict__ d, const float *__restrict__ w, const float *__restrict__ y, Act gate, float *dx, int g, int in,
                                                           int out) {
  const int INPUTS = 128, EXAMPLES = 64, OUTPUTS = 32, DROW = EXAMPLES + 4;
  __shared__ float4 ws4[OUTPUTS * INPUTS / 4], ds4[OUTPUTS * DROW / 4];
  float *ws = (float *)ws4, *ds = (float *)ds4;
  const int t = threadIdx.x, tx = t % 16, ty = t / 16, i0 = blockIdx.x * INPUTS, e0 = blockIdx.y * EXAMPLES;
  const bool vectorW = aligned(w) && out % 4 == 0, vectorD = aligned(d) && out % 4 == 0, vector = in % 4 == 0;
  float acc[4][8] = {};
#pragma unroll 1
  for (int k0 = 0; k0 < out; k0 += OUTPUTS) {
    __syncthreads();
#pragma unroll
    for (int q = t / INPUTS; q < OUTPUTS / 4; q += 256 / INPUTS) {
      const int i = i0 + t % INPUTS, k = k0 + 4 * q;
      float v[4] = {};
      if (i < in && k < out) load4(w + (size_t)i * out + k, v, out - k, vectorW);
#pragma unroll
      for (int j = 0; j < 4; j++) ws[(4 * q + j) * INPUTS + t % INPUTS] = v[j];
    }
#pragma unroll
    for (int q = t / EXAMPLES; q < OUTPUTS / 4; q += 256 / EXAMPLES) {
      const int e = e0 + t % EXAMPLES, k = k0 + 4 * q;
      float v[4] = {};
      if (e < g && k < out) load4(d + (size_t)e * out + k, v, out - k, vectorD);
#pragma unroll
      for (int j = 0; j < 4; j++) ds[(4 * q + j) * DROW + t % EXAMPLES] = v[j];
    }
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < OUTPUTS; k++) {
      float a[4], b[8];
      *(float4 *)a = ds4[k * DROW / 4 + ty];
      *(float4 *)b = ws4[k * INPUTS / 4 + tx], *(float4 *)(b + 4) = ws4[k * INPUTS / 4 + INPUTS / 8 + tx];
#pragma unroll
      for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 8; q++) acc[p][q] += a[p] * b[q];
    }
  }
#pragma unroll
  for (int p = 0; p < 4; p++)
#pragma unroll
    for (int q = 0; q < 2; q++) {
      const int e = e0 + ty * 4 + p, i = i0 + q * (INPUTS / 2) + tx * 4;
      if (e >= g || i >= in) continue;
      const size_t o = (size_t)e * in + i;
      float there[4], r[4];
      load4(y + o, there, in - i, vector);
#pragma unroll
      for (int j = 0; j < 4; j++) r[j] = slopeAt(gate, there[j], acc[p][4 * q + j]);
      store4(dx + o, r, in - i, vector);
    }
}
