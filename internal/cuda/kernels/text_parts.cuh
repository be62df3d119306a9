// Texts of 64 words whose rows stay in two parts of float16 (two_parts.cuh) between one product
// and the next, so that tensor cores read both sides of every product where copies have laid
// them. An example's rows, 64 of so many columns, are eights of columns by eights of rows, of 128
// bytes, a row's eight values side by side: all first parts, then all second ones. So lie both
// sides of a product over columns, and of one over rows. Every 32 columns of an example have a
// scale of their own, and what takes it back is kept beside them.
#pragma once
#include "groups.cuh"

enum { TEXT = 64, TEXT_EIGHT = 8 * TEXT, TEXT_SCALED = 32, TEXT_COLUMNS = 128 };

// Parts is where rows lie so.
struct Parts {
  unsigned short *values;
  float *backs;
  int columns;
  __device__ __forceinline__ unsigned short *of(int e) const { return values + (size_t)e * 2 * TEXT * columns; }
  __device__ __forceinline__ float *backsOf(int e) const { return backs + (size_t)e * (columns / TEXT_SCALED); }
};

// TextSum is a thread's part of 64 rows and 128 columns: of columns 8j to 8j + 7, number j%8 of
// half j/8, what GroupSum has.
typedef GroupSum TextSum[2];

// Group is four warps that have an example's rows, and where they meet.
enum { GROUP_ROOM = 2 * 4 * TEXT_COLUMNS + 8 };
struct Group {
  int t, lane, warp;
  Barrier *meets;
  float *room;  // shared: of what they meet about, and 8 values behind it of which is the largest
  unsigned phase;
  __device__ __forceinline__ Group(Barrier *at, float *shared) : t(threadIdx.x % 128), lane(threadIdx.x % 32), warp(threadIdx.x % 128 / 32), meets(at), room(shared), phase(0) {}
  // meet waits for the others of the group.
  __device__ __forceinline__ void meet() {
#ifdef EMULATED
    arrive(meets);
    await(meets, phase);
#else
    asm volatile("bar.sync %0, 128;" ::"r"(threadIdx.x / 128 + 1) : "memory");
#endif
    phase ^= 1;
  }
  // most is the largest that a thread has; it meets once, and takes turns in two places.
  __device__ __forceinline__ float most(float v) {
    float *at = room + 2 * 4 * TEXT_COLUMNS + phase * 4;
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    if (lane == 0) at[warp] = v;
    meet();
    return fmaxf(fmaxf(at[0], at[1]), fmaxf(at[2], at[3]));
  }
  // row and column are where a thread's value c of eight columns, number j, lies.
  __device__ __forceinline__ int row(int h) const { return warp * 16 + lane / 4 + 8 * h; }
  __device__ __forceinline__ int column(int j) const { return 8 * j + lane % 4 * 2; }
};

// two are values that nobody writes meanwhile.
__device__ __forceinline__ float2 two(const float *from) { return __ldg((const float2 *)from); }

// ofRow adds what the four lanes have that share a row.
__device__ __forceinline__ float ofRow(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  return v + __shfl_xor_sync(~0u, v, 2);
}

// putParts writes columns n*128 and on of an example, taken apart by a scale.
__device__ __forceinline__ void putParts(const Group &g, const TextSum &v, const Parts &to, int e, int n, Scale scale) {
  unsigned short *own = to.of(e) + n * (TEXT_COLUMNS / 8) * TEXT_EIGHT + g.warp * 128 + g.lane / 4 * 8 + g.lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < TEXT_COLUMNS / 8; j++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      unsigned parts[TWO];
      divideTwo(v[j / 8][j % 8][2 * h] * scale.by, v[j / 8][j % 8][2 * h + 1] * scale.by, parts);
      *(unsigned *)(own + j * TEXT_EIGHT + h * 64) = parts[0];
      *(unsigned *)(own + TEXT * to.columns + j * TEXT_EIGHT + h * 64) = parts[1];
    }
  if (g.t < TEXT_COLUMNS / TEXT_SCALED) to.backsOf(e)[n * (TEXT_COLUMNS / TEXT_SCALED) + g.t] = scale.back;
}

// putParts of the scale that fits what is written.
__device__ __forceinline__ void putParts(Group &g, const TextSum &v, const Parts &to, int e, int n) {
  float size = 0.f;
#pragma unroll
  for (int j = 0; j < TEXT_COLUMNS / 8; j++) size = fmaxf(size, largest(v[j / 8][j % 8][0], v[j / 8][j % 8][1], v[j / 8][j % 8][2], v[j / 8][j % 8][3]));
  putParts(g, v, to, e, n, scaleOf(bitsOf(g.most(size)) >> 23));
}

// Laid is a side of a product in shared memory: how many values the next eight of k, and the next
// eight lines or columns, are on; where the second part is. ACROSS, an eight has lines side by
// side, and otherwise k.
template <int K8, int LINE8, bool ACROSS>
struct Laid {
  const unsigned short *at;
  int part;
#ifdef EMULATED
  float value(int p, int line, int k) const { return emu_wide(at[p * part + k / 8 * K8 + line / 8 * LINE8 + (ACROSS ? k % 8 * 8 + line % 8 : line % 8 * 8 + k % 8)]); }
#else
  __device__ __forceinline__ unsigned long long described(int p, int step) const {
    return (unsigned long long)((sharedAt(at + p * part + step * 2 * K8) >> 4) & 0x3fff) | (unsigned long long)(K8 * 2 >> 4) << 16 | (unsigned long long)(LINE8 * 2 >> 4) << 32;
  }
#endif
};

#ifdef EMULATED
// startText begins the product of 64 lines and 128 columns, or 64 of both, over STEPS times 16 of k:
// three products of parts. ON, it is added to what was started last of the same sum.
template <int HALVES, int STEPS, bool ON, class A, class B>
inline void startText(float *sum, const A &a, const B &b) {
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  float left[2][TWO][16 * STEPS], right[TWO][16 * STEPS];
  static thread_local float values[64];
  memcpy(values, sum, 4 * 32 * HALVES);
  if (ON) emu_last(sum, values, 32 * HALVES);
  for (int h = 0; h < 2; h++)
    for (int p = 0; p < TWO; p++)
      for (int k = 0; k < 16 * STEPS; k++) left[h][p][k] = a.value(p, warp * 16 + lane / 4 + 8 * h, k);
  for (int j = 0; j < 16 * HALVES; j++) {
    for (int p = 0; p < TWO; p++)
      for (int k = 0; k < 16 * STEPS; k++) right[p][k] = b.value(p, 8 * (j / 2) + lane % 4 * 2 + j % 2, k);
    for (int h = 0; h < 2; h++) {
      double s = 0;
      for (int k = 0; k < 16 * STEPS; k++) s += (double)left[h][1][k] * right[0][k] + (double)left[h][0][k] * right[1][k] + (double)left[h][0][k] * right[0][k];
      float &to = values[4 * (j / 2) + 2 * h + j % 2];
      to = ON ? to + (float)s : (float)s;
    }
  }
  emu_pend(sum, values, 32 * HALVES);
}
#else
#define TEXT_SUM_OPERANDS(s) GROUP_SUM_OPERANDS(s[0]), GROUP_SUM_OPERANDS(s[1])
template <bool ADDS, bool LEFT, bool RIGHT>
__device__ __forceinline__ void textOne(TextSum &s, unsigned long long a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "%64, %65, adds, 1, 1, %67, %68;}"
      : TEXT_SUM_OPERANDS(s)
      : "l"(a), "l"(b), "n"(ADDS), "n"(LEFT), "n"(RIGHT));
}
template <bool ADDS, bool LEFT, bool RIGHT>
__device__ __forceinline__ void textOne(GroupSum &s, unsigned long long a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, adds, 1, 1, %35, %36;}"
      : GROUP_SUM_OPERANDS(s)
      : "l"(a), "l"(b), "n"(ADDS), "n"(LEFT), "n"(RIGHT));
}
template <int STEPS, bool ON, bool LEFT, bool RIGHT, class Sum, class A, class B>
__device__ __forceinline__ void textProducts(Sum &s, const A &a, const B &b) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    if (i == 0 && !ON)
      textOne<false, LEFT, RIGHT>(s, a.described(1, i), b.described(0, i));
    else
      textOne<true, LEFT, RIGHT>(s, a.described(1, i), b.described(0, i));
    textOne<true, LEFT, RIGHT>(s, a.described(0, i), b.described(1, i));
    textOne<true, LEFT, RIGHT>(s, a.described(0, i), b.described(0, i));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
#endif

// textStart begins such a product of a sum that is not there before textArrived<LEFT>: LEFT products
// that were started after it may still be on their way.
template <int STEPS, bool ON, int KA, int LA, bool LEFT, int KB, int LB, bool RIGHT>
__device__ __forceinline__ void textStart(TextSum &s, const Laid<KA, LA, LEFT> &a, const Laid<KB, LB, RIGHT> &b) {
#ifdef EMULATED
  startText<2, STEPS, ON>(&s[0][0][0], a, b);
#else
  textProducts<STEPS, ON, LEFT, RIGHT>(s, a, b);
#endif
}
template <int STEPS, bool ON, int KA, int LA, bool LEFT, int KB, int LB, bool RIGHT>
__device__ __forceinline__ void textStart(GroupSum &s, const Laid<KA, LA, LEFT> &a, const Laid<KB, LB, RIGHT> &b) {
#ifdef EMULATED
  startText<1, STEPS, ON>(&s[0][0], a, b);
#else
  textProducts<STEPS, ON, LEFT, RIGHT>(s, a, b);
#endif
}
template <int LEFT>
__device__ __forceinline__ void textArrived() {
#ifdef EMULATED
  emu_deliver(LEFT);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#endif
}
template <int LEFT>
__device__ __forceinline__ void textArrived(GroupSum &s) {
  textArrived<LEFT>();
#ifndef EMULATED
#pragma unroll
  for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(s[j][c])::"memory");
#endif
}
template <int LEFT>
__device__ __forceinline__ void textArrived(TextSum &s) {
  textArrived<LEFT>(s[0]);
#ifndef EMULATED
#pragma unroll
  for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(s[1][j][c])::"memory");
#endif
}
