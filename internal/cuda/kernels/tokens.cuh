// Linear layers on every place of an example, such as the words of a text: products of all
// places with one matrix, both ways, sums of examples' gradients times weights, and the norms
// of these gradients, of which no single one is formed.
#pragma once
#include "halves.cuh"

enum { WIDE_K = 16 };

// wide: BM x BN values a block of 256 threads, of a sum over k in tiles of 16 that take turns
// in two halves of shared memory. Weights, unless they are null, are of every k: those of
// weight 0 are left out of both sides, the others multiply b. VEC says that steps, lengths
// and addresses are multiples of 4. Columns, unless it is null, gets the sums of b's lines.
template <int BM, int BN, bool AALONG, bool BALONG, bool VEC, class Out>
__device__ __forceinline__ void wide(int M, int N, int from, int to, Matrix a, Matrix b, const float *weights, float *columns, Out put) {
  const int AROW = BM + 4, BROW = BN + 4, AITEMS = BM / 64, BITEMS = BN / 64;
  __shared__ float4 as4[2 * WIDE_K * AROW / 4], bs4[2 * WIDE_K * BROW / 4];
  float *as = (float *)as4, *bs = (float *)bs4;
  int t = threadIdx.x, tx = t % 16, ty = t / 16, m0 = blockIdx.x * BM, n0 = blockIdx.y * BN;
  float4 ra[AITEMS], rb[BITEMS];
  // Where a thread's items lie for k 0: a line, and places from one item to the next.
  int am = m0 + (AALONG ? t / 4 : t % (BM / 4) * 4), ak = AALONG ? t % 4 * 4 : t / (BM / 4), bn = n0 + (BALONG ? t / 4 : t % (BN / 4) * 4), bk = BALONG ? t % 4 * 4 : t / (BN / 4);
  const int AM = AALONG ? 64 : 0, AK = AALONG ? 0 : 1024 / BM, BL = BALONG ? 64 : 0, BK = BALONG ? 0 : 1024 / BN;
  unsigned ao = AALONG ? am * a.step + ak : ak * a.step + am, bo = BALONG ? bn * b.step + bk : bk * b.step + bn;
  auto load = [&](int k0) {
#pragma unroll
    for (int i = 0; i < AITEMS; i++) {
      int line = am + AM * i, k = k0 + ak + AK * i;
      bool in = line < M && k < to;
      if (!AALONG && weights && in) in = weights[k] != 0.f;
      ra[i] = fetch<VEC>(a.values + (ao + (AALONG ? k0 + AM * i * a.step : (k0 + AK * i) * a.step)), in ? (AALONG ? to - k : M - line) : 0);
    }
#pragma unroll
    for (int i = 0; i < BITEMS; i++) {
      int line = bn + BL * i, k = k0 + bk + BK * i;
      bool in = line < N && k < to;
      float w = !BALONG && weights && in ? weights[k] : 1.f;
      rb[i] = fetch<VEC>(b.values + (bo + (BALONG ? k0 + BL * i * b.step : (k0 + BK * i) * b.step)), in && w != 0.f ? (BALONG ? to - k : N - line) : 0);
      if (!BALONG && weights) rb[i].x *= w, rb[i].y *= w, rb[i].z *= w, rb[i].w *= w;
    }
  };
  auto store = [&](int side) {
#pragma unroll
    for (int i = 0; i < AITEMS; i++) {
      int at = t + 256 * i;
      if (AALONG) {
        float *p = as + (side * WIDE_K + at % 4 * 4) * AROW + at / 4;
        p[0] = ra[i].x, p[AROW] = ra[i].y, p[2 * AROW] = ra[i].z, p[3 * AROW] = ra[i].w;
      } else {
        *(float4 *)(as + (side * WIDE_K + at / (BM / 4)) * AROW + at % (BM / 4) * 4) = ra[i];
      }
    }
#pragma unroll
    for (int i = 0; i < BITEMS; i++) {
      int at = t + 256 * i;
      if (BALONG) {
        float *p = bs + (side * WIDE_K + at % 4 * 4) * BROW + at / 4;
        p[0] = rb[i].x, p[BROW] = rb[i].y, p[2 * BROW] = rb[i].z, p[3 * BROW] = rb[i].w;
      } else {
        *(float4 *)(bs + (side * WIDE_K + at / (BN / 4)) * BROW + at % (BN / 4) * 4) = rb[i];
      }
    }
  };
  float acc[BM / 16][BN / 16] = {}, column = 0;
  load(from);
  store(0);
  __syncthreads();
#pragma unroll 1
  for (int k0 = from, side = 0; k0 < to; k0 += WIDE_K, side ^= 1) {
    if (k0 + WIDE_K < to) load(k0 + WIDE_K);
    const float *pa = as + side * (WIDE_K * AROW) + ty * 4, *pb = bs + side * (WIDE_K * BROW) + tx * 4;
#pragma unroll
    for (int k = 0; k < WIDE_K; k++) {
      float ar[BM / 16], br[BN / 16];
#pragma unroll
      for (int i = 0; i < BM / 64; i++) {
        float4 v = *(const float4 *)(pa + k * AROW + 64 * i);
        ar[4 * i] = v.x, ar[4 * i + 1] = v.y, ar[4 * i + 2] = v.z, ar[4 * i + 3] = v.w;
      }
#pragma unroll
      for (int i = 0; i < BN / 64; i++) {
        float4 v = *(const float4 *)(pb + k * BROW + 64 * i);
        br[4 * i] = v.x, br[4 * i + 1] = v.y, br[4 * i + 2] = v.z, br[4 * i + 3] = v.w;
      }
#pragma unroll
      for (int i = 0; i < BM / 16; i++)
#pragma unroll
        for (int j = 0; j < BN / 16; j++) acc[i][j] += ar[i] * br[j];
    }
    if (columns && t < BN)
#pragma unroll
      for (int k = 0; k < WIDE_K; k++) column += bs[(side * WIDE_K + k) * BROW + t];
    if (k0 + WIDE_K < to) store(side ^ 1);
    __syncthreads();
  }
  if (columns && t < BN && n0 + t < N) columns[n0 + t] = column;
#pragma unroll
  for (int i = 0; i < BM / 16; i++) {
    int m = m0 + i / 4 * 64 + ty * 4 + i % 4;
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < BN / 64; j++) {
      int n = n0 + 64 * j + tx * 4;
      if (n < N) put(m, n, acc[i] + 4 * j, N - n);
    }
  }
}

// times: act(x*w + bias + plus), of rows [k] with w [k][n]; before, of a gelu, is what goes
// into it. Bias, plus and before may be null.
template <int BM, int BN, bool VEC>
__device__ __forceinline__ void timesOf(const float *x, const float *w, const float *bias, const float *plus, float *before, float *out, int M, int N, int K, Act act) {
  wide<BM, BN, true, false, VEC>(M, N, 0, K, {x, K}, {w, N}, nullptr, nullptr, [=](int m, int n, const float *v, int some) {
    size_t o = (size_t)m * N + n;
    float r[4], there[4], u[4];
    if (plus) load4(plus + o, there, some, VEC);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      u[j] = v[j];
      if (bias) u[j] += j < some ? bias[n + j] : 0.f;
      if (plus) u[j] += there[j];
      r[j] = act.kind == 5 ? geluAt(u[j]) : apply(act, u[j]);
    }
    if (act.kind == 5) store4(before + o, u, some, VEC);
    store4(out + o, r, some, VEC);
  });
}

// times_back: (d*w' + plus), times the slope of gate at its output, or a gelu's input, of rows
// [k] with w [n][k]. Plus may be null.
template <int BM, int BN, bool VEC>
__device__ __forceinline__ void timesBack(const float *d, const float *w, const float *plus, const float *at, Act gate, float *dx, int M, int N, int K) {
  wide<BM, BN, true, true, VEC>(M, N, 0, K, {d, K}, {w, K}, nullptr, nullptr, [=](int m, int n, const float *v, int some) {
    size_t o = (size_t)m * N + n;
    float r[4], there[4];
    if (plus) load4(plus + o, there, some, VEC);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      r[j] = plus ? v[j] + there[j] : v[j];
      if (j < some) r[j] = slope(gate, at, o + j, r[j]);
    }
    store4(dx + o, r, some, VEC);
  });
}

// times_sum: one of gridDim.z parts of the sum over rows of x times (weight times d), [m][n],
// and behind them, if there is a bias, of weight times d alone.
template <int BM, int BN, bool VEC>
__device__ __forceinline__ void timesSum(const float *x, const float *d, const float *weights, float *parts, int M, int N, int K, int bias) {
  int tiles = (K + WIDE_K - 1) / WIDE_K, from = (int)((long long)blockIdx.z * tiles / gridDim.z) * WIDE_K, to = (int)((long long)(blockIdx.z + 1) * tiles / gridDim.z) * WIDE_K;
  if (to > K) to = K;
  float *part = parts + (size_t)blockIdx.z * (M + bias) * N;
  wide<BM, BN, false, false, VEC>(M, N, from, to, {x, M}, {d, N}, weights, bias && blockIdx.x == 0 ? part + (size_t)M * N : nullptr,
                                  [=](int m, int n, const float *v, int some) { store4(part + (size_t)m * N + n, v, some, VEC); });
}

#define WIDE(NAME, BM, VEC)                                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256, 2) times_##NAME(const float *x, const float *w, const float *bias, const float *plus, float *before,    \
                                                                    float *out, int M, int N, int K, Act act) {                                             \
    timesOf<BM, BM, VEC>(x, w, bias, plus, before, out, M, N, K, act);                                                                                       \
  }                                                                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256, 2) times_back_##NAME(const float *d, const float *w, const float *plus, const float *at, Act gate,      \
                                                                         float *dx, int M, int N, int K) {                                                  \
    timesBack<BM, BM, VEC>(d, w, plus, at, gate, dx, M, N, K);                                                                                               \
  }                                                                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256, 2) times_sum_##NAME(const float *x, const float *d, const float *weights, float *parts, int M, int N,   \
                                                                        int K, int bias) {                                                                  \
    timesSum<BM, BM, VEC>(x, d, weights, parts, M, N, K, bias);                                                                                              \
  }
WIDE(128, 128, true)
WIDE(64, 64, true)
WIDE(odd, 64, false)

// parts_sum adds a sum's parts to it: a block is of 32 values, of which a warp adds every eighth
// part.
extern "C" __global__ void __launch_bounds__(256) parts_sum(const float *parts, float *sum, int n, int count) {
  __shared__ float sums[8][32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = blockIdx.x * 32 + lane;
  float s = 0;
  if (k < n)
#pragma unroll 4
    for (int i = warp; i < count; i += 8) s += parts[(size_t)i * n + k];
  sums[warp][lane] = s;
  __syncthreads();
  if (warp > 0 || k >= n) return;
  for (int i = 1; i < 8; i++) s += sums[i][lane];
  sum[k] += s;
}

// spread gives every place its example's weight.
extern "C" __global__ void spread(const float *weights, float *to, int n, int places) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) to[k] = weights[k / places];
}

// between: products of 64 rows of x with 64 rows of y, of length K: 4x4 values a thread of 256.
// Sums of 32 terms are formed and then added up, so that rounding stays small: every product
// is off by at most (34 + K/32) 2^-24 of the rows' lengths.
__device__ __forceinline__ void between(const float *x, int rowsX, const float *y, int rowsY, int K, float total[4][4]) {
  __shared__ float4 xs4[32 * 17], ys4[32 * 17];
  float *xs = (float *)xs4, *ys = (float *)ys4;
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) total[i][j] = 0;
#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += 32) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      int row = t / 32 + 8 * i, k = t % 32;
      bool in = k0 + k < K;
      xs[k * 68 + row] = in && row < rowsX ? x[(size_t)row * K + k0 + k] : 0.f;
      ys[k * 68 + row] = in && row < rowsY ? y[(size_t)row * K + k0 + k] : 0.f;
    }
    __syncthreads();
    float acc[4][4] = {};
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      float4 u = xs4[k * 17 + ty], v = ys4[k * 17 + tx];
      float ar[4] = {u.x, u.y, u.z, u.w}, br[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] += ar[i] * br[j];
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) total[i][j] += acc[i][j];
  }
}

// Pair is the two tiles of 64 places that a block compares, of one example.
struct Pair {
  int a, b, rowsA, rowsB, tiles;
};

__device__ __forceinline__ Pair pairOf(int places) {
  Pair p;
  p.tiles = (places + 63) / 64;
  p.a = blockIdx.x / p.tiles * 64, p.b = blockIdx.x % p.tiles * 64;
  p.rowsA = places - p.a, p.rowsB = places - p.b;
  return p;
}

// allowed is a square with what rounding may have taken from it: a share of the square of the
// places' lengths, added up. Of several tiles every one on the diagonal has as much as if all
// were like it.
__device__ __forceinline__ void allowed(double square, double lengths, double share, const Pair &p, const Room &r) {
  square = blockSum(square);
  lengths = blockSum(lengths);
  if (threadIdx.x == 0) {
    if (p.a == p.b) square += share * p.tiles * lengths * lengths;
    r.squares[(size_t)blockIdx.z * r.squaresRow + r.squares0 + blockIdx.x] = square;
  }
}

// times_square: the squared norm of an example's sum over places of x_t d_t', of whose x there
// is one value more, 1, if there is a bias: the products between all of its places.
extern "C" __global__ void __launch_bounds__(256) times_square(const float *x, const float *d, int places, int in, int out, int bias, double share, Room r) {
  Pair p = pairOf(places);
  size_t first = (size_t)blockIdx.z * places;
  float xx[4][4], dd[4][4];
  between(x + (first + p.a) * in, p.rowsA, x + (first + p.b) * in, p.rowsB, in, xx);
  between(d + (first + p.a) * out, p.rowsA, d + (first + p.b) * out, p.rowsB, out, dd);
  double square = 0, lengths = 0;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) square += ((double)xx[i][j] + bias) * dd[i][j];  // of places that are not there: times 0
  if (p.a == p.b && threadIdx.x / 16 == threadIdx.x % 16)
    for (int i = 0; i < 4; i++) lengths += sqrt(((double)xx[i][i] + bias) * dd[i][i]);
  allowed(square, lengths, share, p, r);
}

// Of 64 places, products with each other are the same either way: of 8x8 blocks of 8x8, 36 are
// computed, by as many threads; three such groups share the sum. Block (i, j) is of the places
// 4i to 4i+3 and 32+4i to 32+4i+3, and the same of j.
enum { HALF_K = 12, HALF_ROW = 68, HALF_BLOCKS = 36, HALF_THREADS = 3 * HALF_BLOCKS, HALF_VALUES = 64 * HALF_BLOCKS };

__device__ __forceinline__ void blockOf(int p, int &i, int &j) {
  i = 0;
  while (p >= 8 - i) p -= 8 - i, i++;
  j = i + p;
}

// half: products of at most 64 rows of x with each other, of length K; 128 threads. Sums of 32
// terms are formed and then added up, in every thread's own totals; halfAt is a product then.
template <bool VEC>
__device__ __forceinline__ void half(const float *x, int rows, int K, float *tile, float *totals) {
  int t = threadIdx.x, group = t / HALF_BLOCKS, bi, bj;
  blockOf(t % HALF_BLOCKS, bi, bj);
  const int ITEMS = 64 * HALF_K / 4, EACH = HALF_K / 4;
  float4 r[2];
  auto load = [&](int k0) {
#pragma unroll
    for (int q = 0; q < 2; q++) {
      int at = t + 128 * q, row = at / EACH, k = k0 + at % EACH * 4;
      if (at < ITEMS) r[q] = fetch<VEC>(x + row * K + k, row < rows ? K - k : 0);
    }
  };
  auto store = [&](int side) {
#pragma unroll
    for (int q = 0; q < 2; q++) {
      int at = t + 128 * q;
      float *to = tile + (side * HALF_K + at % EACH * 4) * HALF_ROW + at / EACH;
      if (at < ITEMS) to[0] = r[q].x, to[HALF_ROW] = r[q].y, to[2 * HALF_ROW] = r[q].z, to[3 * HALF_ROW] = r[q].w;
    }
  };
  const float *left = tile + group * HALF_ROW + 4 * bi, *right = tile + group * HALF_ROW + 4 * bj;
  float acc[8][8] = {};
  load(0);
  store(0);
  __syncthreads();
#pragma unroll 1
  for (int k0 = 0, n = 1, side = 0; k0 < K; k0 += HALF_K, n++, side ^= HALF_K * HALF_ROW) {
    if (k0 + HALF_K < K) load(k0 + HALF_K);
    if (t < HALF_THREADS) {
#pragma unroll
      for (int k = 0; k < HALF_K; k += 3) {
        const float *l = left + side + k * HALF_ROW, *m = right + side + k * HALF_ROW;
        float4 a = *(const float4 *)l, b = *(const float4 *)(l + 32), c = *(const float4 *)m, d = *(const float4 *)(m + 32);
        float ar[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, br[8] = {c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
          for (int j = 0; j < 8; j++) acc[i][j] += ar[i] * br[j];
      }
      if (n % 8 == 0 || k0 + HALF_K >= K)
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
          for (int j = 0; j < 8; j++) {
            float *to = totals + (8 * i + j) * HALF_THREADS + t;
            *to = n <= 8 ? acc[i][j] : *to + acc[i][j];
            acc[i][j] = 0.f;
          }
    }
    if (k0 + HALF_K < K) store(side ? 0 : 1);
    __syncthreads();
  }
}

// halfAt is value v of a block, of all of its sum's shares.
__device__ __forceinline__ float halfAt(const float *totals, int v, int block) {
  const float *at = totals + v * HALF_THREADS + block;
  return at[0] + at[HALF_BLOCKS] + at[2 * HALF_BLOCKS];
}

// times_half is times_square of at most 64 places.
template <bool VEC>
__device__ __forceinline__ void timesHalf(const float *x, const float *d, int places, int in, int out, int bias, double share, const Room &r) {
  __shared__ float4 tile[2 * HALF_K * HALF_ROW / 4];
  __shared__ float totals[64 * HALF_THREADS], xx[HALF_VALUES];
  __shared__ double sums[2][4];
  int t = threadIdx.x, e = blockIdx.x;
  half<VEC>(x + (size_t)e * places * in, places, in, (float *)tile, totals);
  for (int at = t; at < HALF_VALUES; at += 128) xx[at] = halfAt(totals, at / HALF_BLOCKS, at % HALF_BLOCKS);
  __syncthreads();
  half<VEC>(d + (size_t)e * places * out, places, out, (float *)tile, totals);
  double square = 0, lengths = 0;
  for (int at = t; at < HALF_VALUES; at += 128) {
    int v = at / HALF_BLOCKS, i, j;
    blockOf(at % HALF_BLOCKS, i, j);
    double p = ((double)xx[at] + bias) * halfAt(totals, v, at % HALF_BLOCKS);
    square += i == j ? p : 2 * p;
    if (i == j && v / 8 == v % 8) lengths += sqrt(p);
  }
  square = warpSum(square), lengths = warpSum(lengths);
  if (t % 32 == 0) sums[0][t / 32] = square, sums[1][t / 32] = lengths;
  __syncthreads();
  if (t != 0) return;
  for (int i = 1; i < 4; i++) square += sums[0][i], lengths += sums[1][i];
  r.squares[(size_t)e * r.squaresRow + r.squares0] = square + share * lengths * lengths;
}
extern "C" __global__ void __launch_bounds__(128, 4) times_half_odd(const float *x, const float *d, int places, int in, int out, int bias, double share, Room r) {
  timesHalf<false>(x, d, places, in, out, bias, share, r);
}

extern "C" __global__ void __launch_bounds__(128, 4) times_half(Halves all, int places) {
  const HalfOf &l = all.of[blockIdx.y];
  Room r = all.room;
  r.squares0 = l.squares0;
  timesHalf<true>(l.x, l.d, places, l.in, l.out, l.bias, l.share, r);
}
