// Products of matrices on tensor cores: linear layers on every place of an example, both ways,
// and sums of their gradients times weights, as tokens.cuh has them for every device.
#pragma once
#include "ends.cuh"
#include "tensor.cuh"

// Staged is one side of a block's product: LINES of KT values of k, on their way from a matrix
// to shared memory, where they lie in parts: line by line as the matrix does, or k by k, with
// 16 bytes between so that eight lines, or k, begin in different banks. A value is taken apart
// once, when it is stored.
template <int LINES, int KT, bool ALONG, int THREADS>
struct Staged {
  enum {
    PITCH = (ALONG ? KT : LINES) + 8,
    PART = (ALONG ? LINES : KT) * PITCH,
    ALL = PARTS * PART,
    ITEMS = LINES * KT / (4 * THREADS),
    EACH = (ALONG ? KT : LINES) / 4,  // items that lie side by side
    STEP = THREADS / EACH,            // lines, or k, from one item of a thread to its next
  };
  float4 items[ITEMS];
  float weights[ITEMS];
  int line, k;

  __device__ __forceinline__ Staged() {
    int along = threadIdx.x % EACH * 4, across = threadIdx.x / EACH;
    line = ALONG ? across : along, k = ALONG ? along : across;
  }

  // load reads k0 and the next of a matrix' lines from first on, of as many as there are; and
  // their weights, unless they are null. Nothing waits for what it reads before store.
  __device__ __forceinline__ void load(Matrix m, int first, int lines, int k0, int to, const float *ofK) {
    unsigned at = ALONG ? (first + line) * m.step + k0 + k : (k0 + k) * m.step + first + line;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      bool in = first + line + (ALONG ? STEP * i : 0) < lines && k0 + k + (ALONG ? 0 : STEP * i) < to;
      items[i] = fetch<true>(m.values + (at + STEP * i * m.step), in ? 4 : 0);
      weights[i] = ofK && in ? ofK[k0 + k + (ALONG ? 0 : STEP * i)] : 1.f;
    }
  }

  // choose leaves out what has no weight, finite or not.
  __device__ __forceinline__ void choose() {
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
      if (weights[i] == 0.f) items[i] = make_float4(0.f, 0.f, 0.f, 0.f);
  }

  // weigh multiplies by weights what is left, and adds it to sums.
  __device__ __forceinline__ void weigh(float (&sums)[4]) {
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      items[i].x *= weights[i], items[i].y *= weights[i], items[i].z *= weights[i], items[i].w *= weights[i];
      sums[0] += items[i].x, sums[1] += items[i].y, sums[2] += items[i].z, sums[3] += items[i].w;
    }
  }

  __device__ __forceinline__ void store(unsigned short *room) const {
    room += ALONG ? line * PITCH + k : k * PITCH + line;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      unsigned x[PARTS], y[PARTS];
      divide(items[i].x, items[i].y, x);
      divide(items[i].z, items[i].w, y);
#pragma unroll
      for (int p = 0; p < PARTS; p++) *(uint2 *)(room + p * PART + STEP * i * PITCH) = make_uint2(x[p], y[p]);
    }
  }

  // tile is 16 lines of 16 k, as the left side of a product has them.
  static __device__ __forceinline__ void tile(Tile (&to)[PARTS], const unsigned short *room, int line, int k) {
    int lane = threadIdx.x % 32;
    room += ALONG ? (line + lane % 16) * PITCH + k + lane / 16 * 8 : (k + lane % 8 + lane / 16 * 8) * PITCH + line + lane / 8 % 2 * 8;
#pragma unroll
    for (int p = 0; p < PARTS; p++) fetchTile<!ALONG>(to[p], room + p * PART);
  }

  // strips are 16 lines of 16 k, as the right side has them.
  static __device__ __forceinline__ void strips(Strip (&one)[PARTS], Strip (&other)[PARTS], const unsigned short *room, int line, int k) {
    int lane = threadIdx.x % 32;
    room += ALONG ? (line + lane % 8 + lane / 16 * 8) * PITCH + k + lane / 8 % 2 * 8 : (k + lane % 16) * PITCH + line + lane / 16 * 8;
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
      Tile both;
      fetchTile<!ALONG>(both, room + p * PART);
      one[p][0] = both[0], one[p][1] = both[1], other[p][0] = both[2], other[p][1] = both[3];
    }
  }
};

// Plan is what a block computes: BM x BN values, WM x WN a warp, of a sum over k in steps of
// KT, which take turns in two halves of shared memory.
template <int BM, int BN, int KT, int WM, int WN>
struct Plan {
  enum { M = BM, N = BN, K = KT, TILES = WM / 16, STRIPS = WN / 8, DOWN = BM / WM, THREADS = BM / WM * (BN / WN) * 32 };

  // multiplied is a block's product of lines m0 and n0 and the next ones. Weights, unless they
  // are null, are of every k: those of weight 0 are left out of both sides, the others multiply
  // b. Columns, unless it is null, gets the sums of b's lines. Lengths and steps are multiples of
  // 4. Every 16 of k are a sum of their own on tensor cores.
  template <bool AALONG, bool BALONG, class Out>
  static __device__ __forceinline__ void multiplied(int m0, int lines, int n0, int columnCount, int from, int to, Matrix a, Matrix b, const float *weights, float *columns, Out put) {
    typedef Staged<BM, KT, AALONG, THREADS> Left;
    typedef Staged<BN, KT, BALONG, THREADS> Right;
    DYNAMIC(room);
    unsigned short *sides[2] = {(unsigned short *)room, (unsigned short *)room + Left::ALL + Right::ALL};
    int t = threadIdx.x, wm = t / 32 % DOWN * WM, wn = t / 32 / DOWN * WN;
    Left left;
    Right right;
    float acc[TILES][STRIPS][4] = {}, sums[4] = {};
    auto load = [&](int k0) {
      left.load(a, m0, lines, k0, to, weights);
      right.load(b, n0, columnCount, k0, to, weights);
    };
    auto store = [&](unsigned short *side) {
      if (weights) {
        left.choose();
        right.choose();
        right.weigh(sums);
      }
      left.store(side);
      right.store(side + Left::ALL);
    };
    load(from);
    store(sides[0]);
    __syncthreads();
#pragma unroll 1
    for (int k0 = from, side = 0; k0 < to; k0 += KT, side ^= 1) {
      if (k0 + KT < to) load(k0 + KT);
      const unsigned short *now = side ? sides[1] : sides[0];
#pragma unroll
      for (int k = 0; k < KT; k += 16) {
        Strip bs[STRIPS][PARTS];
#pragma unroll
        for (int j = 0; j < STRIPS; j += 2) Right::strips(bs[j], bs[j + 1], now + Left::ALL, wn + 8 * j, k);
#pragma unroll
        for (int i = 0; i < TILES; i++) {
          Tile as[PARTS];
          float s[STRIPS][4] = {};
          Left::tile(as, now, wm + 16 * i, k);
          multiplyRow(s, as, bs);
#pragma unroll
          for (int j = 0; j < STRIPS; j++)
#pragma unroll
            for (int c = 0; c < 4; c++) acc[i][j][c] += s[j][c];
        }
      }
      if (k0 + KT < to) store(side ? sides[0] : sides[1]);
      __syncthreads();
    }
    if (columns) {  // threads that have the same four lines of b follow one another
      if (!BALONG) *(float4 *)(room + 4 * t) = make_float4(sums[0], sums[1], sums[2], sums[3]);
      __syncthreads();
      if (!BALONG && t < BN && n0 + t < columnCount) {
        float s = 0;
        for (int i = 0; i < Right::STEP; i++) s += room[i * BN + t];
        columns[n0 + t] = s;
      }
    }
    int m = m0 + wm + t % 32 / 4, n = n0 + wn + t % 4 * 2;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < STRIPS; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
          if (m + 16 * i + 8 * h < lines && n + 8 * j < columnCount) put(m + 16 * i + 8 * h, n + 8 * j, acc[i][j][2 * h], acc[i][j][2 * h + 1]);
  }
};

// A product's blocks that have the same rows follow one another: rows are many, columns few.
struct Where {
  int m0, n0;
};
template <class P>
__device__ __forceinline__ Where blockAt(int N) {
  int across = (N + P::N - 1) / P::N;
  return {(int)blockIdx.x / across * P::M, (int)blockIdx.x % across * P::N};
}

// One reads and writes two values at a time.
template <class End>
struct One {
  End end;
  __device__ __forceinline__ void operator()(int m, int n, float u, float v) const {
    Beside<2> beside;
    float both[2] = {u, v};
    end.read(beside, m, n);
    end.write(both, m, n, beside);
  }
};

// tensor_times: rows [k] with w [k][n].
template <class P>
__device__ __forceinline__ void tensorTimes(const float *x, const float *w, const float *bias, const float *plus, float *before, float *out, int M, int N, int K, Act act) {
  Where at = blockAt<P>(N);
  if (act.kind == 5)
    P::template multiplied<true, false>(at.m0, M, at.n0, N, 0, K, {x, K}, {w, N}, nullptr, nullptr, One<TimesEnd<true>>{{bias, plus, before, out, N, act}});
  else
    P::template multiplied<true, false>(at.m0, M, at.n0, N, 0, K, {x, K}, {w, N}, nullptr, nullptr, One<TimesEnd<false>>{{bias, plus, before, out, N, act}});
}

// tensor_times_back: rows [k] with w [n][k].
template <class P>
__device__ __forceinline__ void tensorBack(const float *d, const float *w, const float *plus, const float *gateAt, Act gate, float *dx, int M, int N, int K) {
  Where at = blockAt<P>(N);
  if (gate.kind == 5)
    P::template multiplied<true, true>(at.m0, M, at.n0, N, 0, K, {d, K}, {w, K}, nullptr, nullptr, One<BackEnd<true>>{{plus, gateAt, dx, N, gate}});
  else
    P::template multiplied<true, true>(at.m0, M, at.n0, N, 0, K, {d, K}, {w, K}, nullptr, nullptr, One<BackEnd<false>>{{plus, gateAt, dx, N, gate}});
}

// tensor_times_sum: parts of the sums over K rows of layers' x times (weight times d).
template <class P>
__device__ __forceinline__ void tensorSum(const float *weights, const Summeds &all, int K) {
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  const Summed &l = all.of[i];
  int N = l.n, across = (N + P::N - 1) / P::N, down = (l.m + P::M - 1) / P::M, b = blockIdx.x - l.first, z = b / (across * down);
  int m0 = b / across % down * P::M, n0 = b % across * P::N, tiles = (K + P::K - 1) / P::K;
  int from = (int)((long long)z * tiles / all.split) * P::K, to = (int)((long long)(z + 1) * tiles / all.split) * P::K;
  if (to > K) to = K;
  float *part = l.parts + (size_t)z * (l.m + l.bias) * N;
  P::template multiplied<false, false>(m0, l.m, n0, N, from, to, {l.x, l.m}, {l.d, N}, weights, l.bias && m0 == 0 ? part + (size_t)l.m * N : nullptr,
                                       [=](int m, int n, float u, float v) { *(float2 *)(part + (size_t)m * N + n) = make_float2(u, v); });
}

// tensor_parts_sum adds the parts of layers' sums to them: a block is of 32 values of one, of
// which a warp adds every eighth part.
extern "C" __global__ void __launch_bounds__(256) tensor_parts_sum(Summeds all) {
  __shared__ float sums[8][32];
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].adds) i++;
  const Summed &l = all.of[i];
  int n = (l.m + l.bias) * l.n, lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = (blockIdx.x - l.adds) * 32 + lane;
  float s = 0;
  if (k < n)
#pragma unroll 4
    for (int z = warp; z < all.split; z += 8) s += l.parts[(size_t)z * n + k];
  sums[warp][lane] = s;
  __syncthreads();
  if (warp > 0 || k >= n) return;
  for (int z = 1; z < 8; z++) s += sums[z][lane];
  l.sum[k] += s;
}

// Kernels are named by their blocks' lines, columns and warps. Tiles of 128 are for many rows,
// smaller ones for few, so that no processor is idle; BLOCKS is how many a processor has at a
// time. The way back has more to do with every sum, and so fewer of them a warp.
typedef Plan<128, 64, 16, 64, 32> Plan128x64x4;
typedef Plan<128, 64, 16, 32, 32> Plan128x64x8;
typedef Plan<64, 64, 32, 32, 32> Plan64x64x4;
typedef Plan<32, 32, 64, 16, 16> Plan32x32x4;
#define TENSOR_TIMES(NAME, BLOCKS)                                                                                                                           \
  extern "C" __global__ void __launch_bounds__(Plan##NAME::THREADS, BLOCKS) tensor_times_##NAME(const float *x, const float *w, const float *bias,           \
                                                                                                const float *plus, float *before, float *out, int M, int N,  \
                                                                                                int K, Act act) {                                            \
    tensorTimes<Plan##NAME>(x, w, bias, plus, before, out, M, N, K, act);                                                                                    \
  }
#define TENSOR_BACK(NAME, BLOCKS)                                                                                                                            \
  extern "C" __global__ void __launch_bounds__(Plan##NAME::THREADS, BLOCKS) tensor_times_back_##NAME(const float *d, const float *w, const float *plus,      \
                                                                                                     const float *at, Act gate, float *dx, int M, int N,     \
                                                                                                     int K) {                                                \
    tensorBack<Plan##NAME>(d, w, plus, at, gate, dx, M, N, K);                                                                                               \
  }
#define TENSOR_SUM(NAME, BLOCKS)                                                                                                                             \
  extern "C" __global__ void __launch_bounds__(Plan##NAME::THREADS, BLOCKS) tensor_times_sum_##NAME(const float *weights, Summeds all, int K) {              \
    tensorSum<Plan##NAME>(weights, all, K);                                                                                                                  \
  }
TENSOR_TIMES(128x64x4, 3)
TENSOR_TIMES(64x64x4, 3)
TENSOR_TIMES(32x32x4, 3)
TENSOR_BACK(128x64x8, 2)
TENSOR_BACK(64x64x4, 3)
TENSOR_BACK(32x32x4, 3)
TENSOR_SUM(128x64x4, 3)
TENSOR_SUM(64x64x4, 3)
TENSOR_SUM(32x32x4, 3)
