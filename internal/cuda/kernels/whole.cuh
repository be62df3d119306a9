// Sums of whole numbers, for noise that is exact (dp/mech, wholesum.go): every example's gradient
// times its weight, a double, each value rounded toward zero before it is added. Sums of doubles
// below 2^53 are then exact in any order, so that here alone blocks may add to one place.
#pragma once
#include "common.cuh"

// truncated is v*w, rounded to a double and then toward zero.
__device__ __forceinline__ double truncated(double v, double w) { return trunc(__dmul_rn(v, w)); }

// whole_rows adds rows times their weights to sum, 32 columns of every gridDim.y-th eight rows a
// block of 256 threads. A row of weight 0 is left out: it may not be finite.
extern "C" __global__ void __launch_bounds__(256) whole_rows(const float *rows, const double *weights, double *sum, int n, int columns, int stride) {
  __shared__ double sums[256];
  int t = threadIdx.x, c = blockIdx.x * 32 + t % 32;
  double s = 0;
  if (c < columns)
    for (int e = blockIdx.y * 8 + t / 32; e < n; e += 8 * gridDim.y) {
      double w = weights[e];
      if (w != 0) s += truncated(rows[(size_t)e * stride + c], w);
    }
  sums[t] = s;
  __syncthreads();
  if (t < 32 && c < columns) {
    for (int i = 1; i < 8; i++) s += sums[i * 32 + t];
    atomicAdd(sum + c, s);
  }
}

// whole_products adds, for 64 inputs and 32 outputs a block of 256 threads, x times weight times d to
// sum, over one of gridDim.z parts of g examples; behind the inputs is a 1 if there is a bias.
// d times the weight is rounded first, and x times that truncated.
extern "C" __global__ void __launch_bounds__(256) whole_products(const float *x, const float *d, const double *weights, double *sum, int g, int in, int out, int bias) {
  const int DEEP = 16, HIGH = 64, WIDE = 32;
  __shared__ double xs[DEEP][HIGH], ds[DEEP][WIDE];
  int t = threadIdx.x, m0 = blockIdx.x * HIGH, n0 = blockIdx.y * WIDE;
  int each = (g + gridDim.z - 1) / gridDim.z, from = blockIdx.z * each, to = from + each < g ? from + each : g;
  double acc[4][2] = {};  // inputs t/16*4 and on, outputs t%16*2 and on
  for (int e0 = from; e0 < to; e0 += DEEP) {
    for (int k = t; k < DEEP * HIGH; k += 256) {
      int e = e0 + k / HIGH, i = m0 + k % HIGH;
      bool there = e < to && i < in + bias && weights[e] != 0;
      xs[k / HIGH][k % HIGH] = !there ? 0 : i < in ? x[(size_t)e * in + i] : 1;
    }
    for (int k = t; k < DEEP * WIDE; k += 256) {
      int e = e0 + k / WIDE, j = n0 + k % WIDE;
      double w = e < to && j < out ? weights[e] : 0;
      ds[k / WIDE][k % WIDE] = w != 0 ? __dmul_rn(d[(size_t)e * out + j], w) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEEP; k++) {
      double b[2] = {ds[k][t % 16 * 2], ds[k][t % 16 * 2 + 1]};
#pragma unroll
      for (int i = 0; i < 4; i++) {
        double a = xs[k][t / 16 * 4 + i];
#pragma unroll
        for (int j = 0; j < 2; j++) acc[i][j] += truncated(a, b[j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      int m = m0 + t / 16 * 4 + i, n = n0 + t % 16 * 2 + j;
      if (m < in + bias && n < out) atomicAdd(sum + (size_t)m * out + n, acc[i][j]);
    }
}

// Forming is a layer on places, or words' vectors, whose examples' gradients are formed one at a time:
// high by wide values, sums over places of x times d, with a line more, of d alone, if there is a bias;
// and, where words are not null, of every word's dx to its own line.
struct Forming {
  const float *x, *d;
  const int *words;
  const float *dx;
  int places, high, wide, bias;
};

// What a block of 256 threads has of it: a thread four lines from t/16*4 on, and two columns from t%16*2 on.
enum { FORMED_HIGH = 64, FORMED_WIDE = 32, FORMED_DEEP = 16 };

// formed makes a block's tile of example e's gradient: the same bits for whoever asks.
__device__ __forceinline__ void formed(const Forming &f, int e, float acc[4][2]) {
  __shared__ float xs[FORMED_DEEP][FORMED_HIGH], ds[FORMED_DEEP][FORMED_WIDE];
  int t = threadIdx.x, m0 = blockIdx.x * FORMED_HIGH, n0 = blockIdx.y * FORMED_WIDE, row = t / 16 * 4, column = t % 16 * 2;
  size_t first = (size_t)e * f.places;
#pragma unroll
  for (int i = 0; i < 4; i++) acc[i][0] = acc[i][1] = 0.f;
  for (int from = 0; f.x && from < f.places; from += FORMED_DEEP) {
    __syncthreads();  // until what was there is read
    for (int k = t; k < FORMED_DEEP * FORMED_HIGH; k += 256) {
      int at = from + k / FORMED_HIGH, i = m0 + k % FORMED_HIGH;
      xs[k / FORMED_HIGH][k % FORMED_HIGH] = at >= f.places || i >= f.high + f.bias ? 0.f : i < f.high ? f.x[(first + at) * f.high + i] : 1.f;
    }
    for (int k = t; k < FORMED_DEEP * FORMED_WIDE; k += 256) {
      int at = from + k / FORMED_WIDE, j = n0 + k % FORMED_WIDE;
      ds[k / FORMED_WIDE][k % FORMED_WIDE] = at < f.places && j < f.wide ? f.d[(first + at) * f.wide + j] : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < FORMED_DEEP; k++)
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) acc[i][j] = __fmaf_rn(xs[k][row + i], ds[k][column + j], acc[i][j]);
  }
  for (int at = 0; f.words && at < f.places; at++) {
    int i = f.words[first + at] - m0 - row;
    if (i < 0 || i >= 4) continue;
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (n0 + column + j < f.wide) {
        float v = f.dx[(first + at) * f.wide + n0 + column + j];
#pragma unroll
        for (int own = 0; own < 4; own++)
          if (own == i) acc[own][j] = __fadd_rn(acc[own][j], v);
      }
  }
}

// formed_square: the square of the norm of a block's tile, of example blockIdx.z.
extern "C" __global__ void __launch_bounds__(256) formed_square(Forming f, Room r) {
  float acc[4][2];
  formed(f, blockIdx.z, acc);
  double s = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) s += (double)acc[i][0] * acc[i][0] + (double)acc[i][1] * acc[i][1];
  s = blockSum(s);
  if (threadIdx.x == 0) r.squares[(size_t)blockIdx.z * r.squaresRow + r.squares0 + blockIdx.y * gridDim.x + blockIdx.x] = s;
}

// formed_sum adds a block's tile of every gridDim.z-th example, times its weight, truncated, to sum.
extern "C" __global__ void __launch_bounds__(256) formed_sum(Forming f, const double *weights, double *sum, int g) {
  int m0 = blockIdx.x * FORMED_HIGH + threadIdx.x / 16 * 4, n0 = blockIdx.y * FORMED_WIDE + threadIdx.x % 16 * 2;
  double all[4][2] = {};
  for (int e = blockIdx.z; e < g; e += gridDim.z) {
    double w = weights[e];
    if (w == 0) continue;
    float acc[4][2];
    formed(f, e, acc);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 2; j++) all[i][j] += truncated(acc[i][j], w);
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (m0 + i < f.high + f.bias && n0 + j < f.wide) atomicAdd(sum + (size_t)(m0 + i) * f.wide + n0 + j, all[i][j]);
}
