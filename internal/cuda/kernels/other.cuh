// Everything but products: pictures in, pools, losses, norms, weighted sums of rows.
#pragma once
#include "common.cuh"

// gather lays the pictures of rows one after another, bytes as 0 to 1.
extern "C" __global__ void gather(const unsigned char *pixels, const int *rows, float *x, int n, int each) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n * each) return;
  x[k] = (float)pixels[(size_t)rows[k / each] * each + k % each] / 255.f;
}

struct Pool {
  int examples, outH, outW, inH, inW, channels, kernel, stride, pad;
};

// max_pool takes the largest value of every window, the first of equals, and notes which.
// Blocks are of one row of one picture.
extern "C" __global__ void max_pool(Pool g, const float *x, float *out, unsigned char *which, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x, oy = blockIdx.y, e = blockIdx.z;
  if (k >= g.outW * g.channels) return;
  int c = k % g.channels, ox = k / g.channels;
  const float *picture = x + (size_t)e * g.inH * g.inW * g.channels + c;
  float best = 0;
  int at = 255;
  for (int i = 0; i < g.kernel; i++)
    for (int j = 0; j < g.kernel; j++) {
      int y = oy * g.stride + i - g.pad, z = ox * g.stride + j - g.pad;
      if ((unsigned)y >= (unsigned)g.inH || (unsigned)z >= (unsigned)g.inW) continue;
      float v = picture[(y * g.inW + z) * g.channels];
      if (at == 255 || v > best) best = v, at = i * g.kernel + j;
    }
  size_t o = ((size_t)e * g.outH + oy) * g.outW * g.channels + k;
  out[o] = apply(act, best);
  which[o] = at;
}

// max_pool_back: an input's gradient is that of the windows that took it, in their order.
extern "C" __global__ void max_pool_back(Pool g, const float *d, const unsigned char *which, const float *y, Act gate, float *dx) {
  int k = blockIdx.x * 256 + threadIdx.x, iy = blockIdx.y, e = blockIdx.z;
  if (k >= g.inW * g.channels) return;
  int c = k % g.channels, ix = k / g.channels;
  int y1 = (iy + g.pad) / g.stride, x1 = (ix + g.pad) / g.stride;
  int y0 = iy + g.pad < g.kernel ? 0 : (iy + g.pad - g.kernel) / g.stride + 1, x0 = ix + g.pad < g.kernel ? 0 : (ix + g.pad - g.kernel) / g.stride + 1;
  size_t first = (size_t)e * g.outH * g.outW * g.channels + c;
  float s = 0;
  for (int oy = y0; oy <= y1 && oy < g.outH; oy++)
    for (int ox = x0; ox <= x1 && ox < g.outW; ox++) {
      size_t o = first + (oy * g.outW + ox) * g.channels;
      if (which[o] == (iy + g.pad - oy * g.stride) * g.kernel + ix + g.pad - ox * g.stride) s += d[o];
    }
  size_t o = ((size_t)e * g.inH + iy) * g.inW * g.channels + k;
  dx[o] = slopeAt(gate, y[o], s);
}

// activate applies a sigmoid or a tanh in place.
extern "C" __global__ void activate(float *y, int n, Act act) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) y[k] = act.kind == 3 ? 1.f / (1.f + expf(-y[k])) : tanhf(y[k]);
}

// dropped is a slope that is worth going back with: smaller ones are none, as on the
// processor (model, dropTiny).
__device__ __forceinline__ float dropped(float d) { return d < 0x1p-80f && d > -0x1p-80f ? 0.f : d; }

// cross_entropy: the gradient at the outputs of one example a thread, in double precision
// where the processor has it so.
extern "C" __global__ void cross_entropy(const float *out, const int *labels, const int *rows, float *d, int n, int classes, Act gate) {
  int e = blockIdx.x * 64 + threadIdx.x;
  if (e >= n) return;
  const float *y = out + (size_t)e * classes;
  float *to = d + (size_t)e * classes, top = y[0];
  for (int i = 1; i < classes; i++) top = y[i] > top ? y[i] : top;
  double sum = 0;
  for (int i = 0; i < classes; i++) {
    double p = exp((double)y[i] - (double)top);
    sum += p;
    to[i] = (float)p;
  }
  int label = labels[rows[e]];
  for (int i = 0; i < classes; i++) {
    float v = (float)((double)to[i] / sum);
    to[i] = slopeAt(gate, y[i], dropped(i == label ? v - 1.f : v));
  }
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

// row_sum adds rows times their weights to sum, 32 columns a block of 256 threads. A row
// of weight 0 is left out.
extern "C" __global__ void __launch_bounds__(256) row_sum(const float *rows, const float *weights, float *sum, int n, int columns, int stride) {
  __shared__ float sums[256];
  int t = threadIdx.x, c = blockIdx.x * 32 + t % 32;
  float s = 0;
  if (c < columns)
#pragma unroll 4
    for (int e = t / 32; e < n; e += 8) {
      float w = weights[e];
      if (w != 0.f) s += w * rows[(size_t)e * stride + c];
    }
  sums[t] = s;
  __syncthreads();
  if (t < 32 && c < columns) {
    for (int i = 1; i < 8; i++) s += sums[i * 32 + t];
    sum[c] += s;
  }
}
