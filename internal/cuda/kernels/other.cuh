// Everything but products: pictures in, pools, losses, norms, weighted sums of rows.
#pragma once
#include "common.cuh"

// gather lays the pictures of rows one after another, bytes as 0 to 1, four a thread.
extern "C" __global__ void __launch_bounds__(256) gather(const unsigned char *__restrict__ pixels, const int *__restrict__ rows, float *__restrict__ x, int n, int each) {
  int k = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (k >= n * each) return;
  if (each % 4 == 0) {  // all of one picture, and side by side
    unsigned v = *(const unsigned *)(pixels + (size_t)rows[k / each] * each + k % each);
    *(float4 *)(x + k) = make_float4((float)(v & 0xff) / 255.f, (float)(v >> 8 & 0xff) / 255.f, (float)(v >> 16 & 0xff) / 255.f, (float)(v >> 24) / 255.f);
    return;
  }
  for (int j = k; j < k + 4 && j < n * each; j++) x[j] = (float)pixels[(size_t)rows[j / each] * each + j % each] / 255.f;
}

struct Pool {
  int examples, outH, outW, inH, inW, channels, kernel, stride, pad;
  unsigned overChannels, overWidth;  // divide by channels, fours of them where they are, and by the width of what is computed
};

// max_pool takes the largest value of every window, the first of equals, and notes which,
// of V channels a thread. Blocks are of one picture.
template <int V>
__device__ __forceinline__ void max_pool(const Pool &g, const float *x, float *out, unsigned char *which, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x, e = blockIdx.y, groups = g.channels / V;
  if (k >= g.outH * g.outW * groups) return;
  int p = divided(k, g.overChannels), c = (k - p * groups) * V, oy = divided(p, g.overWidth), ox = p - oy * g.outW;
  const float *picture = x + (size_t)e * g.inH * g.inW * g.channels + c;
  float best[V] = {};
  unsigned char at[V];
#pragma unroll
  for (int q = 0; q < V; q++) at[q] = 255;
  for (int i = 0; i < g.kernel; i++)
    for (int j = 0; j < g.kernel; j++) {
      int y = oy * g.stride + i - g.pad, z = ox * g.stride + j - g.pad;
      if ((unsigned)y >= (unsigned)g.inH || (unsigned)z >= (unsigned)g.inW) continue;
      float v[4];
      load4(picture + (y * g.inW + z) * g.channels, v, V, V == 4);
#pragma unroll
      for (int q = 0; q < V; q++)
        if (at[q] == 255 || v[q] > best[q]) best[q] = v[q], at[q] = i * g.kernel + j;
    }
  size_t o = (size_t)e * g.outH * g.outW * g.channels + (size_t)k * V;
#pragma unroll
  for (int q = 0; q < V; q++) best[q] = apply(act, best[q]);
  if (V == 4) {
    *(float4 *)(out + o) = make_float4(best[0], best[V > 1 ? 1 : 0], best[V > 2 ? 2 : 0], best[V > 3 ? 3 : 0]);
    *(unsigned *)(which + o) = at[0] | at[V > 1 ? 1 : 0] << 8 | at[V > 2 ? 2 : 0] << 16 | (unsigned)at[V > 3 ? 3 : 0] << 24;
  } else {
    out[o] = best[0];
    which[o] = at[0];
  }
}

// max_pool_back: an input's gradient is that of the windows that took it, in their order.
template <int V>
__device__ __forceinline__ void max_pool_back(const Pool &g, const float *d, const unsigned char *which, const float *y, Act gate, float *dx) {
  int k = blockIdx.x * 256 + threadIdx.x, e = blockIdx.y, groups = g.channels / V;
  if (k >= g.inH * g.inW * groups) return;
  int p = divided(k, g.overChannels), c = (k - p * groups) * V, iy = divided(p, g.overWidth), ix = p - iy * g.inW;
  int y1 = (iy + g.pad) / g.stride, x1 = (ix + g.pad) / g.stride;
  int y0 = iy + g.pad < g.kernel ? 0 : (iy + g.pad - g.kernel) / g.stride + 1, x0 = ix + g.pad < g.kernel ? 0 : (ix + g.pad - g.kernel) / g.stride + 1;
  size_t first = (size_t)e * g.outH * g.outW * g.channels + c;
  float s[4] = {};
  for (int oy = y0; oy <= y1 && oy < g.outH; oy++)
    for (int ox = x0; ox <= x1 && ox < g.outW; ox++) {
      size_t o = first + (oy * g.outW + ox) * g.channels;
      unsigned mine = (iy + g.pad - oy * g.stride) * g.kernel + ix + g.pad - ox * g.stride, took = V == 4 ? *(const unsigned *)(which + o) : which[o];
      float v[4];
      load4(d + o, v, V, V == 4);
#pragma unroll
      for (int q = 0; q < V; q++)
        if ((took >> 8 * q & 255) == mine) s[q] += v[q];
    }
  size_t o = (size_t)e * g.inH * g.inW * g.channels + (size_t)k * V;
  if (gate.kind) {
    float there[4];
    load4(y + o, there, V, V == 4);
#pragma unroll
    for (int q = 0; q < V; q++) s[q] = slopeAt(gate, there[q], s[q]);
  }
  store4(dx + o, s, V, V == 4);
}

#define POOLS(V)                                                                                                                           \
  extern "C" __global__ void __launch_bounds__(256) max_pool_##V(Pool g, const float *x, float *out, unsigned char *which, Act act) {      \
    max_pool<V>(g, x, out, which, act);                                                                                                    \
  }                                                                                                                                        \
  extern "C" __global__ void __launch_bounds__(256) max_pool_back_##V(Pool g, const float *d, const unsigned char *which, const float *y,  \
                                                                      Act gate, float *dx) {                                               \
    max_pool_back<V>(g, d, which, y, gate, dx);                                                                                            \
  }
POOLS(1)
POOLS(4)

// activate applies a sigmoid or a tanh in place.
extern "C" __global__ void activate(float *y, int n, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) y[k] = act.kind == 3 ? 1.f / (1.f + expf(-y[k])) : tanhf(y[k]);
}

// dropped is a slope that is worth going back with: smaller ones are none, as on the
// processor (model, dropTiny).
__device__ __forceinline__ float dropped(float d) { return d < 0x1p-80f && d > -0x1p-80f ? 0.f : d; }

// cross_entropy: the gradient at the outputs of one example a warp, in double precision
// where the processor has it so.
extern "C" __global__ void cross_entropy(const float *out, const int *labels, const int *rows, float *d, int n, int classes, Act gate) {
  int e = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (e >= n) return;
  const float *y = out + (size_t)e * classes;
  float *to = d + (size_t)e * classes, top = y[0];
  for (int i = 1; i < classes; i++) top = y[i] > top ? y[i] : top;
  double sum = 0;
  for (int i = lane; i < classes; i += 32) {
    double p = exp((double)y[i] - (double)top);
    sum += p;
    to[i] = (float)p;
  }
  sum = warpSum(sum);
  int label = labels[rows[e]];
  for (int i = lane; i < classes; i += 32) {
    float v = (float)((double)to[i] / sum);
    to[i] = slopeAt(gate, y[i], dropped(i == label ? v - 1.f : v));
  }
}

// head: a network's end, of one example a warp: the end of the product of the last linear
// layer but one (dense_end), the last one of up to HEAD_HIDDEN inputs and HEAD_CLASSES
// classes, the gradients behind both, as cross_entropy and few_back have them, and the
// squared norms of both layers' gradients, as dense_square has them: the squares of what goes
// into the first come with its product, in as many parts. Where they go: squares0 of the last
// layer, hiddenSquare of the one before.
enum { HEAD_HIDDEN = 128, HEAD_CLASSES = 64 };
extern "C" __global__ void __launch_bounds__(128) head(const float *__restrict__ parts, int count, const float *__restrict__ hiddenBias, Act hiddenAct, const float *__restrict__ w,
                                                       const float *__restrict__ bias, Act act, const int *__restrict__ labels, const int *__restrict__ rows, float *h, float *d, float *dh,
                                                       int n, int hidden, int classes, Room r, const double *__restrict__ inputs, int hiddenSquare) {
  __shared__ float ws[HEAD_HIDDEN * (HEAD_CLASSES + 1)], hs[4][HEAD_HIDDEN], ds[4][HEAD_CLASSES];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, e = blockIdx.x * 4 + warp, pitch = classes | 1;  // odd: a column has all banks
  const int HQ = HEAD_HIDDEN / 32, CQ = HEAD_CLASSES / 32;
  float v[HQ], y[CQ], p[CQ];
  double squareIn = 0, squareX = 0, squareH = 0, squareD = 0, sum = 0;
#pragma unroll 4
  for (int i = t; i < hidden * classes; i += 128) ws[i / classes * pitch + i % classes] = w[i];
#pragma unroll
  for (int q = 0; q < HQ; q++) {
    const int i = lane + 32 * q;
    v[q] = 0.f;
    if (e >= n || i >= hidden) continue;
    const float *from = parts + (size_t)e * hidden + i;
    float s = hiddenBias ? hiddenBias[i] : 0.f;
#pragma unroll 16
    for (int k = 0; k < count; k++) s += from[(size_t)k * n * hidden];
    v[q] = hs[warp][i] = h[(size_t)e * hidden + i] = apply(hiddenAct, s);
    squareX += (double)v[q] * v[q];
  }
  __syncthreads();
  if (e >= n) return;
  for (int k = lane; k < count; k += 32) squareIn += inputs[(size_t)k * n + e];
#pragma unroll
  for (int q = 0; q < CQ; q++) {
    const int c = lane + 32 * q;
    if (c >= classes) continue;
    float s = bias ? bias[c] : 0.f;
#pragma unroll 8
    for (int i = 0; i < hidden; i++) s += hs[warp][i] * ws[i * pitch + c];
    y[q] = ds[warp][c] = apply(act, s);
  }
  __syncwarp();
  float top = ds[warp][0];
  for (int c = 1; c < classes; c++) top = ds[warp][c] > top ? ds[warp][c] : top;
#pragma unroll
  for (int q = 0; q < CQ; q++) {
    if (lane + 32 * q >= classes) continue;
    double there = exp((double)y[q] - (double)top);
    sum += there;
    p[q] = (float)there;
  }
  sum = warpSum(sum);
  __syncwarp();  // all have read ds
  const int label = labels[rows[e]];
#pragma unroll
  for (int q = 0; q < CQ; q++) {
    const int c = lane + 32 * q;
    if (c >= classes) continue;
    float share = (float)((double)p[q] / sum), s = slopeAt(act, y[q], dropped(c == label ? share - 1.f : share));
    ds[warp][c] = d[(size_t)e * classes + c] = s;
    squareD += (double)s * s;
  }
  __syncwarp();
#pragma unroll
  for (int q = 0; q < HQ; q++) {
    const int i = lane + 32 * q;
    if (i >= hidden) continue;
    float s = 0.f;
#pragma unroll 8
    for (int c = 0; c < classes; c++) s += ds[warp][c] * ws[i * pitch + c];
    s = dh[(size_t)e * hidden + i] = slopeAt(hiddenAct, v[q], s);
    squareH += (double)s * s;
  }
  squareIn = warpSum(squareIn), squareX = warpSum(squareX), squareH = warpSum(squareH), squareD = warpSum(squareD);
  double *to = r.squares + (size_t)e * r.squaresRow;
  if (lane == 0) to[r.squares0] = (squareX + (bias ? 1 : 0)) * squareD, to[hiddenSquare] = (squareIn + (hiddenBias ? 1 : 0)) * squareH;
}

// squared_error: the same of the mean squared difference to the example itself; scale is 2
// (half the error: 1) over the number of outputs.
extern "C" __global__ void squared_error(const float *out, const float *x, float *d, int n, double scale, Act gate) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n) return;
  d[k] = slopeAt(gate, out[k], dropped((float)(scale * ((double)out[k] - (double)x[k]))));
}

// norms adds up the squared norms of every example's parts, in their order.
extern "C" __global__ void norms(const double *squares, double *to, int n, int parts) {
  int e = blockIdx.x * 64 + threadIdx.x;
  if (e >= n) return;
  double s = 0;
  for (int i = 0; i < parts; i++) s += squares[(size_t)e * parts + i];
  to[e] = s;
}

// take_rows reads numbers that lie in a program's memory: sooner than a copy would.
extern "C" __global__ void __launch_bounds__(256) take_rows(int *to, const int *from, int n) {
  int k = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (k + 4 <= n)
    *(uint4 *)(to + k) = *(const uint4 *)(from + k);
  else
    for (; k < n; k++) to[k] = from[k];
}

// take_factors writes factors that come with it: sooner than a copy would.
struct Factors {
  float of[960];
};
extern "C" __global__ void __launch_bounds__(256) take_factors(float *to, Factors all, int n) {
  int e = blockIdx.x * 256 + threadIdx.x;
  if (e < n) to[e] = all.of[e];
}

// row_sum adds rows times their weights to sum, 32 columns a block of 256 threads. A row
// of weight 0 is left out.
extern "C" __global__ void __launch_bounds__(256) row_sum(const float *rows, const float *weights, float *sum, int n, int columns, int stride) {
  __shared__ float sums[256];
  int t = threadIdx.x, c = blockIdx.x * 32 + t % 32;
  float s = 0;
  if (c < columns)
#pragma unroll 8
    for (int e = t / 32; e < n; e += 8) {
      float w = weights[e], v = rows[(size_t)e * stride + c];
      s = w != 0.f ? s + w * v : s;
    }
  sums[t] = s;
  __syncthreads();
  if (t < 32 && c < columns) {
    for (int i = 1; i < 8; i++) s += sums[i * 32 + t];
    sum[c] += s;
  }
}

// Filter is one that a convolution reads arranged, and where: first is where it begins,
// counted in blocks.
struct Filter {
  const float *w;
  float *to;
  int taps, inC, outC, back, first;
};

// Filters are those that a launch has in common.
struct Filters {
  Filter of[6];
  int count;
};

// arranged_all lays filters as direct reads them: [out/8][in][tap][8]. Of the way back, taps are
// read from the last one on, and in and out change places.
extern "C" __global__ void __launch_bounds__(256) arranged_all(Filters all) {
  int j = 0;
  while (j + 1 < all.count && (int)blockIdx.x >= all.of[j + 1].first) j++;
  const Filter &f = all.of[j];
  int k = (blockIdx.x - f.first) * 256 + threadIdx.x, taps = f.taps, inC = f.inC;
  if (k >= (f.outC + 7) / 8 * inC * taps * 8) return;
  int tap = k / 8 % taps, i = k / (8 * taps) % inC, o = k / (8 * taps * inC) * 8 + k % 8;
  f.to[k] = o >= f.outC ? 0.f : f.back ? f.w[((size_t)(taps - 1 - tap) * f.outC + o) * inC + i] : f.w[((size_t)tap * inC + i) * f.outC + o];
}
