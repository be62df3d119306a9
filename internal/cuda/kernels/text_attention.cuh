// Attention of texts whose rows stay in parts (text_parts.cuh): a head of 32 channels of an example a
// block of four warps, of 16 places each, on tensor cores. What goes in is taken apart when it is laid
// in shared memory, each matrix with a scale of its own; weights are computed anew on the way back.
#pragma once
#include "text_parts.cuh"
#include "text_products.cuh"

// A matrix of a head has 16 bytes behind every row, so that rows that are read at once begin in
// different banks; so have weights.
enum { HEAD = 32, HEAD_ROW = HEAD + 8, HEAD_PART = TEXT * HEAD_ROW, HEAD_SIDE = TWO * HEAD_PART, LOOKS_ROW = TEXT + 8, LOOKS_PART = TEXT * LOOKS_ROW, LOOKS_SIDE = TWO * LOOKS_PART };

// multiplyTwo adds the product of 16 lines and 8 columns, of 16 of k, of values in two parts of float16.
#ifdef EMULATED
inline void multiplyTwo(float (&c)[4], const Tile (&a)[TWO], const Strip (&b)[TWO]) {
  unsigned t = threadIdx.x, lane = t % 32, first = t - lane;
  for (int p = 0; p < TWO; p++) {
    for (int i = 0; i < 4; i++) emu_sides[t][4 * p + i] = a[p][i];
    for (int i = 0; i < 2; i++) emu_sides[t][8 + 2 * p + i] = b[p][i];
  }
  emu_warp();
  double sum[4] = {};
  for (int k = 0; k < 16; k++) {
    double left[2][TWO], right[2][TWO];
    for (int p = 0; p < TWO; p++)
      for (int i = 0; i < 2; i++) {
        unsigned u = emu_sides[first + lane / 4 * 4 + k % 8 / 2][4 * p + i + 2 * (k / 8)], v = emu_sides[first + (lane % 4 * 2 + i) * 4 + k % 8 / 2][8 + 2 * p + k / 8];
        left[i][p] = k % 2 ? upperTwo(u) : lowerTwo(u), right[i][p] = k % 2 ? upperTwo(v) : lowerTwo(v);
      }
    for (int i = 0; i < 4; i++) sum[i] += left[i / 2][1] * right[i % 2][0] + left[i / 2][0] * right[i % 2][1] + left[i / 2][0] * right[i % 2][0];
  }
  for (int i = 0; i < 4; i++) c[i] += (float)sum[i];
  emu_warp();
}
#else
__device__ __forceinline__ void multiplyHalf(float (&c)[4], const Tile &a, const Strip &b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiplyTwo(float (&c)[4], const Tile (&a)[TWO], const Strip (&b)[TWO]) {
  multiplyHalf(c, a[1], b[0]);
  multiplyHalf(c, a[0], b[1]);
  multiplyHalf(c, a[0], b[0]);
}
#endif

// Where a warp's lane is among four tiles of eight by eight that lie side by side, the first two below
// one another (DOWN), or beside.
__device__ __forceinline__ int lineOf(bool down) { return threadIdx.x % 8 + (down ? threadIdx.x / 8 % 2 : threadIdx.x / 16 % 2) * 8; }
__device__ __forceinline__ int columnOf(bool down) { return (down ? threadIdx.x / 16 % 2 : threadIdx.x / 8 % 2) * 8; }

// headMost are the largest that a block's threads have of each.
template <int N>
__device__ __forceinline__ void headMost(float (&v)[N]) {
  __shared__ float most[N][4];
  int t = threadIdx.x;
#pragma unroll
  for (int i = 0; i < N; i++)
    for (int o = 16; o; o >>= 1) v[i] = fmaxf(v[i], __shfl_xor_sync(~0u, v[i], o));
  __syncthreads();  // of those before
  if (t % 32 == 0)
#pragma unroll
    for (int i = 0; i < N; i++) most[i][t / 32] = v[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; i++) v[i] = fmaxf(fmaxf(most[i][0], most[i][1]), fmaxf(most[i][2], most[i][3]));
}

// headLay lays N matrices, of rows as threads of a group have them (ownOf), in parts; back takes each
// back.
template <int N>
__device__ __forceinline__ void headLay(const float *const (&from)[N], unsigned short *sides, float (&back)[N]) {
  float4 v[N][4];
  int t = threadIdx.x, row = t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int m = 0; m < N; m++) {
    back[m] = 0.f;
#pragma unroll
    for (int i = 0; i < 4; i++) v[m][i] = __ldg((const float4 *)from[m] + i * 128 + t);
  }
#pragma unroll
  for (int i = 0; i < 4 * N; i++) back[i / 4] = fmaxf(back[i / 4], largest(v[i / 4][i % 4].x, v[i / 4][i % 4].y, v[i / 4][i % 4].z, v[i / 4][i % 4].w));
  headMost(back);
#pragma unroll
  for (int m = 0; m < N; m++) {
    Scale scale = scaleOf(bitsOf(back[m]) >> 23, LEAST_TEXT_MATRIX);
    back[m] = scale.back;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      unsigned upper[TWO], lower[TWO];
      divideTwo(v[m][i].x * scale.by, v[m][i].y * scale.by, upper);
      divideTwo(v[m][i].z * scale.by, v[m][i].w * scale.by, lower);
      unsigned short *to = sides + m * HEAD_SIDE + row * HEAD_ROW + 8 * i + t % 4 * 2;
#pragma unroll
      for (int p = 0; p < TWO; p++) *(unsigned *)(to + p * HEAD_PART) = upper[p], *(unsigned *)(to + p * HEAD_PART + 8 * HEAD_ROW) = lower[p];
    }
  }
  __syncthreads();
}

// headPairs: products of a warp's places' rows of x with rows of y that they look at.
__device__ __forceinline__ void headPairs(float (&acc)[8][4], const unsigned short *x, const unsigned short *y) {
  int warp = threadIdx.x / 32;
#pragma unroll
  for (int j = 0; j < 8; j++)
#pragma unroll
    for (int c = 0; c < 4; c++) acc[j][c] = 0.f;
#pragma unroll
  for (int k = 0; k < HEAD / 16; k++) {
    Tile a[TWO];
#pragma unroll
    for (int p = 0; p < TWO; p++) fetchTile<false>(a[p], x + p * HEAD_PART + (16 * warp + lineOf(true)) * HEAD_ROW + 16 * k + columnOf(true));
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (j > warp) break;
      Tile both[TWO];
#pragma unroll
      for (int p = 0; p < TWO; p++) fetchTile<false>(both[p], y + p * HEAD_PART + (16 * j + lineOf(false)) * HEAD_ROW + 16 * k + columnOf(false));
#pragma unroll
      for (int h = 0; h < 2; h++) {
        Strip b[TWO] = {{both[0][2 * h], both[0][2 * h + 1]}, {both[1][2 * h], both[1][2 * h + 1]}};
        multiplyTwo(acc[2 * j + h], a, b);
      }
    }
  }
}

// headTimes adds, of 16 places' weights or their slopes, a, times rows of y from first on.
__device__ __forceinline__ void headTimes(float (&acc)[4][4], const Tile (&a)[TWO], const unsigned short *y, int first) {
#pragma unroll
  for (int j = 0; j < HEAD / 16; j++) {
    Tile both[TWO];
#pragma unroll
    for (int p = 0; p < TWO; p++) fetchTile<true>(both[p], y + p * HEAD_PART + (first + lineOf(true)) * HEAD_ROW + 16 * j + columnOf(true));
#pragma unroll
    for (int h = 0; h < 2; h++) {
      Strip b[TWO] = {{both[0][2 * h], both[0][2 * h + 1]}, {both[1][2 * h], both[1][2 * h + 1]}};
      multiplyTwo(acc[2 * j + h], a, b);
    }
  }
}

// headSeen: for a warp's places the sum of rows of y, times weights, that they look at.
__device__ __forceinline__ void headSeen(float (&acc)[4][4], const float (&w)[8][4], float by, const unsigned short *y) {
  int warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 16; i++) acc[i / 4][i % 4] = 0.f;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    if (k > warp) break;
    Tile a[TWO];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      unsigned parts[TWO];
      divideTwo(w[2 * k + i / 2][i % 2 * 2] * by, w[2 * k + i / 2][i % 2 * 2 + 1] * by, parts);
      a[0][i] = parts[0], a[1][i] = parts[1];
    }
    headTimes(acc, a, y, 16 * k);
  }
}

// headLooks lays weights, or their slopes, where other warps read them.
__device__ __forceinline__ void headLooks(unsigned short *looks, const float (&w)[8][4], float by) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    if (j > 2 * warp + 1) break;  // later ones have none
#pragma unroll
    for (int h = 0; h < 2; h++) {
      unsigned parts[TWO];
      divideTwo(w[j][2 * h] * by, w[j][2 * h + 1] * by, parts);
#pragma unroll
      for (int p = 0; p < TWO; p++) *(unsigned *)(looks + p * LOOKS_PART + (16 * warp + lane / 4 + 8 * h) * LOOKS_ROW + 8 * j + lane % 4 * 2) = parts[p];
    }
  }
}

// headSeers: the same as headSeen of the places that look at a warp's.
__device__ __forceinline__ void headSeers(float (&acc)[4][4], const unsigned short *looks, const unsigned short *y) {
  int warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < 16; i++) acc[i / 4][i % 4] = 0.f;
#pragma unroll 1
  for (int k = warp; k < 4; k++) {
    Tile a[TWO];
#pragma unroll
    for (int p = 0; p < TWO; p++) fetchTile<true>(a[p], looks + p * LOOKS_PART + (16 * k + lineOf(false)) * LOOKS_ROW + 16 * warp + columnOf(false));
    headTimes(acc, a, y, 16 * k);
  }
}

// headShares makes weights of a warp's places' products: what they do not look at has none.
__device__ __forceinline__ void headShares(float (&w)[8][4], float by) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    int place = 16 * warp + lane / 4 + 8 * h;
    float top = -INFINITY, sum = 0.f;
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float one = w[i / 2][2 * h + i % 2];
      if (8 * (i / 2) + lane % 4 * 2 + i % 2 <= place) top = one > top ? one : top;
    }
#pragma unroll
    for (int o = 1; o < 4; o <<= 1) {
      float other = __shfl_xor_sync(~0u, top, o);
      top = other > top ? other : top;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float &one = w[i / 2][2 * h + i % 2];
      one = 8 * (i / 2) + lane % 4 * 2 + i % 2 <= place ? exped(by * (one - top)) : 0.f;
      sum += one;
    }
    float share = 1.f / ofRow(sum);
#pragma unroll
    for (int i = 0; i < 16; i++) w[i / 2][2 * h + i % 2] *= share;
  }
}

// headPut writes a head's 32 columns from first on, in parts of the scale of size.
__device__ __forceinline__ void headPut(const Parts &to, int first, float by, const float (&acc)[4][4], float size) {
  int t = threadIdx.x, e = blockIdx.y;
  Scale scale = scaleOf(bitsOf(size) >> 23);
  if (t == 0) to.backsOf(e)[first / TEXT_SCALED] = scale.back;
  unsigned short *own = to.of(e) + first / 8 * TEXT_EIGHT + t / 32 * 128 + t % 32 * 2;
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      unsigned parts[TWO];
      divideTwo(by * acc[j][2 * h] * scale.by, by * acc[j][2 * h + 1] * scale.by, parts);
#pragma unroll
      for (int p = 0; p < TWO; p++) *(unsigned *)(own + p * TEXT * to.columns + j * TEXT_EIGHT + h * 64) = parts[p];
    }
}

__device__ __forceinline__ float headSize(const float (&acc)[4][4], float by) {
  float size = 0.f;
#pragma unroll
  for (int j = 0; j < 4; j++) size = fmaxf(size, largest(acc[j][0], acc[j][1], acc[j][2], acc[j][3]));
  return size * by;
}

// WEIGHED is the scale of weights, of which none is above 1.
#define WEIGHED 16384.f
#define ROOT_HEAD 0.17677669529663687f  // 1/sqrt(HEAD)

extern "C" __global__ void __launch_bounds__(128, 6) text_attend(const float *x, Parts to, int heads) {
  __shared__ uint4 room[3 * HEAD_SIDE / 8];
  unsigned short *sides = (unsigned short *)room;
  int all = TEXT * heads * HEAD;
  const float *q = x + (size_t)blockIdx.y * 3 * all + blockIdx.x * TEXT * HEAD;
  float back[3], w[8][4], acc[4][4], size[1];
  headLay<3>({q, q + all, q + 2 * all}, sides, back);
  headPairs(w, sides, sides + HEAD_SIDE);
  headShares(w, ROOT_HEAD * back[0] * back[1]);
  headSeen(acc, w, WEIGHED, sides + 2 * HEAD_SIDE);
  float by = back[2] / WEIGHED;
  size[0] = headSize(acc, by);
  headMost(size);
  headPut(to, blockIdx.x * HEAD, by, acc, size[0]);
}

extern "C" __global__ void __launch_bounds__(128, 3) text_attend_back(const float *x, const float *d, Parts to, int heads) {
  DYNAMIC(headRoom);
  unsigned short *q = (unsigned short *)headRoom, *keys = q + HEAD_SIDE, *values = keys + HEAD_SIDE, *seen = values + HEAD_SIDE, *looks = seen + HEAD_SIDE;
  int all = heads * HEAD, each = TEXT * all;
  const float *from = x + (size_t)blockIdx.y * 3 * each + blockIdx.x * TEXT * HEAD;
  float back[4], w[8][4], slopes[8][4], ofQ[4][4], ofKeys[4][4], ofValues[4][4];
  headLay<4>({from, from + each, from + 2 * each, d + (size_t)blockIdx.y * each + blockIdx.x * TEXT * HEAD}, q, back);
  headPairs(w, q, keys);
  headShares(w, ROOT_HEAD * back[0] * back[1]);
  headLooks(looks, w, WEIGHED);
  headPairs(slopes, seen, values);
  float steepest[1] = {};
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float along = 0.f;
#pragma unroll
    for (int i = 0; i < 16; i++) along += w[i / 2][2 * h + i % 2] * slopes[i / 2][2 * h + i % 2];
    along = ofRow(along);
#pragma unroll
    for (int i = 0; i < 16; i++) {
      float &one = slopes[i / 2][2 * h + i % 2];
      one = w[i / 2][2 * h + i % 2] * (one - along);  // what is not looked at has weight 0
      steepest[0] = fmaxf(steepest[0], fabsf(one));
    }
  }
  headMost(steepest);  // and all weights are laid
  headSeers(ofValues, looks, seen);
  Scale scale = scaleOf(bitsOf(steepest[0]) >> 23);
  __syncthreads();  // weights give their place to their slopes
  headLooks(looks, slopes, scale.by);
  headSeen(ofQ, slopes, scale.by, keys);
  __syncthreads();
  headSeers(ofKeys, looks, q);
  float by[3] = {ROOT_HEAD * scale.back * back[3] * back[2] * back[1], ROOT_HEAD * scale.back * back[3] * back[2] * back[0], back[3] / WEIGHED};
  float size[3] = {headSize(ofQ, by[0]), headSize(ofKeys, by[1]), headSize(ofValues, by[2])};
  headMost(size);
  headPut(to, blockIdx.x * HEAD, by[0], ofQ, size[0]);
  headPut(to, all + blockIdx.x * HEAD, by[1], ofKeys, size[1]);
  headPut(to, 2 * all + blockIdx.x * HEAD, by[2], ofValues, size[2]);
}
