// Gradients of the filters of convolutions of stride 1 on tensor cores, one example a block:
// channels read, at every place of the filter, are lines of a product, channels computed its
// columns, and pixels its k.
#pragma once
#include "tensor_conv.cuh"

// TensorTaps says what a block holds at a time: rows lines of the gradient, and the pixels that
// they were computed from. Both lie in lines of as many pixels, so that a place of the filter
// is the same pixels read from elsewhere: behind its last column the gradient has zeros.
struct TensorTaps {
  int outH, outW, outC, inH, inW, inC;
  int kernel, pad, bias;
  int rows, groups, pixels;  // groups of NT*8 channels of a block; pixels of the gradient, whole sixteens
  Laying x, d;
};

// tensorTaps: a warp has MT tiles of 16 channels read, at one place of the filter each, and
// NT*8 channels computed. Blocks of an example have channels computed of their own.
template <int MT, int NT>
__device__ __forceinline__ void tensorTaps(const TensorTaps &g, const float *x, const float *d, const Room &room) {
  DYNAMIC(zs);
  unsigned short *xs = (unsigned short *)zs, *ds = xs + PARTS * g.x.plane;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, e = blockIdx.x, deep = g.inC / 16, tiles = g.kernel * g.kernel * deep;
  int offset[MT];
#pragma unroll
  for (int i = 0; i < MT; i++) {
    int tile = warp / g.groups * MT + i;
    if (tile >= tiles) tile = tiles - 1;
    const int tap = tile / deep;
    offset[i] = (tap / g.kernel * g.x.wide + tap % g.kernel) * g.x.pitch + tile % deep * 16 + (lane % 8 + lane / 16 * 8) * g.x.pitch + lane / 8 % 2 * 8;
  }
  const int out0 = blockIdx.y * g.d.chunk;
  const unsigned short *slopes = ds + warp % g.groups * NT * 8 + lane % 16 * g.d.pitch + lane / 16 * 8;
  float acc[MT][NT][4] = {};
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll 1
  for (int row0 = 0; row0 < g.outH; row0 += g.rows) {
    __syncthreads();
    // Pixels behind those of the lines: the gradient is zero there.
    lay(xs, g.x, g.pixels + (g.kernel - 1) * (g.x.wide + 1), x, e, row0 - g.pad, -g.pad, 0, g.inH, g.inH, g.inW, g.inC, Nothing());
    lay(ds, g.d, g.pixels, d, e, row0, 0, out0, row0 + g.rows < g.outH ? row0 + g.rows : g.outH, g.outH, g.outW, g.outC,
        [&](float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; });
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < g.pixels; k += 16) {
      Strip b[NT][PARTS];
#pragma unroll
      for (int j = 0; j < NT / 2; j++)
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
          Tile q;
          fetchTile<true>(q, slopes + p * g.d.plane + k * g.d.pitch + j * 16);
          b[2 * j][p][0] = q[0], b[2 * j][p][1] = q[1], b[2 * j + 1][p][0] = q[2], b[2 * j + 1][p][1] = q[3];
        }
#pragma unroll
      for (int i = 0; i < MT; i++) {
        Tile a[PARTS];
#pragma unroll
        for (int p = 0; p < PARTS; p++) fetchTile<true>(a[p], xs + p * g.x.plane + k * g.x.pitch + offset[i]);
        float s[NT][4] = {};
        multiplyRow(s, a, b);
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
          for (int n = 0; n < 4; n++) acc[i][j][n] += s[j][n];
      }
    }
  }
  double square = 0;
  float *kept = room.kept + (size_t)e * room.keptRow + room.kept0;
#pragma unroll
  for (int i = 0; i < MT; i++) {
    const int tile = warp / g.groups * MT + i;
    if (tile >= tiles) break;
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const float u = acc[i][j][2 * h], v = acc[i][j][2 * h + 1];
        const int in = tile / deep * g.inC + tile % deep * 16 + lane / 4 + 8 * h, out = out0 + (warp % g.groups * NT + j) * 8 + lane % 4 * 2;
        *(float2 *)(kept + (size_t)in * g.outC + out) = make_float2(u, v);
        square += (double)u * u + (double)v * v;
      }
  }
  if (g.bias) {
    float4 *columnSums = (float4 *)zs;
    __syncthreads();
    columnSums[t] = sum;
    __syncthreads();
    const int quads = g.d.chunk / 4;
    for (int c = t; c < g.d.chunk; c += blockDim.x) {
      float s = 0;
      for (int i = c / 4; i < (int)blockDim.x; i += quads) s += ((const float *)(columnSums + i))[c % 4];
      kept[(size_t)g.kernel * g.kernel * g.inC * g.outC + out0 + c] = s;
      square += (double)s * s;
    }
  }
  square = blockSum(square);
  if (t == 0) room.squares[(size_t)e * room.squaresRow + room.squares0 + blockIdx.y] = square;
}

#define TENSOR_TAPS(MT, NT, BLOCKS)                                                                                                              \
  extern "C" __global__ void __launch_bounds__(128, BLOCKS) tensor_taps_##MT##_##NT(TensorTaps g, const float *x, const float *d, Room room) {   \
    tensorTaps<MT, NT>(g, x, d, room);                                                                                                           \
  }
TENSOR_TAPS(3, 4, 4)
TENSOR_TAPS(4, 4, 3)
TENSOR_TAPS(9, 4, 2)
TENSOR_TAPS(5, 2, 4)
