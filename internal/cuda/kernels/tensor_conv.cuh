// Convolutions of stride 1, both ways, on tensor cores: pixels are lines of a product, and
// channels at one place of the filter its k. A block holds lines of a picture, with what is
// around them, so that every place of the filter is the same pixels, read from elsewhere.
#pragma once
#include "pooling.cuh"
#include "tensor.cuh"

// Laying is how a block holds pixels: three parts, plane values apart, of lines of wide pixels,
// which have chunk channels each and begin pitch values apart: those of eight pixels that lie
// side by side, 16 bytes of each, are in different banks.
struct Laying {
  int wide, chunk, pitch, plane;
  unsigned overQuads, overWide;
};

// lay brings so many pixels of picture e, from line y0 and column x0 on and channel c0 on, to
// shared memory: zeros where the picture has none, or has no line before end. Whoever wants to
// add them up gets every four of them; a thread has the same channels each time if the number
// of fours in a pixel divides that of threads.
template <class Sum>
__device__ __forceinline__ void lay(unsigned short *to, const Laying &g, int pixels, const float *__restrict__ from, int e, int y0, int x0, int c0, int end, int H, int W, int C, Sum sum) {
  const int BATCH = 4, quads = g.chunk / 4, all = pixels * quads;
#pragma unroll 1
  for (int i0 = threadIdx.x; i0 < all; i0 += BATCH * blockDim.x) {
    float4 v[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int i = i0 + b * blockDim.x, p = divided(i, g.overQuads), c = 4 * (i - p * quads), l = divided(p, g.overWide), y = y0 + l, x = x0 + p - l * g.wide;
      v[b] = make_float4(0.f, 0.f, 0.f, 0.f);
      if (i < all && (unsigned)y < (unsigned)end && (unsigned)x < (unsigned)W) v[b] = __ldg((const float4 *)(from + (((size_t)e * H + y) * W + x) * C + c0 + c));
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int i = i0 + b * blockDim.x, p = divided(i, g.overQuads), c = 4 * (i - p * quads);
      if (i >= all) break;
      unsigned one[PARTS], other[PARTS];
      divide(v[b].x, v[b].y, one);
      divide(v[b].z, v[b].w, other);
#pragma unroll
      for (int k = 0; k < PARTS; k++) *(uint2 *)(to + k * g.plane + p * g.pitch + c) = make_uint2(one[k], other[k]);
      sum(v[b]);
    }
  }
}

struct Nothing {
  __device__ __forceinline__ void operator()(float4) const {}
};

// Patch says what a block computes: rows lines of a picture that parts of them share, and all
// channels, in so many groups of NT*8, each of them other warps'.
struct Patch {
  int examples;
  int outH, outW, outC, inH, inW, inC;
  int kernel, pad;
  int rows, parts, groups;
  unsigned overWidth;
  Laying lay;
};

// tensor_filters lays filters as patches reads them: [16 channels read][tap][16 computed][part],
// and what a lane has of two strips. Of the way back, taps are read from the last one on, and
// in and out change places.
struct TensorFilter {
  const float *w;
  uint4 *to;
  int taps, inC, outC, back, first;
};
struct TensorFilters {
  TensorFilter of[6];
  int count;
};
extern "C" __global__ void __launch_bounds__(256) tensor_filters(TensorFilters all) {
  int j = 0;
  while (j + 1 < all.count && (int)blockIdx.x >= all.of[j + 1].first) j++;
  const TensorFilter &f = all.of[j];
  const int k = (blockIdx.x - f.first) * 256 + threadIdx.x, lane = k % 32, pairs = f.outC / 16;
  if (k >= f.inC / 16 * f.taps * pairs * 32) return;
  const int pair = k / 32 % pairs, tap = k / (32 * pairs) % f.taps, c0 = k / (32 * pairs * f.taps) * 16 + lane % 4 * 2, o0 = pair * 16 + lane / 4;
  unsigned parts[4][PARTS];
#pragma unroll
  for (int i = 0; i < 4; i++) {  // the first strip's registers, then the second's
    const int c = c0 + i % 2 * 8, o = o0 + i / 2 * 8;
    float v[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
      v[h] = f.back ? f.w[((size_t)(f.taps - 1 - tap) * f.outC + o) * f.inC + c + h] : f.w[((size_t)tap * f.inC + c + h) * f.outC + o];
    divide(v[0], v[1], parts[i]);
  }
#pragma unroll
  for (int p = 0; p < PARTS; p++) f.to[((size_t)(k / 32) * PARTS + p) * 32 + lane] = make_uint4(parts[0][p], parts[1][p], parts[2][p], parts[3][p]);
}

// patches: the sums of MT tiles of 16 pixels and NT*8 channels, a warp's own. Pixels are counted
// along the block's lines; those behind its last one are read as that one, and nobody's.
template <int MT, int NT>
__device__ __forceinline__ void patches(const Patch &g, unsigned short *xs, const float *in, const uint4 *__restrict__ w, float (&acc)[MT][NT][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tall = g.rows + g.kernel - 1, pairs = g.outC / 16;
  const int e = blockIdx.x / g.parts, row0 = blockIdx.x % g.parts * g.rows;
  int offset[MT];
#pragma unroll
  for (int i = 0; i < MT; i++) {
    int pixel = (warp / g.groups * MT + i) * 16 + lane % 16;
    if (pixel >= g.rows * g.outW) pixel = g.rows * g.outW - 1;
    const int y = divided(pixel, g.overWidth);
    offset[i] = (y * g.lay.wide + pixel - y * g.outW) * g.lay.pitch + lane / 16 * 8;
  }
  const uint4 *filter = w + (size_t)(warp % g.groups * (NT / 2)) * PARTS * 32 + lane;
#pragma unroll 1
  for (int c0 = 0; c0 < g.inC; c0 += g.lay.chunk) {
    __syncthreads();
    lay(xs, g.lay, tall * g.lay.wide, in, e, row0 - g.pad, -g.pad, c0, g.inH, g.inH, g.inW, g.inC, Nothing());
    __syncthreads();
#pragma unroll 1
    for (int c = 0; c < g.lay.chunk; c += 16)
#pragma unroll 1
      for (int ky = 0; ky < g.kernel; ky++)
#pragma unroll 1
        for (int kx = 0; kx < g.kernel; kx++, filter += pairs * PARTS * 32) {
          Strip b[NT][PARTS];
#pragma unroll
          for (int j = 0; j < NT / 2; j++)
#pragma unroll
            for (int p = 0; p < PARTS; p++) {
              const uint4 q = __ldg(filter + (j * PARTS + p) * 32);
              b[2 * j][p][0] = q.x, b[2 * j][p][1] = q.y, b[2 * j + 1][p][0] = q.z, b[2 * j + 1][p][1] = q.w;
            }
          const unsigned short *from = xs + (ky * g.lay.wide + kx) * g.lay.pitch + c;
#pragma unroll
          for (int i = 0; i < MT; i++) {
            Tile a[PARTS];
#pragma unroll
            for (int p = 0; p < PARTS; p++) fetchTile<false>(a[p], from + p * g.lay.plane + offset[i]);
            float s[NT][4] = {};
            multiplyRow(s, a, b);
#pragma unroll
            for (int j = 0; j < NT; j++)
#pragma unroll
              for (int k = 0; k < 4; k++) acc[i][j][k] += s[j][k];
          }
        }
  }
}

// eachPair gives what a warp has computed to put, two channels that lie side by side at a time,
// with their pixel of the block, if that is one of so many, and their channel.
template <int MT, int NT, class Put>
__device__ __forceinline__ void eachPair(const Patch &g, int pixels, const float (&acc)[MT][NT][4], Put put) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < MT; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int pixel = (warp / g.groups * MT + i) * 16 + lane / 4 + 8 * h;
      if (pixel >= pixels) continue;
#pragma unroll
      for (int j = 0; j < NT; j++) put(pixel, (warp % g.groups * NT + j) * 8 + lane % 4 * 2, acc[i][j][2 * h], acc[i][j][2 * h + 1]);
    }
}

// tensorConv: out = act(sum + bias), times the slope of gate at its output y.
template <int MT, int NT>
__device__ __forceinline__ void tensorConv(const Patch &g, const float *in, const uint4 *w, const float *bias, Act act, const float *y, Act gate, float *out) {
  DYNAMIC(zs);
  float acc[MT][NT][4] = {};
  patches<MT, NT>(g, (unsigned short *)zs, in, w, acc);
  const int e = blockIdx.x / g.parts, row0 = blockIdx.x % g.parts * g.rows, rows = g.outH - row0 < g.rows ? g.outH - row0 : g.rows;
  const size_t first = ((size_t)e * g.outH + row0) * g.outW;
  eachPair<MT, NT>(g, rows * g.outW, acc, [=](int pixel, int c, float u, float v) {
    const size_t o = (first + pixel) * g.outC + c;
    if (bias) u += __ldg(bias + c), v += __ldg(bias + c + 1);
    u = apply(act, u), v = apply(act, v);
    if (y) {
      const float2 there = *(const float2 *)(y + o);
      u = slopeAt(gate, there.x, u), v = slopeAt(gate, there.y, v);
    }
    *(float2 *)(out + o) = make_float2(u, v);
  });
}

// tensorPooled: the pool of act(sum + bias), as pooled has it.
template <int MT, int NT>
__device__ __forceinline__ void tensorPooled(const Patch &g, const Pooling &p, const float *in, const uint4 *w, const float *bias, Act act, Act after, float *out,
                                             unsigned char *which) {
  DYNAMIC(zs);
  float acc[MT][NT][4] = {};
  patches<MT, NT>(g, (unsigned short *)zs, in, w, acc);
  const int wide = g.outC + 8;  // lines of a tile are in different banks
  __syncthreads();
  eachPair<MT, NT>(g, g.rows * g.outW, acc, [=](int pixel, int c, float u, float v) {
    if (bias) u += __ldg(bias + c), v += __ldg(bias + c + 1);
    *(float2 *)(zs + pixel * wide + c) = make_float2(apply(act, u), apply(act, v));
  });
  __syncthreads();
  takeLargest(p, zs, wide, g.outC / 4, blockIdx.x / g.parts, blockIdx.x % g.parts * p.lines, 0, g.outC, act, after, out, which);
}

// Blocks of whole fours of warps: a processor has four parts, and each its own warps. Of THREADS
// so many BLOCKS have the registers that a warp's sums need.
#define TENSOR_CONV(MT, NT, THREADS, BLOCKS)                                                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) tensor_conv_##MT##_##NT(Patch g, const float *in, const uint4 *w, const float *bias,   \
                                                                                        Act act, const float *y, Act gate, float *out) {               \
    tensorConv<MT, NT>(g, in, w, bias, act, y, gate, out);                                                                                             \
  }                                                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) tensor_pooled_##MT##_##NT(Patch g, Pooling p, const float *in, const uint4 *w,         \
                                                                                          const float *bias, Act act, Act after, float *out,           \
                                                                                          unsigned char *which) {                                      \
    tensorPooled<MT, NT>(g, p, in, w, bias, act, after, out, which);                                                                                   \
  }
TENSOR_CONV(3, 4, 256, 2)
TENSOR_CONV(4, 2, 256, 2)
