// Norms of gradients of layers on places, by groups of warps: what times_half of tokens.cuh
// computes, of at most 64 places and rows of 32's of values.
#pragma once
#include "groups.cuh"
#include "halves.cuh"

// An example's rows, 32 values each at a time, are brought as they are up to two ahead, with 16
// bytes between two of them, and lie in two parts of float16 as a right side does, in turns in two
// places; the left side is read from there, too. Every row's 32 values have a scale of their own.
enum { PAIR_K = 32, PAIR_PART = PAIR_K * GROUP_LINES, PAIR_SIDE = TWO * PAIR_PART, PAIR_ROW = PAIR_K + 4, PAIR_STAGE = GROUP_LINES * PAIR_ROW, PAIR_STAGES = 3 };

// Pairing is where a group has an example's rows: parts of both sides, what takes both sides' rows
// back, and stages.
struct Pairing {
  unsigned short *sides;
  float *backs, *stages;
  Barrier *there;
  int filled, taken;  // stages, since the block began
};

// paired: products of at most 64 rows of x with each other, of length K, by a group: sums of 32
// terms are formed and then added up. ADDED, they are right in sums that count (s, t) and (t, s)
// alike (groupStartTwo).
template <bool ADDED>
__device__ __forceinline__ void paired(const float *x, int rows, int K, Pairing &room, GroupSum &sum) {
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int first = room.filled;
  auto fill = [&] {
    float *stage = room.stages + room.filled % PAIR_STAGES * PAIR_STAGE + t / 8 * PAIR_ROW + t % 8 * 4;
    const float *from = x + (size_t)(t / 8) * K + (room.filled - first) * PAIR_K + t % 8 * 4;
#pragma unroll
    for (int i = 0; i < GROUP_LINES / 16; i++)
      if (t / 8 + 16 * i < rows) copy(stage + 16 * i * PAIR_ROW, from + (size_t)(16 * i) * K);
    copied(&room.there[room.filled++ % PAIR_STAGES]);
  };
  // A thread takes eight values each of two rows apart; four have a row's 32.
  auto store = [&](int side) {
    await(&room.there[room.taken % PAIR_STAGES], room.taken / PAIR_STAGES & 1);
    const float *stage = room.stages + room.taken++ % PAIR_STAGES * PAIR_STAGE + lane / 8 * 8;
    float4 v[2][2];
    float size[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int row = warp * 16 + i * 8 + lane % 8;
      size[i] = 0.f;
#pragma unroll
      for (int q = 0; q < 2; q++) {
        v[i][q] = *(const float4 *)(stage + row * PAIR_ROW + 4 * q);
        if (row >= rows) v[i][q] = make_float4(0.f, 0.f, 0.f, 0.f);
        size[i] = fmaxf(size[i], largest(v[i][q].x, v[i][q].y, v[i][q].z, v[i][q].w));
      }
    }
    unsigned halves = upperHalves(size[0], size[1]);
    halves = largerTwo(halves, (unsigned)__shfl_xor_sync(~0u, halves, 8));
    halves = largerTwo(halves, (unsigned)__shfl_xor_sync(~0u, halves, 16));
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int row = warp * 16 + i * 8 + lane % 8;
      Scale scale = scaleOf(exponentOf(halves, i));
      unsigned pairs[4][TWO];
#pragma unroll
      for (int q = 0; q < 2; q++) {
        divideTwo(v[i][q].x * scale.by, v[i][q].y * scale.by, pairs[2 * q]);
        divideTwo(v[i][q].z * scale.by, v[i][q].w * scale.by, pairs[2 * q + 1]);
      }
#pragma unroll
      for (int p = 0; p < TWO; p++) *(uint4 *)(room.sides + side * PAIR_SIDE + p * PAIR_PART + lane / 8 * PAIR_EIGHT + row * 8) = make_uint4(pairs[0][p], pairs[1][p], pairs[2][p], pairs[3][p]);
      if (lane < 8) room.backs[side * GROUP_LINES + row] = scale.back;
    }
    shown();
  };
  GroupSum fresh = {};
#pragma unroll
  for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) sum[j][c] = 0.f;
  int count = K / PAIR_K;
  for (int c = 0; c < count && c < PAIR_STAGES; c++) fill();
  store(0);
  __syncthreads();
#pragma unroll 1
  for (int c = 0; c < count; c++) {
    const unsigned short *now = room.sides + c % 2 * PAIR_SIDE, *line = now + lane / 16 * PAIR_EIGHT + (warp * 2 + lane / 8 % 2) * 64 + lane % 8 * 8;
    Tile a[2][TWO];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int p = 0; p < TWO; p++) fetchTile<false>(a[i][p], line + p * PAIR_PART + 2 * i * PAIR_EIGHT);
    groupStartTwo<ADDED, 2>(fresh, a, now, PAIR_PART);
    const float *back = room.backs + c % 2 * GROUP_LINES;
    float upper = back[warp * 16 + lane / 4], lower = back[warp * 16 + lane / 4 + 8];
    float2 columns[GROUP_HALF / 8];
#pragma unroll
    for (int j = 0; j < GROUP_HALF / 8; j++) columns[j] = *(const float2 *)(back + 8 * j + lane % 4 * 2);
    if (c + 1 < count) store((c + 1) % 2);  // while tensor cores have work
    groupWait<true>(fresh);
#pragma unroll
    for (int j = 0; j < GROUP_HALF / 8; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) sum[j][i] += fresh[j][i] * (i < 2 ? upper : lower) * (i % 2 ? columns[j].y : columns[j].x);
    __syncthreads();
    if (c + PAIR_STAGES < count) fill();  // where the stage before the last one taken was
  }
}

// group_halves: times_half of layers with rows of 32's of values, an example of one a block.
__device__ __forceinline__ void groupHalves(const Halves &all, int places) {
  DYNAMIC(room);
  __shared__ double sums[2][4];
  __shared__ Barrier there[PAIR_STAGES];
  const HalfOf l = all.of[blockIdx.y];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, e = blockIdx.x;
  Pairing pairing = {(unsigned short *)room, room + PAIR_SIDE, room + PAIR_SIDE + 2 * GROUP_LINES, there, 0, 0};  // both sides' parts are of two bytes
  float *kept = room + PAIR_SIDE + 2 * GROUP_LINES + PAIR_STAGES * PAIR_STAGE + t;
  if (t == 0) {
    for (int i = 0; i < PAIR_STAGES; i++) ready(&there[i], 128);
    readied();
  }
  __syncthreads();
  GroupSum one;
  paired<false>(l.x + (size_t)e * places * l.in, places, l.in, pairing, one);
#pragma unroll
  for (int i = 0; i < GROUP_HALF / 2; i++) kept[128 * i] = one[i / 4][i % 4];
  paired<true>(l.d + (size_t)e * places * l.out, places, l.out, pairing, one);
  double square = 0, lengths = 0;
#pragma unroll
  for (int i = 0; i < GROUP_HALF / 2; i++) {
    double p = ((double)kept[128 * i] + l.bias) * one[i / 4][i % 4];  // of places that are not there: times 0
    square += p;
    if (warp * 16 + lane / 4 + i % 4 / 2 * 8 == i / 4 * 8 + lane % 4 * 2 + i % 2) lengths += sqrt(p);
  }
  square = warpSum(square), lengths = warpSum(lengths);
  if (lane == 0) sums[0][warp] = square, sums[1][warp] = lengths;
  __syncthreads();
  if (t != 0) return;
  for (int i = 1; i < 4; i++) square += sums[0][i], lengths += sums[1][i];
  all.room.squares[(size_t)e * all.room.squaresRow + l.squares0] = square + l.share * lengths * lengths;
}
extern "C" __global__ void __launch_bounds__(128, 3) group_halves(Halves all, int places) { groupHalves(all, places); }
