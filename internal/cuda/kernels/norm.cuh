// Norms of places and of groups of channels, mean pools, and what joins the ways of a network
// that parts.
#pragma once
#include "other.cuh"
#include "tokens.cuh"

// layer_norm takes the mean off every place's channels and divides by their deviation, then
// has a factor and a constant for every channel; a warp is of one place. Stats are mean and
// 1/deviation.
extern "C" __global__ void __launch_bounds__(256) layer_norm(const float *x, const float *affine, float *out, float *stats, int rows, int n, Act act) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  bool in = row < rows;
  const float *from = x + (size_t)(in ? row : 0) * n;
  double s = 0, square = 0;
  for (int c = lane; c < n; c += 32) s += from[c];
  float mean = (float)(warpSum(s) / n);
  for (int c = lane; c < n; c += 32) square += (double)(from[c] - mean) * (from[c] - mean);
  float inverse = (float)(1 / sqrt(warpSum(square) / n + 1e-5));
  if (!in) return;
  if (lane == 0) stats[2 * row] = mean, stats[2 * row + 1] = inverse;
  for (int c = lane; c < n; c += 32) out[(size_t)row * n + c] = apply(act, (from[c] - mean) * inverse * affine[c] + affine[n + c]);
}

// layer_norm_back: the gradient at the input and plus, if that is not null, times the slope of
// gate. With h = factor*d and y the normalised values it is (h - mean(h) - y*mean(h*y))/deviation.
extern "C" __global__ void __launch_bounds__(256) layer_norm_back(const float *x, const float *stats, const float *affine, const float *d, const float *plus, const float *at,
                                                                  Act gate, float *dx, int rows, int n) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  bool in = row < rows;
  size_t o = (size_t)(in ? row : 0) * n;
  float mean = stats[in ? 2 * row : 0], inverse = stats[in ? 2 * row + 1 : 1];
  double s = 0, p = 0;
  for (int c = lane; c < n; c += 32) {
    float h = affine[c] * d[o + c];
    s += h;
    p += (double)h * ((x[o + c] - mean) * inverse);
  }
  float level = (float)(warpSum(s) / n), tilt = (float)(warpSum(p) / n);
  if (!in) return;
  for (int c = lane; c < n; c += 32) {
    float v = inverse * (affine[c] * d[o + c] - level - (x[o + c] - mean) * inverse * tilt);
    if (plus) v += plus[o + c];
    dx[o + c] = slope(gate, at, o + c, v);
  }
}

// Held is what a lane has of a place of at most 128*FOURS channels, in fours: it is read once.
template <int FOURS>
struct Held {
  float v[FOURS][4];
  __device__ __forceinline__ void load(const float *from, int n) {
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
      int c = threadIdx.x % 32 * 4 + 128 * i;
      float4 q = fetch<true>(from + c, n - c);
      v[i][0] = q.x, v[i][1] = q.y, v[i][2] = q.z, v[i][3] = q.w;
    }
  }
  __device__ __forceinline__ void store(float *to, int n) const {
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
      int c = threadIdx.x % 32 * 4 + 128 * i;
      if (c < n) *(float4 *)(to + c) = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
    }
  }
  // each calls f with channels that are there: where they are held, and which they are.
  template <class F>
  __device__ __forceinline__ void each(int n, F f) const {
#pragma unroll
    for (int i = 0; i < FOURS; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int c = threadIdx.x % 32 * 4 + 128 * i + j;
        if (c < n) f(i, j, c);
      }
  }
};

template <int FOURS>
__device__ __forceinline__ void heldNorm(const float *x, const float *affine, float *out, float *stats, int rows, int n, Act act) {
  int row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  Held<FOURS> h, factors, constants;
  h.load(x + (size_t)row * n, n);
  factors.load(affine, n);
  constants.load(affine + n, n);
  double s = 0, square = 0;
  h.each(n, [&](int i, int j, int) { s += h.v[i][j]; });
  float mean = (float)(warpSum(s) / n);
  h.each(n, [&](int i, int j, int) { square += (double)(h.v[i][j] - mean) * (h.v[i][j] - mean); });
  float inverse = (float)(1 / sqrt(warpSum(square) / n + 1e-5));
  if (threadIdx.x % 32 == 0) stats[2 * row] = mean, stats[2 * row + 1] = inverse;
  h.each(n, [&](int i, int j, int) { h.v[i][j] = apply(act, (h.v[i][j] - mean) * inverse * factors.v[i][j] + constants.v[i][j]); });
  h.store(out + (size_t)row * n, n);
}

template <int FOURS>
__device__ __forceinline__ void heldNormBack(const float *x, const float *stats, const float *affine, const float *d, const float *plus, const float *at, Act gate, float *dx, int rows,
                                             int n) {
  int row = blockIdx.x * 8 + threadIdx.x / 32;
  if (row >= rows) return;
  size_t o = (size_t)row * n;
  Held<FOURS> y, h, factors, there;
  y.load(x + o, n);
  h.load(d + o, n);
  factors.load(affine, n);
  if (plus) there.load(plus + o, n);
  float mean = stats[2 * row], inverse = stats[2 * row + 1];
  double s = 0, p = 0;
  h.each(n, [&](int i, int j, int) {
    h.v[i][j] *= factors.v[i][j], y.v[i][j] = (y.v[i][j] - mean) * inverse;
    s += h.v[i][j], p += (double)h.v[i][j] * y.v[i][j];
  });
  float level = (float)(warpSum(s) / n), tilt = (float)(warpSum(p) / n);
  h.each(n, [&](int i, int j, int c) {
    float v = inverse * (h.v[i][j] - level - y.v[i][j] * tilt);
    if (plus) v += there.v[i][j];
    h.v[i][j] = slope(gate, at, o + c, v);
  });
  h.store(dx + o, n);
}

// layer_norm_128 and layer_norm_512 are layer_norm, and layer_norm_back_128 and so on the way
// back, of at most so many channels.
#define HELD(N)                                                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256) layer_norm_##N(const float *x, const float *affine, float *out, float *stats, int rows, int n, Act act) { \
    heldNorm<N / 128>(x, affine, out, stats, rows, n, act);                                                                                                  \
  }                                                                                                                                                          \
  extern "C" __global__ void __launch_bounds__(256) layer_norm_back_##N(const float *x, const float *stats, const float *affine, const float *d,             \
                                                                        const float *plus, const float *at, Act gate, float *dx, int rows, int n) {          \
    heldNormBack<N / 128>(x, stats, affine, d, plus, at, gate, dx, rows, n);                                                                                 \
  }
HELD(128)
HELD(512)

// layer_norm_kept: an example's gradient of factors and constants, 32 channels a block.
extern "C" __global__ void __launch_bounds__(256) layer_norm_kept(const float *x, const float *stats, const float *d, int places, int n, Room r) {
  __shared__ float factors[256], constants[256];
  int t = threadIdx.x, e = blockIdx.z, c = blockIdx.x * 32 + t % 32;
  float f = 0, b = 0;
  if (c < n)
    for (int k = t / 32; k < places; k += 8) {
      size_t row = (size_t)e * places + k;
      float v = d[row * n + c];
      f += v * ((x[row * n + c] - stats[2 * row]) * stats[2 * row + 1]);
      b += v;
    }
  factors[t] = f, constants[t] = b;
  __syncthreads();
  double square = 0;
  if (t < 32 && c < n) {
    for (int i = 1; i < 8; i++) f += factors[i * 32 + t], b += constants[i * 32 + t];
    float *kept = r.kept + (size_t)e * r.keptRow + r.kept0;
    kept[c] = f, kept[n + c] = b;
    square = (double)f * f + (double)b * b;
  }
  square = blockSum(square);
  if (t == 0) r.squares[(size_t)e * r.squaresRow + r.squares0 + blockIdx.x] = square;
}

// everyone is a block's sum, for all of its threads.
__device__ __forceinline__ double everyone(double v) {
  __shared__ double sum;
  v = blockSum(v);
  if (threadIdx.x == 0) sum = v;
  __syncthreads();
  v = sum;
  __syncthreads();
  return v;
}

// group_norm: a block is of one group of channels of one picture. Stats are mean and
// 1/deviation of every group.
extern "C" __global__ void __launch_bounds__(256) group_norm(const float *x, const float *affine, float *out, float *stats, int pixels, int channels, int groups, Act act) {
  int e = blockIdx.y, each = channels / groups, c0 = blockIdx.x * each, n = pixels * each;
  size_t first = (size_t)e * pixels * channels + c0;
  double s = 0, square = 0;
  for (int k = threadIdx.x; k < n; k += 256) s += x[first + (size_t)(k / each) * channels + k % each];
  float mean = (float)(everyone(s) / n);
  for (int k = threadIdx.x; k < n; k += 256) {
    float v = x[first + (size_t)(k / each) * channels + k % each] - mean;
    square += (double)v * v;
  }
  float inverse = (float)(1 / sqrt(everyone(square) / n + 1e-5));
  if (threadIdx.x == 0) stats[2 * (e * groups + blockIdx.x)] = mean, stats[2 * (e * groups + blockIdx.x) + 1] = inverse;
  for (int k = threadIdx.x; k < n; k += 256) {
    size_t o = first + (size_t)(k / each) * channels + k % each;
    out[o] = apply(act, (x[o] - mean) * inverse * affine[c0 + k % each] + affine[channels + c0 + k % each]);
  }
}

// group_norm_back: the gradients of a group's factors and constants and, unless dx is null,
// that at its input, and plus, times the slope of gate.
extern "C" __global__ void __launch_bounds__(256) group_norm_back(const float *x, const float *stats, const float *affine, const float *d, const float *plus, const float *at,
                                                                  Act gate, float *dx, int pixels, int channels, int groups, Room r) {
  int e = blockIdx.y, each = channels / groups, c0 = blockIdx.x * each, n = pixels * each;
  size_t first = (size_t)e * pixels * channels + c0;
  float mean = stats[2 * (e * groups + blockIdx.x)], inverse = stats[2 * (e * groups + blockIdx.x) + 1];
  float *kept = r.kept + (size_t)e * r.keptRow + r.kept0;
  double square = 0, level = 0, tilt = 0;
  for (int c = 0; c < each; c++) {
    double f = 0, b = 0;
    for (int k = threadIdx.x; k < pixels; k += 256) {
      size_t o = first + (size_t)k * channels + c;
      f += (double)d[o] * ((x[o] - mean) * inverse);
      b += d[o];
    }
    float own = (float)everyone(f), constant = (float)everyone(b);
    if (threadIdx.x == 0) {
      kept[c0 + c] = own, kept[channels + c0 + c] = constant;
      square += (double)own * own + (double)constant * constant;
    }
    tilt += (double)affine[c0 + c] * own;
    level += (double)affine[c0 + c] * constant;
  }
  if (threadIdx.x == 0) r.squares[(size_t)e * r.squaresRow + r.squares0 + blockIdx.x] = square;
  if (!dx) return;
  float up = (float)(level / n), along = (float)(tilt / n);
  for (int k = threadIdx.x; k < n; k += 256) {
    size_t o = first + (size_t)(k / each) * channels + k % each;
    float v = inverse * (affine[c0 + k % each] * d[o] - up - (x[o] - mean) * inverse * along);
    if (plus) v += plus[o];
    dx[o] = slope(gate, at, o, v);
  }
}

// mean_pool takes the mean of every window; padding counts as zeros.
extern "C" __global__ void mean_pool(Pool g, const float *x, float *out, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x, oy = blockIdx.y, e = blockIdx.z;
  if (k >= g.outW * g.channels) return;
  int c = k % g.channels, ox = k / g.channels;
  const float *picture = x + (size_t)e * g.inH * g.inW * g.channels + c;
  float s = 0;
  for (int i = 0; i < g.kernel; i++)
    for (int j = 0; j < g.kernel; j++) {
      int y = oy * g.stride + i - g.pad, z = ox * g.stride + j - g.pad;
      if ((unsigned)y < (unsigned)g.inH && (unsigned)z < (unsigned)g.inW) s += picture[(y * g.inW + z) * g.channels];
    }
  out[((size_t)e * g.outH + oy) * g.outW * g.channels + k] = apply(act, s / (float)(g.kernel * g.kernel));
}

// mean_pool_back: an input's gradient is that of all windows that it is in, in their order.
extern "C" __global__ void mean_pool_back(Pool g, const float *d, float *dx) {
  int k = blockIdx.x * 256 + threadIdx.x, iy = blockIdx.y, e = blockIdx.z;
  if (k >= g.inW * g.channels) return;
  int c = k % g.channels, ix = k / g.channels;
  int y1 = (iy + g.pad) / g.stride, x1 = (ix + g.pad) / g.stride;
  int y0 = iy + g.pad < g.kernel ? 0 : (iy + g.pad - g.kernel) / g.stride + 1, x0 = ix + g.pad < g.kernel ? 0 : (ix + g.pad - g.kernel) / g.stride + 1;
  size_t first = (size_t)e * g.outH * g.outW * g.channels + c;
  float s = 0;
  for (int oy = y0; oy <= y1 && oy < g.outH; oy++)
    for (int ox = x0; ox <= x1 && ox < g.outW; ox++) s += d[first + (oy * g.outW + ox) * g.channels];
  dx[((size_t)e * g.inH + iy) * g.inW * g.channels + k] = s / (float)(g.kernel * g.kernel);
}

// joined: act(x + plus); plus may be null.
extern "C" __global__ void joined(const float *x, const float *plus, float *out, int n, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n) return;
  float v = plus ? x[k] + plus[k] : x[k];
  out[k] = act.kind == 5 ? geluAt(v) : act.kind == 3 ? 1.f / (1.f + expf(-v)) : act.kind == 4 ? tanhf(v) : apply(act, v);
}

// joined_back: d times the slope of own, and plus, times the slope of gate; plus may be null.
extern "C" __global__ void joined_back(const float *d, const float *ownAt, Act own, const float *plus, const float *at, Act gate, float *dx, int n) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n) return;
  float v = slope(own, ownAt, k, d[k]);
  if (plus) v += plus[k];
  dx[k] = slope(gate, at, k, v);
}
