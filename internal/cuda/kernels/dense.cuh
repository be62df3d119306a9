// Linear layers: products of examples with weights [in][out], both ways, and the weighted
// sum of their gradients, of which no single one is formed.
#pragma once
#include "common.cuh"

// Side is one side of a product: what lies side by side is step values after another.
struct Side {
  const float *values;
  int step;
};

// SUM_MOST is how many k a weighted product may have.
enum { SUM_MOST = 1024 };

// product: 128 x BN values from m0, n0 on, a block of 128 threads, 8 x BN/8 each, of a sum over K in tiles
// of KT, which take turns on so many SIDES of the shared memory. A and B lie along K where
// ALONG and BALONG say so. WEIGHTED: every k has a weight; those of weight 0 are left out of
// both sides, the others multiply B; and A's values from the last step on are 1. Of what lies
// along K in A, squares has the sums of its squares, unless it is null.
template <int BN, int KT, int SIDES, bool WEIGHTED, bool ALONG, bool BALONG, class Out>
__device__ __forceinline__ void product(int m0, int M, int n0, int N, int from, int to, Side a, Side b, const float *weights, double *squares, Out put) {
  const int BM = 128, AROW = BM + 4, BROW = BN + 4, TN = BN / 8, AITEMS = BM * KT / 512, BITEMS = BN * KT / 512, KQ = KT / 4;
  __shared__ float4 as4[SIDES * KT * AROW / 4], bs4[SIDES * KT * BROW / 4];
  __shared__ float ws[WEIGHTED ? SUM_MOST : 1];
  float *as = (float *)as4, *bs = (float *)bs4;
  int t = threadIdx.x, tx = t % 8, ty = t / 8;
  bool vectorA = aligned(a.values) && a.step % 4 == 0, vectorB = aligned(b.values) && b.step % 4 == 0;
  float ra[AITEMS][4], rb[BITEMS][4], acc[8][TN] = {};
  double square[AITEMS] = {};
  auto load = [&](int k0) {
#pragma unroll
    for (int i = 0; i < AITEMS; i++) {
      int at = t + 128 * i, m = m0 + (ALONG ? at / KQ : at % 32 * 4), k = k0 + (ALONG ? at % KQ * 4 : at / 32);
      ra[i][0] = ra[i][1] = ra[i][2] = ra[i][3] = 0.f;
      if (m < M && k < to && !(WEIGHTED && ws[k - from] == 0.f))
        load4(a.values + (ALONG ? (size_t)m * a.step + k : (size_t)k * a.step + m), ra[i], ALONG ? to - k : WEIGHTED ? a.step - m : M - m, vectorA);
    }
#pragma unroll
    for (int i = 0; i < BITEMS; i++) {
      int at = t + 128 * i, n = n0 + (BALONG ? at / KQ : at % (BN / 4) * 4), k = k0 + (BALONG ? at % KQ * 4 : at / (BN / 4));
      rb[i][0] = rb[i][1] = rb[i][2] = rb[i][3] = 0.f;
      if (n < N && k < to && !(WEIGHTED && ws[k - from] == 0.f)) load4(b.values + (BALONG ? (size_t)n * b.step + k : (size_t)k * b.step + n), rb[i], BALONG ? to - k : N - n, vectorB);
    }
  };
  auto store = [&](int side, int k0) {  // what load has read since: nothing before waits for it
#pragma unroll
    for (int i = 0; i < AITEMS; i++) {
      int at = t + 128 * i;
      if (ALONG && squares)
#pragma unroll
        for (int j = 0; j < 4; j++) square[i] += (double)ra[i][j] * ra[i][j];
      if (WEIGHTED)
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (m0 + at % 32 * 4 + j >= a.step) ra[i][j] = 1.f;
      float *p = as + side * KT * AROW + (ALONG ? at % KQ * 4 * AROW + at / KQ : at / 32 * AROW + at % 32 * 4);
      if (ALONG)
#pragma unroll
        for (int j = 0; j < 4; j++) p[j * AROW] = ra[i][j];
      else
        *(float4 *)p = make_float4(ra[i][0], ra[i][1], ra[i][2], ra[i][3]);
    }
#pragma unroll
    for (int i = 0; i < BITEMS; i++) {
      int at = t + 128 * i;
      if (WEIGHTED) {
        int k = k0 + at / (BN / 4);
        float w = k < to ? ws[k - from] : 0.f;
#pragma unroll
        for (int j = 0; j < 4; j++) rb[i][j] *= w;
      }
      float *p = bs + side * KT * BROW + (BALONG ? at % KQ * 4 * BROW + at / KQ : at / (BN / 4) * BROW + at % (BN / 4) * 4);
      if (BALONG)
#pragma unroll
        for (int j = 0; j < 4; j++) p[j * BROW] = rb[i][j];
      else
        *(float4 *)p = make_float4(rb[i][0], rb[i][1], rb[i][2], rb[i][3]);
    }
  };
  if (WEIGHTED) {
    for (int i = t; i < to - from; i += 128) ws[i] = weights[from + i];
    __syncthreads();
  }
  load(from);
  store(0, from);
  __syncthreads();
#pragma unroll 1
  for (int k0 = from, side = 0; k0 < to; k0 += KT, side ^= SIDES - 1) {
    if (k0 + KT < to) load(k0 + KT);
    const float *pa = as + side * KT * AROW + ty * 4, *pb = bs + side * KT * BROW + tx * 4;
#pragma unroll
    for (int k = 0; k < KT; k++) {
      float ar[8], br[TN];
      *(float4 *)ar = *(const float4 *)(pa + k * AROW), *(float4 *)(ar + 4) = *(const float4 *)(pa + k * AROW + BM / 2);
#pragma unroll
      for (int j = 0; j < TN; j += 4) *(float4 *)(br + j) = *(const float4 *)(pb + k * BROW + j * 8);
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) acc[i][j] += ar[i] * br[j];
    }
    if (SIDES == 1) __syncthreads();
    if (k0 + KT < to) store(side ^ (SIDES - 1), k0 + KT);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      int m = m0 + (i < 4 ? ty * 4 + i : BM / 2 + ty * 4 + i - 4), n = n0 + tx * 4 + j * 8;
      if (m < M && n < N) put(m, n, acc[i] + j, N - n);
    }
  if (ALONG && squares)
#pragma unroll
    for (int i = 0; i < AITEMS; i++) {  // KQ threads side by side had a row
      for (int o = 1; o < KQ; o *= 2) square[i] += __shfl_xor_sync(~0u, square[i], o);
      int m = m0 + t / KQ + 128 / KQ * i;
      if (t % KQ == 0 && m < M) squares[m] = square[i];
    }
}

// part is where part z of a sum of n begins: at a whole tile.
__device__ __forceinline__ int part(int n, int z, int parts) {
  int from = (int)((long long)z * ((n + 15) / 16) / parts) * 16;
  return from < n ? from : n;
}

// dense_64: one of gridDim.z parts of x*w, of g examples; and of the squares of x, unless
// those are nobody's. Of few outputs: dense_32.
extern "C" __global__ void __launch_bounds__(128) dense_64(const float *x, const float *w, float *parts, int g, int in, int out, double *squares) {
  float *to = parts + (size_t)blockIdx.z * g * out;
  bool vector = out % 4 == 0;
  product<64, 16, 2, false, true, false>(blockIdx.x * 128, g, blockIdx.y * 64, out, part(in, blockIdx.z, gridDim.z), part(in, blockIdx.z + 1, gridDim.z), {x, in}, {w, out}, nullptr,
                                         squares && blockIdx.y == 0 ? squares + (size_t)blockIdx.z * g : nullptr,
                                         [=](int m, int n, const float *v, int some) { store4(to + (size_t)m * out + n, v, some, vector); });
}

// dense_end adds a product's parts in their order, and the bias.
extern "C" __global__ void dense_end(const float *parts, const float *bias, float *out, int n, int units, int count, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n) return;
  float s = bias ? bias[k % units] : 0.f;
#pragma unroll 8
  for (int i = 0; i < count; i++) s += parts[(size_t)i * n + k];
  out[k] = apply(act, s);
}

// dense_back: the gradient at the input, times the slope of gate at its output y. Of few
// outputs: few_back.
extern "C" __global__ void __launch_bounds__(128) dense_back(const float *d, const float *w, const float *y, Act gate, float *dx, int g, int in, int out) {
  bool vector = in % 4 == 0;
  product<64, 16, 2, false, true, true>(blockIdx.x * 128, g, blockIdx.y * 64, in, 0, out, {d, out}, {w, out}, nullptr, nullptr, [=](int m, int n, const float *v, int some) {
    size_t o = (size_t)m * in + n;
    float there[4], r[4];
    load4(y + o, there, some, vector);
#pragma unroll
    for (int j = 0; j < 4; j++) r[j] = slopeAt(gate, there[j], v[j]);
    store4(dx + o, r, some, vector);
  });
}

// Linear is a linear layer whose examples' gradients are added up, weighted, in parts: first
// is where it begins, counted in blocks.
struct Linear {
  const float *x, *d;
  float *parts, *sum;
  int in, out, bias, split, first;
};

// Linears are layers that a launch has in common.
struct Linears {
  Linear of[4];
  int count;
};

// linearOf is which layer a block belongs to.
__device__ __forceinline__ int linearOf(const Linears &all) {
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  return i;
}

// dense_sums_64: one part of the sum of the examples' weighted gradients: those of weights
// and, if there are any, of biases, whose input is 1. An example of weight 0 is left out: 0
// times what is not finite is no number. Of few outputs: dense_sums_32.
extern "C" __global__ void __launch_bounds__(128) dense_sums_64(const float *weights, Linears all, int g) {
  const Linear &l = all.of[linearOf(all)];
  int rows = l.in + l.bias, down = (rows + 127) / 128, across = (l.out + 63) / 64, b = blockIdx.x - l.first, z = b / (down * across);
  float *to = l.parts + (size_t)z * rows * l.out;
  int out = l.out;
  bool vector = out % 4 == 0;
  product<64, 16, 2, true, false, false>(b % down * 128, rows, b / down % across * 64, out, part(g, z, l.split), part(g, z + 1, l.split), {l.x, l.in}, {l.d, out}, weights, nullptr,
                                         [=](int m, int n, const float *v, int some) { store4(to + (size_t)m * out + n, v, some, vector); });
}

// dense_adds adds the parts of layers' sums in their order to the sums.
extern "C" __global__ void __launch_bounds__(256) dense_adds(Linears all) {
  const Linear &l = all.of[linearOf(all)];
  int n = (l.in + l.bias) * l.out, k = (blockIdx.x - l.first) * 256 + threadIdx.x;
  if (k >= n) return;
  float s = 0.f;
#pragma unroll 4
  for (int i = 0; i < l.split; i++) s += l.parts[(size_t)i * n + k];
  l.sum[k] += s;
}

// dense_square: the squared norm of one example's gradient, |x|^2 |d|^2, of whose x there
// is one value more, 1, if there is a bias. A block of 256 threads.
extern "C" __global__ void __launch_bounds__(256) dense_square(const float *x, const float *d, int in, int out, int bias, Room r) {
  int t = threadIdx.x, e = blockIdx.x;
  double a = 0, b = 0;
#pragma unroll 8
  for (int k = t; k < in; k += 256) a += (double)x[(size_t)e * in + k] * x[(size_t)e * in + k];
  for (int k = t; k < out; k += 256) b += (double)d[(size_t)e * out + k] * d[(size_t)e * out + k];
  a = blockSum(a);
  b = blockSum(b);
  if (t == 0) r.squares[(size_t)e * r.squaresRow + r.squares0] = (a + bias) * b;
}
