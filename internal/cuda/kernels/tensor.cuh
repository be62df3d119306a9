// Products on tensor cores, to float32's precision and without TF32: a value is the sum of
// three of bfloat16, of 8 bits each, exactly, and of the nine products of two values' parts
// those six are added whose sizes float32 can tell. What is left out is below 2^-23 of the
// product. Tensor cores cut off what they add to a sum; sums that are made there are short,
// and added to others outside, rounded. For devices of compute capability 8.0 on.
#pragma once
#include "common.cuh"

enum { PARTS = 3 };

// Tile is what a lane holds of 16 lines by 16 of k, and Strip of 16 of k by 8 columns, of one
// part; both two values of k in a register.
typedef unsigned Tile[4];
typedef unsigned Strip[2];

#ifdef EMULATED
inline unsigned emu_bits(float v) {
  unsigned u;
  memcpy(&u, &v, 4);
  return u;
}
inline float emu_value(unsigned u) {
  float v;
  memcpy(&v, &u, 4);
  return v;
}
inline unsigned emu_half(float v) {  // rounded to nearest, ties to even
  unsigned u = emu_bits(v);
  return v != v ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
inline unsigned packed(float x, float y) { return emu_half(x) | emu_half(y) << 16; }
inline float lower(unsigned p) { return emu_value(p << 16); }
inline float upper(unsigned p) { return emu_value(p & 0xffff0000u); }
#else
__device__ __forceinline__ unsigned packed(float x, float y) {
  unsigned p;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(y), "f"(x));
  return p;
}
__device__ __forceinline__ float lower(unsigned p) { return __uint_as_float(p << 16); }
__device__ __forceinline__ float upper(unsigned p) { return __uint_as_float(p & 0xffff0000u); }
#endif

// divide takes two values apart: of each pair x is in the lower half. The remainders are
// exact, and so the third is all that is left.
__device__ __forceinline__ void divide(float x, float y, unsigned (&to)[PARTS]) {
#pragma unroll
  for (int i = 0; i < PARTS; i++) {
    to[i] = packed(x, y);
    x -= lower(to[i]), y -= upper(to[i]);
  }
}

// multiply adds the product of 16 lines and 8 columns, of 16 of k: c is of line lane/4, columns
// lane%4*2 and the next one, and of line lane/4 + 8. Parts that are small come first.
#ifdef EMULATED
inline void multiply(float (&c)[4], const Tile (&a)[PARTS], const Strip (&b)[PARTS]) {
  unsigned t = threadIdx.x, lane = t % 32, first = t - lane;
  for (int p = 0; p < PARTS; p++) {
    for (int i = 0; i < 4; i++) emu_sides[t][4 * p + i] = a[p][i];
    for (int i = 0; i < 2; i++) emu_sides[t][12 + 2 * p + i] = b[p][i];
  }
  emu_warp();
  double sum[4] = {};
  for (int k = 0; k < 16; k++) {
    double left[2][PARTS], right[2][PARTS];
    for (int p = 0; p < PARTS; p++)
      for (int i = 0; i < 2; i++) {
        unsigned u = emu_sides[first + lane / 4 * 4 + k % 8 / 2][4 * p + i + 2 * (k / 8)], v = emu_sides[first + (lane % 4 * 2 + i) * 4 + k % 8 / 2][12 + 2 * p + k / 8];
        left[i][p] = k % 2 ? upper(u) : lower(u), right[i][p] = k % 2 ? upper(v) : lower(v);
      }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++)
        sum[2 * i + j] += left[i][2] * right[j][0] + left[i][0] * right[j][2] + left[i][1] * right[j][1] + left[i][1] * right[j][0] + left[i][0] * right[j][1] + left[i][0] * right[j][0];
  }
  for (int i = 0; i < 4; i++) c[i] += (float)sum[i];
  emu_warp();
}
#else
__device__ __forceinline__ void multiplyOne(float (&c)[4], const Tile &a, const Strip &b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiply(float (&c)[4], const Tile (&a)[PARTS], const Strip (&b)[PARTS]) {
  multiplyOne(c, a[2], b[0]);
  multiplyOne(c, a[0], b[2]);
  multiplyOne(c, a[1], b[1]);
  multiplyOne(c, a[1], b[0]);
  multiplyOne(c, a[0], b[1]);
  multiplyOne(c, a[0], b[0]);
}
#endif

// multiplyRow is multiply of one tile with N strips: parts are outside, so that no product
// waits for the one before it.
template <int N>
__device__ __forceinline__ void multiplyRow(float (&c)[N][4], const Tile (&a)[PARTS], const Strip (&b)[N][PARTS]) {
#ifdef EMULATED
  for (int j = 0; j < N; j++) multiply(c[j], a, b[j]);
#else
  const int left[6] = {2, 0, 1, 1, 0, 0}, right[6] = {0, 2, 1, 0, 1, 0};
#pragma unroll
  for (int i = 0; i < 6; i++)
#pragma unroll
    for (int j = 0; j < N; j++) multiplyOne(c[j], a[left[i]], b[j][right[i]]);
#endif
}

// fetchTile reads four tiles of 8x8 of two bytes, whose lines begin, of 16 bytes, where lanes 0
// to 7, 8 to 15 and so on say, in shared memory: a lane has two values of line lane/4, from
// lane%4*2 on. Those of A's lines 0 to 7 and 8 to 15 of k 0 to 7, and then of k 8 to 15, are a
// Tile. Turned, lines are of k: a lane has column lane/4 of lines lane%4*2 and the next one.
template <bool TURNED>
__device__ __forceinline__ void fetchTile(Tile &to, const unsigned short *line) {
#ifdef EMULATED
  unsigned t = threadIdx.x, lane = t % 32, first = t - lane;
  emu_rows[t] = line;
  emu_warp();
  for (int i = 0; i < 4; i++) {
    auto at = [&](int row, int column) { return (unsigned)((const unsigned short *)emu_rows[first + 8 * i + row])[column]; };
    to[i] = TURNED ? at(lane % 4 * 2, lane / 4) | at(lane % 4 * 2 + 1, lane / 4) << 16 : at(lane / 4, lane % 4 * 2) | at(lane / 4, lane % 4 * 2 + 1) << 16;
  }
  emu_warp();
#else
  unsigned at = (unsigned)__cvta_generic_to_shared(line);
  if (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at));
#endif
}
