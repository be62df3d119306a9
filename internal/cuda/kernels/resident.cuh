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

// SBOX is AES's.
__device__ const unsigned char SBOX[256] = {
    99, 124, 119, 123, 242, 107, 111, 197, 48, 1, 103, 43, 254, 215, 171, 118, 202, 130, 201, 125, 250, 89, 71, 240, 173, 212, 162, 175, 156, 164, 114, 192,
    183, 253, 147, 38, 54, 63, 247, 204, 52, 165, 229, 241, 113, 216, 49, 21, 4, 199, 35, 195, 24, 150, 5, 154, 7, 18, 128, 226, 235, 39, 178, 117,
    9, 131, 44, 26, 27, 110, 90, 160, 82, 59, 214, 179, 41, 227, 47, 132, 83, 209, 0, 237, 32, 252, 177, 91, 106, 203, 190, 57, 74, 76, 88, 207,
    208, 239, 170, 251, 67, 77, 51, 133, 69, 249, 2, 127, 80, 60, 159, 168, 81, 163, 64, 143, 146, 157, 56, 245, 188, 182, 218, 33, 16, 255, 243, 210,
    205, 12, 19, 236, 95, 151, 68, 23, 196, 167, 126, 61, 100, 93, 25, 115, 96, 129, 79, 220, 34, 42, 144, 136, 70, 238, 184, 20, 222, 94, 11, 219,
    224, 50, 58, 10, 73, 6, 36, 92, 194, 211, 172, 98, 145, 149, 228, 121, 231, 200, 55, 109, 141, 213, 78, 169, 108, 86, 244, 234, 101, 122, 174, 8,
    186, 120, 37, 46, 28, 166, 180, 198, 232, 221, 116, 31, 75, 189, 139, 138, 112, 62, 181, 102, 72, 3, 246, 14, 97, 53, 87, 185, 134, 193, 29, 158,
    225, 248, 152, 17, 105, 217, 142, 148, 155, 30, 135, 233, 206, 85, 40, 223, 140, 161, 137, 13, 191, 230, 66, 104, 65, 153, 45, 15, 176, 84, 187, 22,
};

// Table is what a round of the cipher looks up, once for every lane of a warp: lanes look
// for different bytes, and would wait for each other at one bank. at is of a byte that lies
// 7 bits up, the others do not matter.
struct Table {
  unsigned words[256 * 32];
  __device__ __forceinline__ unsigned at(unsigned up) const { return *(const unsigned *)((const char *)words + (up & 0x7f80 | (threadIdx.x & 31) << 2)); }
  __device__ __forceinline__ unsigned at3(unsigned v) const { return at(v >> 17); }
  __device__ __forceinline__ unsigned at2(unsigned v) const { return at(v >> 9); }
  __device__ __forceinline__ unsigned at1(unsigned v) const { return at(v >> 1); }
  __device__ __forceinline__ unsigned at0(unsigned v) const { return at(v << 7); }
};

// aesTable has 256 threads make the table: bytes are 2s, s, s and 3s of what the cipher's
// S-box has for the thread's number.
__device__ __forceinline__ void aesTable(Table &table) {
  unsigned x = threadIdx.x, s = SBOX[x];
#pragma unroll
  for (unsigned i = 0; i < 32; i++) table.words[x << 5 | ((i + x) & 31)] = twice(s) << 24 | s << 16 | s << 8 | (twice(s) ^ s);
  __syncthreads();
}

__device__ __forceinline__ unsigned turned(unsigned v, int bits) { return v >> bits | v << (32 - bits); }

__device__ __forceinline__ unsigned turnedBytes(unsigned v) { return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff0000) | v << 24; }

// normalsOf are values of standard deviation 1: the transform of Box and Muller, of as many
// words. Of the sixteen values of block b all (STEP 1), or those which follow from its parts
// first and first + 2 (STEP 2): fours from 4*first and 8 + 4*first on.
template <int STEP>
__device__ __forceinline__ void normalsOf(const Table &table, const Keys &keys, int b, int first, float *z) {
  const int PARTS = 4 / STEP;
  unsigned s[PARTS][4];
#pragma unroll
  for (int i = 0; i < PARTS; i++) s[i][0] = keys.words[0], s[i][1] = keys.words[1], s[i][2] = keys.words[2], s[i][3] = keys.words[3] ^ (unsigned)(4 * b + first + STEP * i);
#pragma unroll 1
  for (int r = 1; r < 14; r++)
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
      unsigned a[4];
#pragma unroll
      for (int j = 0; j < 4; j++)
        a[j] = table.at3(s[i][j]) ^ turned(table.at2(s[i][(j + 1) & 3]), 8) ^ turned(table.at1(s[i][(j + 2) & 3]), 16) ^ turned(table.at0(s[i][(j + 3) & 3]), 24) ^ keys.words[4 * r + j];
#pragma unroll
      for (int j = 0; j < 4; j++) s[i][j] = a[j];
    }
  unsigned w[4 * PARTS];
#pragma unroll
  for (int i = 0; i < PARTS; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned v = (table.at3(s[i][j]) & 0xff00) << 16 | (table.at2(s[i][(j + 1) & 3]) & 0xff00) << 8 | (table.at1(s[i][(j + 2) & 3]) & 0xff00) |
                   (table.at0(s[i][(j + 3) & 3]) >> 8 & 0xff);
      w[4 * i + j] = turnedBytes(v ^ keys.words[56 + j]);
    }
#pragma unroll
  for (int i = 0; i < 2 * PARTS; i++) {
    const unsigned by = w[i + 2 * PARTS];
    float u = ((float)(w[i] >> 1) + 0.5f) * 0x1p-31f, angle = ((float)((int)by >> 8) + 0.5f) * (float)(0.78539816339744830962 * 0x1p-23);
    float radius = sqrtf(-2.f * logf(u)), sine = sinf(angle), cosine = cosf(angle);
    if (by & 2) radius = -radius;
    bool other = by & 1;
    z[i] = radius * (other ? sine : cosine), z[i + 2 * PARTS] = radius * (other ? cosine : sine);
  }
}

__device__ __forceinline__ void normals16(const Table &table, const Keys &keys, int b, float *z) { normalsOf<1>(table, keys, b, 0, z); }

// normals draws values of standard deviation 1, 8 a thread: two threads have sixteen.
extern "C" __global__ void __launch_bounds__(256) normals(float *to, Keys keys, int n) {
  __shared__ Table table;
  aesTable(table);
  int k = blockIdx.x * 256 + threadIdx.x, at = k / 2 * 16 + k % 2 * 4;
  if (at >= n) return;
  float z[8];
  normalsOf<2>(table, keys, k / 2, k % 2, z);
  store4(to + at, z, n - at, aligned(to));
  store4(to + at + 8, z + 4, n - at - 8, aligned(to));
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
