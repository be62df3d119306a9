// Convolutions, both ways, as products whose left side is gathered from pictures.
// Pictures lie as [height][width][channel], filters as [row][column][in][out].
#pragma once
#include "common.cuh"

// Window says which pixels of what is read make one pixel of what is computed. Forward,
// pixel y reads y*stride+k-pad; back (the gradient at a convolution's input, or a
// transposed convolution's output) it reads (y+pad-k)/stride where that is whole.
struct Window {
  int examples;
  int outH, outW, outC;
  int inH, inW, inC;
  int kernelH, kernelW, stride, pad, back;
};

enum { CONV_K = 8, CONV_TABLE = 2048 };

// Tap is one k of the sum: which row and column of the window, and how far from the
// window's first pixel its value lies.
struct Tap {
  short y, x;
  int offset;
};

// gathered: 128 threads compute 4096/BN pixels of BN channels, 8x4 values each. VEC says
// that the channels read are a multiple of 4, SPREAD that the way is back with a stride.
// out = act(sum + bias), times the slope of gate at its output y.
template <int BN, bool VEC, bool SPREAD>
__device__ __forceinline__ void gathered(const Window &g, const float *in, const float *w, const float *bias, Act act, const float *y, Act gate, float *out) {
  const int BM = 4096 / BN, TX = BN / 4, ITEMS = BM / 64, ROW = BM + 4;
  __shared__ float4 as4[2 * CONV_K * ROW / 4];
  __shared__ float4 bs4[2 * CONV_K * BN / 4];
  __shared__ Tap taps[CONV_TABLE];
  float *as = (float *)as4, *bs = (float *)bs4;
  int t = threadIdx.x, tx = t % TX, ty = t / TX, n0 = blockIdx.y * BN;
  int K = g.kernelH * g.kernelW * g.inC, pixels = g.outH * g.outW, tiles = (K + CONV_K - 1) / CONV_K;
  for (int i = t; i < (VEC ? K / 4 : K); i += 128) {
    int k = VEC ? i * 4 : i, tap = k / g.inC, ky = tap / g.kernelW, kx = tap % g.kernelW, c = k % g.inC;
    if (g.back) ky = -ky, kx = -kx;
    taps[i].y = (short)ky, taps[i].x = (short)kx;
    taps[i].offset = SPREAD ? c : (ky * g.inW + kx) * g.inC + c;
  }
  __syncthreads();
  // An item is four k of one pixel: t+128*i-th of BM pixels, then of both halves of a tile.
  const float *base[ITEMS];  // where the first pixel of the window is, or would be
  int at[ITEMS];             // its row and column
#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    int m = blockIdx.x * BM + (t + 128 * i) % BM, e = m / pixels, p = m % pixels, row = p / g.outW, column = p % g.outW;
    row = g.back ? row + g.pad : row * g.stride - g.pad;
    column = g.back ? column + g.pad : column * g.stride - g.pad;
    base[i] = in + ((long long)e * g.inH * g.inW + (SPREAD ? 0 : row * g.inW + column)) * g.inC;
    if (e >= g.examples) row = -20000;  // beyond all pictures
    at[i] = (int)((unsigned)row << 16 | ((unsigned)column & 0xffff));
  }
  float4 ra[ITEMS];
  float rb[BN / 16];
  auto find = [&](int i, Tap tap) -> const float * {
    int fy = (at[i] >> 16) + tap.y, fx = (int)(short)at[i] + tap.x;
    if (SPREAD) {
      if (fy < 0 || fx < 0) return nullptr;
      int qy = fy / g.stride, qx = fx / g.stride;
      if (qy * g.stride != fy || qx * g.stride != fx || qy >= g.inH || qx >= g.inW) return nullptr;
      return base[i] + (qy * g.inW + qx) * g.inC + tap.offset;
    }
    return (unsigned)fy < (unsigned)g.inH && (unsigned)fx < (unsigned)g.inW ? base[i] + tap.offset : nullptr;
  };
  auto load = [&](int tile) {
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      int k = tile * CONV_K + (t + 128 * i) / BM * 4;
      ra[i] = make_float4(0.f, 0.f, 0.f, 0.f);
      if (VEC) {
        const float *p = k < K ? find(i, taps[k / 4]) : nullptr;
        if (p) ra[i] = *(const float4 *)p;
      } else {
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float *p = k + j < K ? find(i, taps[k + j]) : nullptr;
          v[j] = p ? *p : 0.f;
        }
        ra[i] = make_float4(v[0], v[1], v[2], v[3]);
      }
    }
#pragma unroll
    for (int i = 0; i < BN / 16; i++) {
      int k = tile * CONV_K + (t + 128 * i) / BN, n = n0 + (t + 128 * i) % BN;
      rb[i] = k < K && n < g.outC ? w[k * g.outC + n] : 0.f;
    }
  };
  auto store = [&](int side) {
    float *a = as + side * CONV_K * ROW, *b = bs + side * CONV_K * BN;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      int m = (t + 128 * i) % BM, k = (t + 128 * i) / BM * 4;
      a[k * ROW + m] = ra[i].x, a[(k + 1) * ROW + m] = ra[i].y, a[(k + 2) * ROW + m] = ra[i].z, a[(k + 3) * ROW + m] = ra[i].w;
    }
#pragma unroll
    for (int i = 0; i < BN / 16; i++) b[t + 128 * i] = rb[i];
  };
  float acc[8][4] = {};
  load(0);
  store(0);
  __syncthreads();
#pragma unroll 1
  for (int tile = 0; tile < tiles; tile++) {
    if (tile + 1 < tiles) load(tile + 1);
    const float4 *a = as4 + (tile & 1) * CONV_K * ROW / 4 + ty, *b = bs4 + (tile & 1) * CONV_K * BN / 4 + tx;
#pragma unroll
    for (int k = 0; k < CONV_K; k++) {
      float4 u = a[k * ROW / 4], v = a[k * ROW / 4 + BM / 8], q = b[k * BN / 4];
      float ar[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w}, br[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] += ar[i] * br[j];
    }
    if (tile + 1 < tiles) store(~tile & 1);
    __syncthreads();
  }
  int n = n0 + tx * 4, some = g.outC - n;
  if (some <= 0) return;
  bool vector = g.outC % 4 == 0;
  float add[4] = {};
  if (bias)
#pragma unroll
    for (int j = 0; j < 4; j++) add[j] = j < some ? bias[n + j] : 0.f;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int m = blockIdx.x * BM + (i < 4 ? ty * 4 + i : BM / 2 + ty * 4 + i - 4);
    if (m >= g.examples * pixels) continue;
    size_t o = (size_t)m * g.outC + n;
    float v[4], there[4];
    if (y) load4(y + o, there, some, vector);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      v[j] = apply(act, acc[i][j] + add[j]);
      if (y) v[j] = slopeAt(gate, there[j], v[j]);
    }
    store4(out + o, v, some, vector);
  }
}

#define GATHERED(NAME, BN, VEC, SPREAD)                                                                                                \
  extern "C" __global__ void __launch_bounds__(128) NAME##_##BN(Window g, const float *in, const float *w, const float *bias, Act act, \
                                                                const float *y, Act gate, float *out) {                               \
    gathered<BN, VEC, SPREAD>(g, in, w, bias, act, y, gate, out);                                                                      \
  }
GATHERED(conv, 32, true, false)
GATHERED(conv, 64, true, false)
GATHERED(conv_odd, 32, false, false)
// With a stride on the way back, where three of four values are none, speed matters less.
GATHERED(conv_spread, 64, false, true)

// turn makes the filter [tap][out][in] of [tap][in][out].
extern "C" __global__ void turn(const float *w, float *turned, int taps, int inC, int outC) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= taps * inC * outC) return;
  int i = k % inC, o = k / inC % outC, tap = k / (inC * outC);
  turned[k] = w[((size_t)tap * inC + i) * outC + o];
}

// filters: one example's gradient of the filter: 64 values of [tap][in] times BN of [out]
// a block of 256 threads, which share the picture's pixels among groups of 2*BN. g is the
// convolution forward; x is what it reads and d the gradient at what it computes.
template <int BN, bool VEC>
__device__ __forceinline__ void filters(const Window &g, const float *x, const float *d, const Room &r) {
  const int KT = 32, GROUPS = 128 / BN, TX = BN / 4, AITEMS = VEC ? 2 : 8, BITEMS = (KT * BN / 4 + 255) / 256;
  __shared__ float4 room4[2048];  // tiles; then every group's sums
  const int SIDE = KT * 64 + KT * BN;  // of the two that tiles take turns in
  float *tiles = (float *)room4;
  int t = threadIdx.x, e = blockIdx.z, m0 = blockIdx.x * 64, n0 = blockIdx.y * BN;
  int M = g.kernelH * g.kernelW * g.inC, pixels = g.outH * g.outW;
  const float *picture = x + (size_t)e * g.inH * g.inW * g.inC, *slopes = d + (size_t)e * pixels * g.outC;
  const int STEP = VEC ? 16 : 4;  // of k from one item to the next
  int mine = VEC ? t % 16 * 4 : t % 64, m = m0 + mine, tap = m / g.inC, c = m % g.inC, ky = tap / g.kernelW - g.pad, kx = tap % g.kernelW - g.pad;
  int k1 = VEC ? t / 16 : t / 64;
  int row[AITEMS], column[AITEMS];  // of every item's pixel
#pragma unroll
  for (int i = 0; i < AITEMS; i++) {
    row[i] = (k1 + STEP * i) / g.outW, column[i] = (k1 + STEP * i) % g.outW;
    if (m >= M) row[i] = 1 << 20;  // is never there
  }
  const int rows = KT / g.outW, columns = KT % g.outW;  // from one tile to the next
  bool vector = g.outC % 4 == 0;
  float4 ra[AITEMS], rb[BITEMS];
  auto load = [&](int k0) {
#pragma unroll
    for (int i = 0; i < AITEMS; i++) {
      int fy = row[i] * g.stride + ky, fx = column[i] * g.stride + kx;
      ra[i] = make_float4(0.f, 0.f, 0.f, 0.f);
      if (row[i] < g.outH && (unsigned)fy < (unsigned)g.inH && (unsigned)fx < (unsigned)g.inW) {
        const float *from = picture + (fy * g.inW + fx) * g.inC + c;
        if (VEC)
          ra[i] = *(const float4 *)from;
        else
          ra[i].x = *from;
      }
      row[i] += rows, column[i] += columns;
      if (column[i] >= g.outW) column[i] -= g.outW, row[i]++;
    }
#pragma unroll
    for (int i = 0; i < BITEMS; i++) {
      int at = t + 256 * i, p = k0 + at / (BN / 4), n = n0 + at % (BN / 4) * 4;
      float v[4] = {};
      if (at < KT * BN / 4 && p < pixels && n < g.outC) load4(slopes + p * g.outC + n, v, g.outC - n, vector);
      rb[i] = make_float4(v[0], v[1], v[2], v[3]);
    }
  };
  auto store = [&](int side) {
    float *as = tiles + side * SIDE, *bs = as + KT * 64;
#pragma unroll
    for (int i = 0; i < AITEMS; i++)
      if (VEC)
        *(float4 *)(as + (k1 + STEP * i) * 64 + mine) = ra[i];
      else
        as[(k1 + STEP * i) * 64 + mine] = ra[i].x;
#pragma unroll
    for (int i = 0; i < BITEMS; i++)
      if (t + 256 * i < KT * BN / 4) ((float4 *)bs)[t + 256 * i] = rb[i];
  };
  int group = t / (2 * BN), u = t % (2 * BN), tx = u % TX, ty = u / TX;
  float acc[8][4] = {};
  load(0);
  store(0);
  __syncthreads();
#pragma unroll 1
  for (int k0 = 0, side = 0; k0 < pixels; k0 += KT, side ^= 1) {
    if (k0 + KT < pixels) load(k0 + KT);
    const float *as = tiles + side * SIDE, *bs = as + KT * 64;
#pragma unroll
    for (int k = 0; k < KT / GROUPS; k++) {
      int kk = k * GROUPS + group;
      float4 v = *(const float4 *)(as + kk * 64 + ty * 4), w = *(const float4 *)(as + kk * 64 + 32 + ty * 4), q = *(const float4 *)(bs + kk * BN + tx * 4);
      float ar[8] = {v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w}, br[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] += ar[i] * br[j];
    }
    if (k0 + KT < pixels) store(side ^ 1);
    __syncthreads();
  }
  float *sums = (float *)room4;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int row = i < 4 ? ty * 4 + i : 32 + ty * 4 + i - 4;
    *(float4 *)(sums + (group * 64 + row) * BN + tx * 4) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
  }
  __syncthreads();
  double square = 0;
  float *kept = r.kept + (size_t)e * r.keptRow + r.kept0;
  for (int o = t; o < 64 * BN; o += 256) {
    float s = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) s += sums[i * 64 * BN + o];
    int row = m0 + o / BN, n = n0 + o % BN;
    if (row < M && n < g.outC) {
      kept[(size_t)row * g.outC + n] = s;
      square += (double)s * s;
    }
  }
  square = blockSum(square);
  if (t == 0) r.squares[(size_t)e * r.squaresRow + r.squares0 + blockIdx.y * gridDim.x + blockIdx.x] = square;
}

#define FILTERS(NAME, BN, VEC)                                                                                             \
  extern "C" __global__ void __launch_bounds__(256) NAME##_##BN(Window g, const float *x, const float *d, Room r) {        \
    filters<BN, VEC>(g, x, d, r);                                                                                          \
  }
FILTERS(filters, 32, true)
FILTERS(filters, 64, true)
FILTERS(filters_odd, 32, false)

// biases: one example's gradient of a convolution's biases, a block of 256 threads.
extern "C" __global__ void __launch_bounds__(256) biases(const float *d, int pixels, int channels, Room r) {
  __shared__ float sums[256];
  int t = threadIdx.x, e = blockIdx.x;
  const float *from = d + (size_t)e * pixels * channels;
  double square = 0;
  for (int c0 = 0; c0 < channels; c0 += 256) {
    int some = channels - c0 < 256 ? channels - c0 : 256, lines = 256 / some;  // pixels at a time
    float s = 0;
    if (t < lines * some)
#pragma unroll 8
      for (int p = t / some; p < pixels; p += lines) s += from[(size_t)p * channels + c0 + t % some];
    __syncthreads();
    sums[t] = s;
    __syncthreads();
    if (t < some) {
      for (int i = 1; i < lines; i++) s += sums[i * some + t];
      r.kept[(size_t)e * r.keptRow + r.kept0 + c0 + t] = s;
      square += (double)s * s;
    }
  }
  square = blockSum(square);
  if (t == 0) r.squares[(size_t)e * r.squaresRow + r.squares0] = square;
}
