// Linear layers: products of examples with weights [in][out], both ways, and the weighted
// sum of their gradients, of which no single one is formed.
#pragma once
#include "common.cuh"

// Side is one side of a product: its value at (line, k) lies at line*lineStep + k*kStep.
struct Side {
  const float *values;
  int lineStep, kStep;
};

// product: 64x32 values a block of 128 threads, 4x4 each, of a sum over K in tiles of 32.
// A and B lie along K where ALONG and BALONG say so. Weights, unless they are null, are of
// every k: those of weight 0 are left out of both sides, the others multiply B.
template <bool ALONG, bool BALONG, class Out>
__device__ __forceinline__ void product(int M, int N, int from, int to, Side a, Side b, const float *weights, Out put) {
  __shared__ float4 as4[32 * 17], bs4[32 * 9];
  float *as = (float *)as4, *bs = (float *)bs4;
  int t = threadIdx.x, tx = t % 8, ty = t / 8, m0 = blockIdx.x * 64, n0 = blockIdx.y * 32;
  int am = ALONG ? t / 32 : t % 64, ak = ALONG ? t % 32 : t / 64, bn = BALONG ? t / 32 : t % 32, bk = BALONG ? t % 32 : t / 32;
  const float *pa = a.values + (long long)(m0 + am) * a.lineStep + (long long)(from + ak) * a.kStep;
  const float *pb = b.values + (long long)(n0 + bn) * b.lineStep + (long long)(from + bk) * b.kStep;
  const int AM = ALONG ? 4 : 0, AK = ALONG ? 0 : 2, BN = BALONG ? 4 : 0, BK = BALONG ? 0 : 4;  // from one item to the next
  long long stepA = ALONG ? 4LL * a.lineStep : 2LL * a.kStep, stepB = BALONG ? 4LL * b.lineStep : 4LL * b.kStep;
  float ra[16], rb[8], acc[4][4] = {};
  auto load = [&](int k0) {
#pragma unroll
    for (int i = 0; i < 16; i++) {
      int k = k0 + ak + AK * i;
      bool in = k < to && m0 + am + AM * i < M;
      if (weights && in) in = weights[k] != 0.f;
      ra[i] = in ? pa[i * stepA] : 0.f;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      int k = k0 + bk + BK * i;
      bool in = k < to && n0 + bn + BN * i < N;
      float w = weights && in ? weights[k] : 1.f;
      rb[i] = in && w != 0.f ? w * pb[i * stepB] : 0.f;
    }
    pa += 32LL * a.kStep, pb += 32LL * b.kStep;
  };
  load(from);
#pragma unroll 1
  for (int k0 = from; k0 < to; k0 += 32) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) as[(ak + AK * i) * 68 + am + AM * i] = ra[i];
#pragma unroll
    for (int i = 0; i < 8; i++) bs[(bk + BK * i) * 36 + bn + BN * i] = rb[i];
    __syncthreads();
    if (k0 + 32 < to) load(k0 + 32);
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      float4 u = as4[k * 17 + ty], v = bs4[k * 9 + tx];
      float ar[4] = {u.x, u.y, u.z, u.w}, br[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] += ar[i] * br[j];
    }
  }
  int n = n0 + tx * 4;
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (m0 + ty * 4 + i < M && n < N) put(m0 + ty * 4 + i, n, acc[i], N - n);
}

// dense: one of gridDim.z parts of x*w, of g examples.
extern "C" __global__ void __launch_bounds__(128) dense(const float *x, const float *w, float *parts, int g, int in, int out) {
  int tiles = (in + 31) / 32, from = (int)((long long)blockIdx.z * tiles / gridDim.z) * 32, to = (int)((long long)(blockIdx.z + 1) * tiles / gridDim.z) * 32;
  if (to > in) to = in;
  float *part = parts + (size_t)blockIdx.z * g * out;
  bool vector = out % 4 == 0;
  product<true, false>(g, out, from, to, {x, in, 1}, {w, 1, out}, nullptr,
                       [=](int m, int n, const float *v, int some) { store4(part + (size_t)m * out + n, v, some, vector); });
}

// dense_end adds a product's parts in their order, and the bias.
extern "C" __global__ void dense_end(const float *parts, const float *bias, float *out, int n, int units, int count, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n) return;
  float s = bias ? bias[k % units] : 0.f;
  for (int i = 0; i < count; i++) s += parts[(size_t)i * n + k];
  out[k] = apply(act, s);
}

// dense_back: the gradient at the input, times the slope of gate at its output y.
extern "C" __global__ void __launch_bounds__(128) dense_back(const float *d, const float *w, const float *y, Act gate, float *dx, int g, int in, int out) {
  bool vector = in % 4 == 0;
  product<true, true>(g, in, 0, out, {d, out, 1}, {w, out, 1}, nullptr, [=](int m, int n, const float *v, int some) {
    size_t o = (size_t)m * in + n;
    float there[4], r[4];
    load4(y + o, there, some, vector);
#pragma unroll
    for (int j = 0; j < 4; j++) r[j] = slopeAt(gate, there[j], v[j]);
    store4(dx + o, r, some, vector);
  });
}

// dense_sum adds the examples' weighted gradients to sum. An example of weight 0 is left
// out: 0 times what is not finite is no number.
extern "C" __global__ void __launch_bounds__(128) dense_sum(const float *x, const float *d, const float *weights, float *sum, int g, int in, int out) {
  product<false, false>(in, out, 0, g, {x, 1, in}, {d, 1, out}, weights, [=](int m, int n, const float *v, int some) {
    float *to = sum + (size_t)m * out + n;
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (j < some) to[j] += v[j];
  });
}

// dense_square: the squared norm of one example's gradient, |x|^2 |d|^2, of whose x there
// is one value more, 1, if there is a bias. A block of 256 threads.
extern "C" __global__ void __launch_bounds__(256) dense_square(const float *x, const float *d, int in, int out, int bias, Room r) {
  int t = threadIdx.x, e = blockIdx.x;
  double a = 0, b = 0;
  for (int k = t; k < in; k += 256) a += (double)x[(size_t)e * in + k] * x[(size_t)e * in + k];
  for (int k = t; k < out; k += 256) b += (double)d[(size_t)e * out + k] * d[(size_t)e * out + k];
  a = blockSum(a);
  b = blockSum(b);
  if (t == 0) r.squares[(size_t)e * r.squaresRow + r.squares0] = (a + bias) * b;
}
