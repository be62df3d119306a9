// What a step does to parameters that stay on the device: noise, what a clip rule goes by,
// and the movement itself.
#pragma once
#include "common.cuh"

// Keys are those of AES-256's rounds. The noise is the processor's (dp/mech, drawByKey): the
// same words of the same cipher in counter mode, by the same transform.
struct Keys {
  unsigned words[60];
};

__device__ __forceinline__ unsigned twice(unsigned x) { return (x << 1 ^ (x & 0x80 ? 0x11b : 0)) & 0xff; }

// times multiplies in AES's field.
__device__ __forceinline__ unsigned times(unsigned a, unsigned b) {
  unsigned p = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (b & 1) p ^= a;
    a = twice(a), b >>= 1;
  }
  return p;
}

// Table is what a round of the cipher looks up, once for every lane of a warp: lanes look
// for different bytes, and would wait for each other at one bank.
struct Table {
  unsigned words[256 * 32];
  __device__ __forceinline__ unsigned at(unsigned byte) const { return words[byte << 5 | (threadIdx.x & 31)]; }
};

// aesTable has 256 threads make the table: bytes are 2s, s, s and 3s of what the cipher's
// S-box has for the thread's number.
__device__ __forceinline__ void aesTable(Table &table) {
  unsigned x = threadIdx.x, power = x, inverse = 1;
#pragma unroll 1
  for (int i = 0; i < 7; i++) {  // x^254 = x^(2+4+8+…+128)
    power = times(power, power);
    inverse = times(inverse, power);
  }
  unsigned s = inverse ^ 0x63;
#pragma unroll
  for (int i = 1; i < 5; i++) s ^= (inverse << i | inverse >> (8 - i)) & 0xff;
  for (unsigned i = 0; i < 32; i++) table.words[x << 5 | ((i + x) & 31)] = twice(s) << 24 | s << 16 | s << 8 | (twice(s) ^ s);
  __syncthreads();
}

__device__ __forceinline__ unsigned turned(unsigned v, int bits) { return v >> bits | v << (32 - bits); }

__device__ __forceinline__ unsigned turnedBytes(unsigned v) { return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24; }

// normals16 are the sixteen values of block b, of standard deviation 1: the transform of Box
// and Muller, of as many words.
__device__ __forceinline__ void normals16(const Table &table, const Keys &keys, int b, float *z) {
  unsigned s[4][4];
#pragma unroll
  for (int i = 0; i < 4; i++) s[i][0] = keys.words[0], s[i][1] = keys.words[1], s[i][2] = keys.words[2], s[i][3] = keys.words[3] ^ (unsigned)(4 * b + i);
#pragma unroll 1
  for (int r = 1; r < 14; r++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      unsigned a[4];
#pragma unroll
      for (int j = 0; j < 4; j++)
        a[j] = table.at(s[i][j] >> 24) ^ turned(table.at(s[i][(j + 1) & 3] >> 16 & 0xff), 8) ^ turned(table.at(s[i][(j + 2) & 3] >> 8 & 0xff), 16) ^
               turned(table.at(s[i][(j + 3) & 3] & 0xff), 24) ^ keys.words[4 * r + j];
#pragma unroll
      for (int j = 0; j < 4; j++) s[i][j] = a[j];
    }
  unsigned w[16];
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned v = (table.at(s[i][j] >> 24) & 0xff00) << 16 | (table.at(s[i][(j + 1) & 3] >> 16 & 0xff) & 0xff00) << 8 |
                   (table.at(s[i][(j + 2) & 3] >> 8 & 0xff) & 0xff00) | (table.at(s[i][(j + 3) & 3] & 0xff) >> 8 & 0xff);
      w[4 * i + j] = turnedBytes(v ^ keys.words[56 + j]);
    }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float u = ((float)(w[i] >> 1) + 0.5f) * 0x1p-31f, angle = ((float)((int)w[i + 8] >> 8) + 0.5f) * (float)(0.78539816339744830962 * 0x1p-23);
    float radius = sqrtf(-2.f * logf(u)), sine = sinf(angle), cosine = cosf(angle);
    if (w[i + 8] & 2) radius = -radius;
    bool other = w[i + 8] & 1;
    z[i] = radius * (other ? sine : cosine), z[i + 8] = radius * (other ? cosine : sine);
  }
}

// normals draws values of standard deviation 1, 16 a thread.
extern "C" __global__ void __launch_bounds__(256) normals(float *to, Keys keys, int n) {
  __shared__ Table table;
  aesTable(table);
  int b = blockIdx.x * 256 + threadIdx.x;
  if (16 * b >= n) return;
  float z[16];
  normals16(table, keys, b, z);
#pragma unroll
  for (int j = 0; j < 16; j++)
    if (16 * b + j < n) to[16 * b + j] = z[j];
}

// added adds values times a factor to sum.
extern "C" __global__ void added(float *sum, const float *values, float by, int n) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) sum[k] += by * values[k];
}

// Turning is what directions goes by.
struct Turning {
  float bound;      // of the vectors within it
  float deviation;  // of the noise
  float taken;      // deviation of the noise in the last gradient, negative; 0: nobody asks for products without it
  int last;         // there was a step before
};

// directions makes the clipped sum of its parts, within and beyond the bound, noises it, and
// adds up products with what the last step released: with its direction, its gradient, its
// own square, and both without noise. Five values a block; then this step is the last one.
extern "C" __global__ void __launch_bounds__(256) directions(float *sum, const float *beyond, float *lastGradient, float *lastDirection, Turning by, Keys keys, Keys before,
                                                             double *products, int n) {
  __shared__ Table table;
  aesTable(table);
  int b = blockIdx.x * 256 + threadIdx.x;
  double clip = 0, step = 0, squares = 0, bareClip = 0, bareStep = 0;
  if (16 * b < n) {
    float z[16], g[16];
#pragma unroll
    for (int j = 0; j < 16; j++) g[j] = 16 * b + j < n ? sum[16 * b + j] + by.bound * beyond[16 * b + j] : 0.f;
    if (by.last && by.taken != 0.f) {
      normals16(table, before, b, z);
#pragma unroll
      for (int j = 0; j < 16; j++)
        if (16 * b + j < n) {
          bareClip += (double)g[j] * lastDirection[16 * b + j];
          bareStep += (double)g[j] * (lastGradient[16 * b + j] + by.taken * z[j]);
        }
    }
    normals16(table, keys, b, z);
#pragma unroll
    for (int j = 0; j < 16; j++)
      if (int k = 16 * b + j; k < n) {
        float v = g[j] + by.deviation * z[j];
        if (by.last) clip += (double)v * lastDirection[k], step += (double)v * lastGradient[k];
        squares += (double)v * v;
        sum[k] = lastGradient[k] = v;
        lastDirection[k] = beyond[k];
      }
  }
  double all[5] = {clip, step, squares, bareClip, bareStep};
#pragma unroll
  for (int i = 0; i < 5; i++) {
    double s = blockSum(all[i]);
    if (threadIdx.x == 0) products[5 * blockIdx.x + i] = s;
  }
}

// narrowed rounds parameters to single precision.
extern "C" __global__ void narrowed(const double *theta, float *single, int n) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) single[k] = (float)theta[k];
}

// Moving is one step of an optimiser: kinds are model's, in its order.
struct Moving {
  double factor, step, decay, beta1, beta2, keep, root, slope;
  int kind, pulled;
};

// moved moves theta against the sum times factor, a regulariser's gradient added, as
// model.Optimiser does: in double precision, operation by operation.
extern "C" __global__ void moved(double *theta, float *single, const float *sum, const double *offset, double *first, double *second, Moving m, int n) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k >= n) return;
  double t = theta[k], g = (double)sum[k] * m.factor;
  if (m.pulled) g = __dadd_rn(g, __dadd_rn(__dmul_rn(m.slope, t), offset[k]));
  if (m.kind == 0) {
    t = __dadd_rn(t, -__dmul_rn(m.step, g));
  } else if (m.kind == 1) {
    first[k] = __dadd_rn(__dmul_rn(m.decay, first[k]), g);
    t = __dadd_rn(t, -__dmul_rn(m.step, first[k]));
  } else {
    if (m.keep != 1) t = __dmul_rn(t, m.keep);
    double mean = first[k] = __dadd_rn(__dmul_rn(m.beta1, first[k]), __dmul_rn(1 - m.beta1, g)), by = 1;
    if (m.kind < 4) {
      double square = second[k] = __dadd_rn(__dmul_rn(m.beta2, second[k]), __dmul_rn(__dmul_rn(1 - m.beta2, g), g));
      by = __dadd_rn(__dmul_rn(sqrt(square), m.root), 1e-8);
      t = __dadd_rn(t, -(__dmul_rn(m.step, mean) / by));
    } else {
      t = __dadd_rn(t, -__dmul_rn(m.step, mean));
    }
  }
  theta[k] = t;
  single[k] = (float)t;
}
