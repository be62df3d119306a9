// Texts of 64 words whose rows stay in two parts of float16 (two_parts.cuh) between one product
// and the next, so that tensor cores read both sides of every product where copies have laid
// them. An example's rows, 64 of so many columns, are eights of columns by eights of rows, of 128
// bytes, a row's eight values side by side: all first parts, then all second ones. So lie both
// sides of a product over columns, and of one over rows. Every 32 columns of an example have a
// scale of their own, and what takes it back is kept beside them.
#pragma once
#include "groups.cuh"

enum { TEXT = 64, TEXT_EIGHT = 8 * TEXT, TEXT_SCALED = 32, TEXT_COLUMNS = 128, TEXT_HALF = TEXT_COLUMNS / 2 };

// Parts is where rows lie so.
struct Parts {
  unsigned short *values;
  float *backs;
  int columns;
  __device__ __forceinline__ unsigned short *of(int e) const { return values + (size_t)e * 2 * TEXT * columns; }
  __device__ __forceinline__ float *backsOf(int e) const { return backs + (size_t)e * (columns / TEXT_SCALED); }
};

// TextSum is a thread's part of 64 rows and 64 columns, PairSum of 64 rows and 32 columns, and WideSum of 64
// rows and 128 columns: of every eight columns what GroupSum has.
typedef GroupSum TextSum;
typedef float PairSum[TEXT_SCALED / 8][4];
typedef GroupSum WideSum[2];

// Group is eight warps that have 64 rows and 128 columns of an example, four of them each half of the
// columns, and where they meet.
enum { GROUP = 256, GROUP_WARPS = GROUP / 32, ROOM_MOST = 2 * 4 * TEXT_COLUMNS, ROOM_ROWS = ROOM_MOST + 2 * GROUP_WARPS, GROUP_ROOM = ROOM_ROWS + 2 * 2 * 2 * TEXT };
struct Group {
  int t, lane, warp, half;  // warp is of those that have a half
  Barrier *meets;
  float *room;  // shared: of what they meet about, and behind it of which is the largest, and of rows
  unsigned phase;
  enum { LAYS = false };
  __device__ __forceinline__ Group(Barrier *at, float *shared)
      : t(threadIdx.x % GROUP), lane(threadIdx.x % 32), warp(threadIdx.x % 128 / 32), half(__shfl_sync(~0u, threadIdx.x % GROUP / 128, 0)), meets(at), room(shared), phase(0) {}
  // meet waits for the others of the group.
  __device__ __forceinline__ void meet() {
#ifdef EMULATED
    arrive(meets);
    await(meets, phase);
#else
    asm volatile("bar.sync %0, 256;" ::"r"(threadIdx.x / GROUP + 1) : "memory");
#endif
    phase ^= 1;
  }
  // most is the largest that a thread has; it meets once, and takes turns in two places.
  __device__ __forceinline__ float most(float v) {
    float *at = room + ROOM_MOST + phase * GROUP_WARPS;
    for (int o = 16; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
    if (lane == 0) at[4 * half + warp] = v;
    meet();
#pragma unroll
    for (int i = 0; i < GROUP_WARPS; i++) v = fmaxf(v, at[i]);
    return v;
  }
  // ofRows adds up what the threads have that share a row, of both rows of a thread, once or twice; it
  // meets once, and takes turns in two places.
  template <int N>
  __device__ __forceinline__ void ofRows(float (&v)[N]) {
    float *at = room + ROOM_ROWS + phase * 4 * TEXT + row(0);
#pragma unroll
    for (int i = 0; i < N; i++) {
      v[i] += __shfl_xor_sync(~0u, v[i], 1);
      v[i] += __shfl_xor_sync(~0u, v[i], 2);
      if (lane % 4 == 0) at[(half * 2 + i / 2) * TEXT + i % 2 * 8] = v[i];
    }
    meet();
#pragma unroll
    for (int i = 0; i < N; i++) v[i] += at[((half ^ 1) * 2 + i / 2) * TEXT + i % 2 * 8];
  }
  // row and column are where a thread's value c of eight columns, number j, lies.
  __device__ __forceinline__ int row(int h) const { return warp * 16 + lane / 4 + 8 * h; }
  __device__ __forceinline__ int column(int j) const { return half * TEXT_HALF + 8 * j + lane % 4 * 2; }
};

// Layer is a group that lays 128 columns in parts in shared memory before they are written.
struct Layer : Group {
  enum { LAYS = true };
  unsigned short *lies;  // where
  float back;            // what takes them back
  const float *beside;   // where rows lie that an end reads
  __device__ __forceinline__ Layer(Barrier *at, float *shared) : Group(at, shared), lies(nullptr), back(0.f), beside(nullptr) {}
};

// two are values that nobody writes while a kernel runs.
__device__ __forceinline__ float2 two(const float *from) { return __ldg((const float2 *)from); }

// ofRow adds what the four lanes have that share a row.
__device__ __forceinline__ float ofRow(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  return v + __shfl_xor_sync(~0u, v, 2);
}

// layParts has columns n*128 and on of an example be taken apart by a scale, in memory where second parts
// are so many values on.
__device__ __forceinline__ void layParts(const Group &g, const TextSum &v, unsigned short *to, int part, float by) {
  unsigned short *own = to + g.half * (TEXT_HALF / 8) * TEXT_EIGHT + g.warp * 128 + g.lane / 4 * 8 + g.lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      unsigned parts[TWO];
      divideTwo(v[j][2 * h] * by, v[j][2 * h + 1] * by, parts);
      *(unsigned *)(own + j * TEXT_EIGHT + h * 64) = parts[0];
      *(unsigned *)(own + part + j * TEXT_EIGHT + h * 64) = parts[1];
    }
}

// writeParts writes columns n*128 and on of an example, taken apart by a scale.
__device__ __forceinline__ void writeParts(Group &g, const TextSum &v, const Parts &to, int e, int n, Scale scale) {
  if (g.t < TEXT_COLUMNS / TEXT_SCALED) to.backsOf(e)[n * (TEXT_COLUMNS / TEXT_SCALED) + g.t] = scale.back;
  layParts(g, v, to.of(e) + n * (TEXT_COLUMNS / 8) * TEXT_EIGHT, TEXT * to.columns, scale.by);
}
// A layer's place has to be free.
__device__ __forceinline__ void writeParts(Layer &g, const TextSum &v, const Parts &to, int e, int n, Scale scale) {
  unsigned short *at = to.of(e) + n * (TEXT_COLUMNS / 8) * TEXT_EIGHT;
  if (g.t < TEXT_COLUMNS / TEXT_SCALED) to.backsOf(e)[n * (TEXT_COLUMNS / TEXT_SCALED) + g.t] = scale.back;
  layParts(g, v, g.lies, TEXT * TEXT_COLUMNS, scale.by);
  shown();
  g.meet();
  g.back = scale.back;
  if (g.t == 0) {
    for (int p = 0; p < TWO; p++) send(at + (size_t)p * TEXT * to.columns, g.lies + p * TEXT * TEXT_COLUMNS, 2 * TEXT * TEXT_COLUMNS);
    sends();
  }
}

// putParts is writeParts of the scale that fits what is written.
template <class G>
__device__ __forceinline__ void putParts(G &g, const TextSum &v, const Parts &to, int e, int n) {
  float size = 0.f;
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++) size = fmaxf(size, largest(v[j][0], v[j][1], v[j][2], v[j][3]));
  if (G::LAYS && g.t == 0) sent();
  writeParts(g, v, to, e, n, scaleOf(bitsOf(g.most(size)) >> 23));
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
  // What tensor cores need to know: first is of the first part's first 16 of k, the others follow by
  // additions alone. Above 18 bits an address says which block of a cluster it is of.
  __device__ __forceinline__ unsigned first() const { return sharedAt(at) >> 4 & 0x3fff | (K8 * 2 >> 4) << 16; }
  __device__ __forceinline__ unsigned long long described(unsigned first, int p, int step) const {
    unsigned long long d;
    asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "r"(first + ((p * part + step * 2 * K8) * 2 >> 4)), "n"(LINE8 * 2 >> 4));
    return d;
  }
#endif
};

#ifdef EMULATED
// startText begins the product of 64 lines and so many columns, over STEPS times 16 of k: three products of
// parts. ON, it is added to what was started last of the same sum.
template <int COLUMNS, int STEPS, bool ON, class A, class B>
inline void startText(float *sum, const A &a, const B &b) {
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
  float left[2][TWO][16 * STEPS], right[TWO][16 * STEPS];
  static thread_local float values[64];
  memcpy(values, sum, 2 * COLUMNS);
  if (ON) emu_last(sum, values, COLUMNS / 2);
  for (int h = 0; h < 2; h++)
    for (int p = 0; p < TWO; p++)
      for (int k = 0; k < 16 * STEPS; k++) left[h][p][k] = a.value(p, warp * 16 + lane / 4 + 8 * h, k);
  for (int j = 0; j < COLUMNS / 4; j++) {
    for (int p = 0; p < TWO; p++)
      for (int k = 0; k < 16 * STEPS; k++) right[p][k] = b.value(p, 8 * (j / 2) + lane % 4 * 2 + j % 2, k);
    for (int h = 0; h < 2; h++) {
      double s = 0;
      for (int k = 0; k < 16 * STEPS; k++) s += (double)left[h][1][k] * right[0][k] + (double)left[h][0][k] * right[1][k] + (double)left[h][0][k] * right[0][k];
      float &to = values[4 * (j / 2) + 2 * h + j % 2];
      to = ON ? to + (float)s : (float)s;
    }
  }
  emu_pend(sum, values, COLUMNS / 2);
}
#else
#define WIDE_SUM_OPERANDS(s) GROUP_SUM_OPERANDS(s[0]), GROUP_SUM_OPERANDS(s[1])
template <bool ADDS, bool LEFT, bool RIGHT>
__device__ __forceinline__ void textOne(WideSum &s, unsigned long long a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "%64, %65, adds, 1, 1, %67, %68;}"
      : WIDE_SUM_OPERANDS(s)
      : "l"(a), "l"(b), "n"(ADDS), "n"(LEFT), "n"(RIGHT));
}
template <bool ADDS, bool LEFT, bool RIGHT>
__device__ __forceinline__ void textOne(TextSum &s, unsigned long long a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, adds, 1, 1, %35, %36;}"
      : GROUP_SUM_OPERANDS(s)
      : "l"(a), "l"(b), "n"(ADDS), "n"(LEFT), "n"(RIGHT));
}
template <bool ADDS, bool LEFT, bool RIGHT>
__device__ __forceinline__ void textOne(PairSum &s, unsigned long long a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %18, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
      "%16, %17, adds, 1, 1, %19, %20;}"
      : "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]), "+f"(s[1][2]), "+f"(s[1][3]), "+f"(s[2][0]), "+f"(s[2][1]), "+f"(s[2][2]),
        "+f"(s[2][3]), "+f"(s[3][0]), "+f"(s[3][1]), "+f"(s[3][2]), "+f"(s[3][3])
      : "l"(a), "l"(b), "n"(ADDS), "n"(LEFT), "n"(RIGHT));
}
#endif

// textStart begins such a product of a sum that is not there before textArrived<LEFT>: LEFT products
// that were started after it may still be on their way.
template <int STEPS, bool ON, class Sum, int KA, int LA, bool LEFT, int KB, int LB, bool RIGHT>
__device__ __forceinline__ void textStart(Sum &s, const Laid<KA, LA, LEFT> &a, const Laid<KB, LB, RIGHT> &b) {
#ifdef EMULATED
  startText<sizeof(Sum) / 2, STEPS, ON>((float *)&s, a, b);
#else
  unsigned left = a.first(), right = b.first();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    if (i == 0 && !ON)
      textOne<false, LEFT, RIGHT>(s, a.described(left, 1, i), b.described(right, 0, i));
    else
      textOne<true, LEFT, RIGHT>(s, a.described(left, 1, i), b.described(right, 0, i));
    textOne<true, LEFT, RIGHT>(s, a.described(left, 0, i), b.described(right, 1, i));
    textOne<true, LEFT, RIGHT>(s, a.described(left, 0, i), b.described(right, 0, i));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
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
template <int LEFT, int EIGHTS>
__device__ __forceinline__ void textArrived(float (&s)[EIGHTS][4]) {
  textArrived<LEFT>();
#ifndef EMULATED
#pragma unroll
  for (int j = 0; j < EIGHTS; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(s[j][c])::"memory");
#endif
}
template <int LEFT>
__device__ __forceinline__ void textArrived(WideSum &s) {
  textArrived<LEFT>(s[0]);
  textArrived<LEFT>(s[1]);
}
