// What all kernels share. Every sum has a fixed order: no atomics, so that one device
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
