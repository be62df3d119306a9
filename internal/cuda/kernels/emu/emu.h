// Enough of CUDA's C++ to run the kernels on a processor: a block's threads are fibers, a
// barrier switches to the next one. Slow; for tests without a device.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static
#define DYNAMIC(name) float *name = emu_shared

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct dim3 {
  unsigned x, y, z;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern dim3 blockIdx, threadIdx, gridDim, blockDim;
extern float *emu_shared;
extern double emu_exchange[1024];
void __syncthreads();
void emu_warp();
bool __syncthreads_or(bool is);
inline void __syncwarp() { emu_warp(); }

// What is on its way: a thread's sums, which are there when they are delivered, all but the last
// few, copies to shared memory, which are there when their barrier's phase has ended, and no
// sooner; until then there are no numbers; and copies from it, which are read when somebody waits for
// that, or at the end.
void emu_pend(float *to, const float *sum, int count);
void emu_last(const float *of, float *sum, int count);  // of those on their way
void emu_deliver(unsigned left);
void emu_barrier(unsigned long long *b, unsigned arrivals);
void emu_arrive(unsigned long long *b);
void emu_announce(unsigned long long *b, unsigned bytes);
void emu_bring(unsigned long long *b, void *to, const void *from, unsigned bytes);
void emu_copy(void *to, const void *from);
void emu_copied(unsigned long long *b);
void emu_wait(unsigned long long *b, unsigned phase);
void emu_send(void *to, const void *from, unsigned bytes);
void emu_sent();

// What the lanes of a warp have laid side by side for a product, or an address.
extern unsigned emu_sides[1024][18];
extern const void *emu_rows[1024];

inline double __shfl_xor_sync(unsigned, double v, int mask) {
  unsigned t = threadIdx.x;
  emu_exchange[t] = v;
  emu_warp();
  v = emu_exchange[t ^ mask];
  emu_warp();
  return v;
}
inline double __shfl_sync(unsigned, double v, int lane) {
  unsigned t = threadIdx.x;
  emu_exchange[t] = v;
  emu_warp();
  v = emu_exchange[t / 32 * 32 + lane];
  emu_warp();
  return v;
}
inline double atomicAdd(double *to, double v) {
  double was = *to;
  return *to = was + v, was;
}
template <class T> inline T __ldg(const T *p) { return *p; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }

// Rounded one by one, as on a device that is told not to join them.
inline float __fmul_rn(float a, float b) { volatile float p = a * b; return p; }
inline float __fadd_rn(float a, float b) { volatile float s = a + b; return s; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { volatile double s = a + b; return s; }
inline double __dmul_rn(double a, double b) { volatile double p = a * b; return p; }

inline unsigned __ballot_sync(unsigned, bool is) {
  unsigned t = threadIdx.x, mask = 0;
  emu_exchange[t] = is;
  emu_warp();
  for (unsigned i = 0; i < 32; i++) mask |= (emu_exchange[t / 32 * 32 + i] != 0 ? 1u : 0u) << i;
  emu_warp();
  return mask;
}
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(unsigned v) { return __builtin_ffs((int)v); }
