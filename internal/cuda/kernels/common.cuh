// What all kernels share. Every sum has a fixed order: no atomics (but in whole.cuh, whose sums are exact), so that one device
// gives the same bits for the same input.
#pragma once
#ifdef EMULATED
#include "emu/emu.h"
#else
// DYNAMIC is the shared memory that a launch asks for.
#define DYNAMIC(name)           \
  extern __shared__ float4 name##4[]; \
  float *name = (float *)name##4
#endif

#ifdef EMULATED
inline float oneOver(float v) { return 1.f / v; }
#else
// oneOver is 1/v, one unit off at the most.
__device__ __forceinline__ float oneOver(float v) {
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}
#endif

// Activation as the host has it: 0 none, 1 relu, 2 leaky relu, 3 sigmoid, 4 tanh.
struct Act {
  int kind;
  float slope;
};

// apply is for none, relu and leaky relu; the others are applied by activate.
__device__ __forceinline__ float apply(Act a, float v) { return v > 0.f || (a.kind != 1 && a.kind != 2) ? v : a.kind == 1 ? 0.f : a.slope * v; }

// slopeAt is the activation's derivative, from its output y, times d.
__device__ __forceinline__ float slopeAt(Act a, float y, float d) {
  float f = a.kind >= 3 ? (a.kind == 3 ? y * (1.f - y) : 1.f - y * y) : y > 0.f || a.kind == 0 ? 1.f : a.slope;
  return a.kind == 1 && !(y > 0.f) ? 0.f : d * f;
}

__device__ __forceinline__ double warpSum(double v) {
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// blockSum adds v over a block of up to 256 threads, whole warps; thread 0 has the result.
__device__ __forceinline__ double blockSum(double v) {
  __shared__ double parts[8];
  v = warpSum(v);
  __syncthreads();  // of a sum before
  if ((threadIdx.x & 31) == 0) parts[threadIdx.x >> 5] = v;
  __syncthreads();
  double s = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < (int)blockDim.x / 32; i++) s += parts[i];
  return s;
}

// Room is where a layer keeps what its examples' gradients are: kept has the gradients
// themselves, keptRow values an example, and squares the squared norms of their parts,
// squaresRow an example.
struct Room {
  float *kept;
  double *squares;
  int keptRow, squaresRow, kept0, squares0;
};

// aligned says that float4s can be read from p on.
__device__ __forceinline__ bool aligned(const void *p) { return ((size_t)p & 15) == 0; }

// divided is n/d for over = 2^32/d rounded up, 0 for d = 1, where n*d is below 2^32.
__device__ __forceinline__ int divided(int n, unsigned over) { return over ? (int)__umulhi((unsigned)n, over) : n; }

// store4 puts 4 values that lie side by side, n of them there.
__device__ __forceinline__ void store4(float *to, const float *v, int n, bool vector) {
  if (vector && n >= 4) {
    *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (j < n) to[j] = v[j];
}

// load4 is its reverse.
__device__ __forceinline__ void load4(const float *from, float *v, int n, bool vector) {
  if (vector && n >= 4) {
    float4 q = *(const float4 *)from;
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) v[j] = j < n ? from[j] : 0.f;
}

// geluAt is x*(1 + tanh(u))/2 with u = sqrt(2/pi)*(x + 0.044715*x^3), and its slope: of
// e = exp(-2u), (1 + tanh(u))/2 is 1/(1 + e), and what is left to 1 e times that. Where e were
// too large for that, both are 0.
__device__ __forceinline__ float geluExp(float x) { return expf(fminf(-x * (1.59576912160573072f + 0.07135481627260025f * x * x), 80.f)); }
__device__ __forceinline__ float geluAt(float x) { return x * oneOver(1.f + geluExp(x)); }
__device__ __forceinline__ float geluSlope(float x) {
  float e = geluExp(x), s = oneOver(1.f + e);
  return s * (1.f + e * s * x * (1.59576912160573072f + 0.21406444881780075f * x * x));
}

// slope is slopeAt, and that of a gelu (5), at its input.
__device__ __forceinline__ float slope(Act a, const float *at, size_t o, float d) {
  return a.kind == 0 ? d : a.kind == 5 ? d * geluSlope(at[o]) : slopeAt(a, at[o], d);
}

// fetch is four values that lie side by side, some of which are there.
template <bool VEC>
__device__ __forceinline__ float4 fetch(const float *from, int some) {
  if (VEC) return some > 0 ? *(const float4 *)from : make_float4(0.f, 0.f, 0.f, 0.f);
  return make_float4(some > 0 ? from[0] : 0.f, some > 1 ? from[1] : 0.f, some > 2 ? from[2] : 0.f, some > 3 ? from[3] : 0.f);
}

// Matrix is one side of a product. It lies along the sum, [line][k], or across it, [k][line].
struct Matrix {
  const float *values;
  int step;  // from one line, or one k, to the next
};
