// Products on tensor cores by groups of four warps, for compute capability 9.0: 64 lines and 64
// columns a group, of 16 of k at a time. The left side is in registers, the right side in
// shared memory, both in two parts of float16 (two_parts.cuh) or in three of bfloat16 (tensor.cuh).
// A product is started, and waited for when another one has been: so tensor cores always have one
// to go on with.
#pragma once
#include "tensor.cuh"
#include "two_parts.cuh"

// A group's right side lies in eights of columns and eights of k, of 16 bytes a column (or a k,
// where columns lie side by side): the next eight columns are 128 bytes on, the next eight of
// k EIGHT values: as many as 128 columns have, or 64.
enum { GROUP_LINES = 64, GROUP_COLUMNS = 128, GROUP_HALF = GROUP_COLUMNS / 2, GROUP_EIGHT = 8 * GROUP_COLUMNS, GROUP_SIXTEEN = 2 * GROUP_EIGHT, PAIR_EIGHT = 8 * GROUP_LINES };

// GroupSum is a thread's part of a group's product, of half the columns: of every eight of them
// what multiply has, of line lane/4 of the warp's 16.
typedef float GroupSum[GROUP_HALF / 8][4];

#ifdef EMULATED
// groupStart begins the product of 64 lines, 16 a warp, with 64 columns: of k side by side, or,
// ACROSS, of columns side by side. Part is how many values parts of b are apart. The sum is not
// there before groupWait; ON, it is added to what was started last of the same one.
template <bool ACROSS, int EIGHT, bool ON = false>
inline void groupStart(GroupSum &s, const Tile (&a)[PARTS], const unsigned short *b, int part) {
  unsigned lane = threadIdx.x % 32;
  GroupSum sum = {};
  if (ON) emu_last(&s[0][0], &sum[0][0], GROUP_HALF / 2);
  for (int j = 0; j < GROUP_HALF / 8; j++) {
    Strip strip[PARTS];
    for (int p = 0; p < PARTS; p++)
      for (int h = 0; h < 2; h++) {
        auto at = [&](int column, int k) {
          const unsigned short *eight = b + p * part + k / 8 * EIGHT + column / 8 * 64;
          return (unsigned)(ACROSS ? eight[k % 8 * 8 + column % 8] : eight[column % 8 * 8 + k % 8]);
        };
        int column = 8 * j + lane / 4, k = lane % 4 * 2 + 8 * h;
        strip[p][h] = at(column, k) | at(column, k + 1) << 16;
      }
    multiply(sum[j], a, strip);
  }
  emu_pend(&s[0][0], &sum[0][0], GROUP_HALF / 2);
}
// groupStartTwo begins the product of values in two parts of float16, of k side by side: CHAIN times
// 16 of them, which tensor cores add up. OWN, a side is multiplied by itself, and of the products of
// different parts one is computed, and counts twice: so sums over pairs of lines are right that
// count either order alike, and not single ones.
template <bool OWN, int CHAIN>
inline void groupStartTwo(GroupSum &s, const Tile (&a)[CHAIN][TWO], const unsigned short *b, int part) {
  unsigned t = threadIdx.x, lane = t % 32, first = t - lane;
  GroupSum sum = {};
  for (int piece = 0; piece < CHAIN; piece++) {
    for (int p = 0; p < TWO; p++)
      for (int i = 0; i < 4; i++) emu_sides[t][4 * p + i] = a[piece][p][i];
    emu_warp();
    for (int j = 0; j < GROUP_HALF / 8; j++)
      for (int i = 0; i < 2; i++)
        for (int c = 0; c < 2; c++) {
          double one = 0;
          int column = 8 * j + lane % 4 * 2 + c;
          for (int k = 0; k < 16; k++) {
            double left[TWO], right[TWO];
            for (int p = 0; p < TWO; p++) {
              unsigned u = emu_sides[first + lane / 4 * 4 + k % 8 / 2][4 * p + i + 2 * (k / 8)];
              left[p] = k % 2 ? upperTwo(u) : lowerTwo(u);
              right[p] = emu_wide(b[p * part + (2 * piece + k / 8) * PAIR_EIGHT + column / 8 * 64 + column % 8 * 8 + k % 8]);
            }
            one += (OWN ? 2 * left[1] * right[0] : left[1] * right[0] + left[0] * right[1]) + left[0] * right[0];
          }
          sum[j][2 * i + c] += (float)one;
        }
    emu_warp();
  }
  emu_pend(&s[0][0], &sum[0][0], GROUP_HALF / 2);
}
// groupWait waits until s is there, the sum before the last one that was started, or, LAST, that.
template <bool LAST>
inline void groupWait(GroupSum &) { emu_deliver(LAST ? 0 : 1); }
#else
// described is what tensor cores need to know of a right side.
template <int EIGHT>
__device__ __forceinline__ unsigned long long described(const unsigned short *b) {
  return (unsigned long long)(((unsigned)__cvta_generic_to_shared(b) >> 4) & 0x3fff) | (unsigned long long)(EIGHT * 2 >> 4) << 16 | (unsigned long long)(128 >> 4) << 32;
}
#define GROUP_OPERANDS "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36"
#define GROUP_SUM_OPERANDS(s)                                                                                                       \
  "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]), "+f"(s[1][2]), "+f"(s[1][3]),         \
      "+f"(s[2][0]), "+f"(s[2][1]), "+f"(s[2][2]), "+f"(s[2][3]), "+f"(s[3][0]), "+f"(s[3][1]), "+f"(s[3][2]), "+f"(s[3][3]),     \
      "+f"(s[4][0]), "+f"(s[4][1]), "+f"(s[4][2]), "+f"(s[4][3]), "+f"(s[5][0]), "+f"(s[5][1]), "+f"(s[5][2]), "+f"(s[5][3]),     \
      "+f"(s[6][0]), "+f"(s[6][1]), "+f"(s[6][2]), "+f"(s[6][3]), "+f"(s[7][0]), "+f"(s[7][1]), "+f"(s[7][2]), "+f"(s[7][3])
template <bool ACROSS, bool ADDS>
__device__ __forceinline__ void groupStartOne(GroupSum &s, const Tile &a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      GROUP_OPERANDS ", adds, 1, 1, %38;}"
      : GROUP_SUM_OPERANDS(s)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS), "n"(ACROSS));
}
template <bool ACROSS, int EIGHT, bool ON = false>
__device__ __forceinline__ void groupStart(GroupSum &s, const Tile (&a)[PARTS], const unsigned short *b, int part) {
  unsigned long long first = described<EIGHT>(b), next = part * 2 >> 4;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  groupStartOne<ACROSS, ON>(s, a[2], first);
  groupStartOne<ACROSS, true>(s, a[0], first + 2 * next);
  groupStartOne<ACROSS, true>(s, a[1], first + next);
  groupStartOne<ACROSS, true>(s, a[1], first);
  groupStartOne<ACROSS, true>(s, a[0], first + next);
  groupStartOne<ACROSS, true>(s, a[0], first);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <bool ADDS>
__device__ __forceinline__ void groupStartOneTwo(GroupSum &s, const Tile &a, unsigned long long b) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      GROUP_OPERANDS ", adds, 1, 1, 0;}"
      : GROUP_SUM_OPERANDS(s)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS));
}
template <bool OWN, int CHAIN>
__device__ __forceinline__ void groupStartTwo(GroupSum &s, const Tile (&a)[CHAIN][TWO], const unsigned short *b, int part) {
  unsigned long long first = described<PAIR_EIGHT>(b), next = part * 2 >> 4;
  Tile second[CHAIN];
#pragma unroll
  for (int i = 0; i < 4 * CHAIN; i++) second[i / 4][i % 4] = OWN ? doubledTwo(a[i / 4][1][i % 4]) : a[i / 4][1][i % 4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int c = 0; c < CHAIN; c++) {
    unsigned long long piece = first + c * (2 * PAIR_EIGHT * 2 >> 4);
    if (c == 0)
      groupStartOneTwo<false>(s, second[c], piece);
    else
      groupStartOneTwo<true>(s, second[c], piece);
    if (!OWN) groupStartOneTwo<true>(s, a[c][0], piece + next);
    groupStartOneTwo<true>(s, a[c][0], piece);
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <bool LAST>
__device__ __forceinline__ void groupWait(GroupSum &s) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LAST ? 0 : 1) : "memory");
#pragma unroll
  for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(s[j][c])::"memory");
}
#endif

// addFresh adds a product that was started to a sum, once it is there: the one before the last one,
// or, LAST, that.
template <bool LAST>
__device__ __forceinline__ void addFresh(GroupSum &sum, GroupSum &fresh) {
  groupWait<LAST>(fresh);
#pragma unroll
  for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) sum[j][c] += fresh[j][c];
}

// GroupAdder adds up products of a group's 64 lines and 128 columns, of values in three parts of
// bfloat16: every half is added outside while the other one is on its way.
struct GroupAdder {
  GroupSum sums[2], fresh[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) sums[h][j][c] = fresh[h][j][c] = 0.f;
  }
  // chain adds a product of STEPS times 16 of k, which tensor cores add up to one: left(i, a) makes
  // the left side of 16.
  template <bool ACROSS, int STEPS, class Left>
  __device__ __forceinline__ void chain(const unsigned short *b, int part, Left left) {
    Tile a[2][PARTS];
    const int HALF = (GROUP_HALF / 8) * 64;
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
      left(i, a[i % 2]);
      if (i == 0) {
        groupStart<ACROSS, GROUP_EIGHT, false>(fresh[0], a[0], b, part);
        groupStart<ACROSS, GROUP_EIGHT, false>(fresh[1], a[0], b + HALF, part);
      } else {
        groupStart<ACROSS, GROUP_EIGHT, true>(fresh[0], a[i % 2], b + i * GROUP_SIXTEEN, part);
        groupStart<ACROSS, GROUP_EIGHT, true>(fresh[1], a[i % 2], b + i * GROUP_SIXTEEN + HALF, part);
      }
    }
    addFresh<false>(sums[0], fresh[0]);
    addFresh<true>(sums[1], fresh[1]);
  }
  // at is value c of eight columns, number j.
  __device__ __forceinline__ float at(int j, int c) const { return sums[j / (GROUP_HALF / 8)][j % (GROUP_HALF / 8)][c]; }
};

// addBack adds a product that was started to a sum, once it is there, times what takes both lines
// that a thread has back.
template <bool LAST>
__device__ __forceinline__ void addBack(GroupSum &sum, GroupSum &fresh, float upper, float lower) {
  groupWait<LAST>(fresh);
#pragma unroll
  for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) sum[j][c] += fresh[j][c] * (c < 2 ? upper : lower);
}

// CHAINED is how many times 16 of k a product of TwoAdder's has.
enum { CHAINED = 2 };

// TwoAdder adds up products of 32 of k each, of a group's 64 lines and so many times 64 columns, of
// values in two parts of float16: one is added outside while the next is on its way.
template <int HALVES>
struct TwoAdder {
  GroupSum sums[HALVES], fresh[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) sums[h % HALVES][j][c] = fresh[h][j][c] = 0.f;
  }
  // add adds two products: left(i, a, back) makes the left side of one, and right takes each 64
  // columns of the right side back, of which the next ones lie so many values on. None is on its way
  // at the end: tensor cores would otherwise do one after another.
  template <class Left>
  __device__ __forceinline__ void add(const unsigned short *b, int part, int half, const float (&right)[HALVES], Left left) {
    const int NEXT = 2 * CHAINED * PAIR_EIGHT;
    Tile a[2][CHAINED][TWO];
    float back[2][2];
    left(0, a[0], back[0]);
#pragma unroll
    for (int h = 0; h < HALVES; h++) groupStartTwo<false, CHAINED>(fresh[h], a[0], b + h * half, part);
    left(1, a[1], back[1]);
    if (HALVES == 1) groupStartTwo<false, CHAINED>(fresh[1], a[1], b + NEXT, part);
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      addBack<false>(sums[h], fresh[h], back[0][0] * right[h], back[0][1] * right[h]);
      if (HALVES == 2) groupStartTwo<false, CHAINED>(fresh[h], a[1], b + h * half + NEXT, part);
    }
    if (HALVES == 2) addBack<false>(sums[0], fresh[0], back[1][0] * right[0], back[1][1] * right[0]);
    addBack<true>(sums[HALVES - 1], fresh[1], back[1][0] * right[HALVES - 1], back[1][1] * right[HALVES - 1]);
  }
  __device__ __forceinline__ float at(int j, int c) const { return sums[j / (GROUP_HALF / 8)][j % (GROUP_HALF / 8)][c]; }
};

// Barrier is where a block's threads wait for one another, or for what is on its way to shared
// memory; its phases, each of so many arrivals and of all that was announced, are 0 and 1 in turn.
typedef unsigned long long Barrier;
#ifdef EMULATED
inline void ready(Barrier *b, unsigned arrivals) { emu_barrier(b, arrivals); }
inline void readied() {}
inline void arrive(Barrier *b) { emu_arrive(b); }
inline void arriveAt(Barrier *b, unsigned) { emu_arrive(b); }
inline void announce(Barrier *b, unsigned bytes) { emu_announce(b, bytes); }
inline void bring(Barrier *b, void *to, const void *from, unsigned bytes) { emu_bring(b, to, from, bytes); }
inline void bringTo(Barrier *b, void *to, const void *from, unsigned bytes, unsigned) { emu_bring(b, to, from, bytes); }
inline void copy(void *to, const void *from) { emu_copy(to, from); }
inline void copied(Barrier *b) { emu_copied(b); }
inline void await(Barrier *b, unsigned phase) { emu_wait(b, phase); }
inline void meetCluster() { __syncthreads(); }
inline void send(void *to, const void *from, unsigned bytes) { emu_send(to, from, bytes); }
inline void sends() {}
inline void sent() { emu_sent(); }
inline void shown() {}
inline void writtenHere() {}
template <int COUNT>
inline void takeRegisters() {}
template <int COUNT>
inline void giveRegisters() {}
#else
__device__ __forceinline__ unsigned sharedAt(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void ready(Barrier *b, unsigned arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAt(b)), "r"(arrivals) : "memory"); }
// readied has barriers be seen by whatever brings memory.
__device__ __forceinline__ void readied() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void arrive(Barrier *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sharedAt(b)) : "memory"); }
// arriveAt arrives at that barrier of that block of the cluster.
__device__ __forceinline__ void arriveAt(Barrier *b, unsigned block) {
  asm volatile("{.reg .b32 at; mapa.shared::cluster.u32 at, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [at];}" ::"r"(sharedAt(b)), "r"(block) : "memory");
}
// announce arrives, and says how many bytes are to be brought before the phase ends.
__device__ __forceinline__ void announce(Barrier *b, unsigned bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAt(b)), "r"(bytes) : "memory"); }
// bring copies to shared memory, sixteens of bytes, which are there at the phase's end.
__device__ __forceinline__ void bring(Barrier *b, void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sharedAt(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
               "r"(sharedAt(b))
               : "memory");
}
// bringTo copies to that place of every block of the cluster that has a bit; it is there at the
// end of the phase of each one's own barrier.
__device__ __forceinline__ void bringTo(Barrier *b, void *to, const void *from, unsigned bytes, unsigned blocks) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(sharedAt(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(sharedAt(b)), "h"((unsigned short)blocks)
               : "memory");
}
// copy begins to copy 16 bytes; copied arrives when all are there that this thread has begun.
__device__ __forceinline__ void copy(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(sharedAt(to)), "l"(__cvta_generic_to_global(from)) : "memory");
}
__device__ __forceinline__ void copied(Barrier *b) { asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(sharedAt(b)) : "memory"); }
// send copies from shared memory, sixteens of bytes, once this thread says that it sends; sent waits
// until all that it sends has been read there.
__device__ __forceinline__ void send(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)), "r"(sharedAt(from)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void sends() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void sent() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
// await waits for the end of a phase.
__device__ __forceinline__ void await(Barrier *b, unsigned phase) {
  asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again;}" ::"r"(sharedAt(b)), "r"(phase) : "memory");
}
// meetCluster waits for all threads of the cluster.
__device__ __forceinline__ void meetCluster() {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// shown has tensor cores see what this thread has stored, once a barrier is passed.
__device__ __forceinline__ void shown() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// writtenHere has copies see what this thread has written to memory, once a barrier is passed.
__device__ __forceinline__ void writtenHere() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
// takeRegisters and giveRegisters have this warp's threads have so many, of the block's.
template <int COUNT>
__device__ __forceinline__ void takeRegisters() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT>
__device__ __forceinline__ void giveRegisters() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
#endif
