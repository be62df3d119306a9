// Attention: every place looks back at itself and the places before it. A place's channels are
// a question, a key and a value, one after another; every head has its part of each.
#pragma once
#include "common.cuh"

// small: 64x64 values a block of 256 threads, 4x4 each, of a sum over K of a(m, k) b(n, k). The
// sides lie along k where AALONG and BALONG say so.
enum { SMALL = 16 * 17 };  // of shared memory, for each side
template <bool AALONG, bool BALONG, class A, class B>
__device__ __forceinline__ void small(float4 *room, int K, A a, B b, float acc[4][4]) {
  float4 *as4 = room, *bs4 = room + SMALL;
  float *as = (float *)as4, *bs = (float *)bs4;
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) acc[i][j] = 0;
#pragma unroll 1
  for (int k0 = 0; k0 < K; k0 += 16) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int o = t + 256 * i, ak = AALONG ? o % 16 : o / 64, am = AALONG ? o / 16 : o % 64, bk = BALONG ? o % 16 : o / 64, bn = BALONG ? o / 16 : o % 64;
      as[ak * 68 + am] = k0 + ak < K ? a(am, k0 + ak) : 0.f;
      bs[bk * 68 + bn] = k0 + bk < K ? b(bn, k0 + bk) : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k++) {
      float4 u = as4[k * 17 + ty], v = bs4[k * 17 + tx];
      float ar[4] = {u.x, u.y, u.z, u.w}, br[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] += ar[i] * br[j];
    }
  }
  __syncthreads();
}

// Heads is what attention is of.
struct Heads {
  int places, heads, width;
};

// attend: 64 places of one head of one example a block. Weights, [place][looked at], are kept
// for the way back.
extern "C" __global__ void __launch_bounds__(256) attend(const float *x, float *weights, float *out, Heads g) {
  __shared__ float4 room[2 * SMALL];
  int T = g.places, all = g.heads * g.width, row = 3 * all, i0 = blockIdx.x * 64, h = blockIdx.y, e = blockIdx.z;
  int t = threadIdx.x, tx = t % 16, ty = t / 16, seen = i0 + 64 < T ? i0 + 64 : T;
  const float *q = x + (size_t)e * T * row + h * g.width, *keys = q + all, *values = keys + all;
  float *w = weights + ((size_t)e * g.heads + h) * T * T, scale = (float)(1 / sqrt((double)g.width)), acc[4][4];
  for (int j0 = 0; j0 < seen; j0 += 64) {
    small<true, true>(
        room, g.width, [=](int m, int k) { return i0 + m < T ? q[(size_t)(i0 + m) * row + k] : 0.f; },
        [=](int n, int k) { return j0 + n < T ? keys[(size_t)(j0 + n) * row + k] : 0.f; }, acc);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        int place = i0 + ty * 4 + i, at = j0 + tx * 4 + j;
        if (place < T && at <= place) w[(size_t)place * T + at] = scale * acc[i][j];
      }
  }
  __syncthreads();
  for (int base = i0; base < seen; base += 8) {  // all warps as often
    int lane = t % 32, place = base + t / 32 < seen ? base + t / 32 : -1;
    float *line = w + (size_t)(place < 0 ? i0 : place) * T, top = place < 0 ? 0.f : line[0];
    for (int k = lane; k <= place; k += 32) top = line[k] > top ? line[k] : top;
    for (int o = 16; o; o >>= 1) {
      float other = __shfl_xor_sync(~0u, top, o);
      top = other > top ? other : top;
    }
    double sum = 0;
    for (int k = lane; k <= place; k += 32) sum += line[k] = expf(line[k] - top);
    float share = (float)(1 / warpSum(sum));
    for (int k = lane; k < T && place >= 0; k += 32) line[k] = k <= place ? line[k] * share : 0.f;
  }
  __syncthreads();
  for (int c0 = 0; c0 < g.width; c0 += 64) {
    small<true, false>(
        room, seen, [=](int m, int k) { return i0 + m < T ? w[(size_t)(i0 + m) * T + k] : 0.f; },
        [=](int n, int k) { return c0 + n < g.width ? values[(size_t)k * row + c0 + n] : 0.f; }, acc);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        int place = i0 + ty * 4 + i, c = c0 + tx * 4 + j;
        if (place < T && c < g.width) out[((size_t)e * T + place) * all + h * g.width + c] = acc[i][j];
      }
  }
}

// attend_back: the gradient at questions, keys and values, of one head of one example a block.
// Slopes is room for the gradient at the weights, along for that of every place along them.
extern "C" __global__ void __launch_bounds__(256) attend_back(const float *x, const float *weights, const float *out, const float *d, float *slopes, float *along, float *dx,
                                                              Heads g) {
  __shared__ float4 room[2 * SMALL];
  int T = g.places, all = g.heads * g.width, row = 3 * all, h = blockIdx.x, e = blockIdx.y;
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
  const float *q = x + (size_t)e * T * row + h * g.width, *keys = q + all, *values = keys + all;
  const float *w = weights + ((size_t)e * g.heads + h) * T * T, *y = out + (size_t)e * T * all + h * g.width, *dy = d + (size_t)e * T * all + h * g.width;
  float *s = slopes + ((size_t)e * g.heads + h) * T * T, *dot = along + ((size_t)e * g.heads + h) * T;
  float *dq = dx + (size_t)e * T * row + h * g.width, *dk = dq + all, *dv = dk + all;
  float scale = (float)(1 / sqrt((double)g.width)), acc[4][4];
  for (int base = 0; base < T; base += 8) {
    int place = base + t / 32;
    double sum = 0;
    for (int c = t % 32; c < g.width && place < T; c += 32) sum += (double)dy[(size_t)place * all + c] * y[(size_t)place * all + c];
    sum = warpSum(sum);
    if (t % 32 == 0 && place < T) dot[place] = (float)sum;
  }
  __syncthreads();
  for (int i0 = 0; i0 < T; i0 += 64)
    for (int j0 = 0; j0 <= i0; j0 += 64) {
      small<true, true>(
          room, g.width, [=](int m, int k) { return i0 + m < T ? dy[(size_t)(i0 + m) * all + k] : 0.f; },
          [=](int n, int k) { return j0 + n < T ? values[(size_t)(j0 + n) * row + k] : 0.f; }, acc);
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
          int place = i0 + ty * 4 + i, at = j0 + tx * 4 + j;
          if (place < T && at < T) s[(size_t)place * T + at] = at <= place ? w[(size_t)place * T + at] * (acc[i][j] - dot[place]) : 0.f;
        }
    }
  __syncthreads();
  for (int i0 = 0; i0 < T; i0 += 64)
    for (int c0 = 0; c0 < g.width; c0 += 64) {
      int seen = i0 + 64 < T ? i0 + 64 : T;
      auto put = [=](float *to, float by, const float acc[4][4]) {
        for (int i = 0; i < 4; i++)
          for (int j = 0; j < 4; j++)
            if (i0 + ty * 4 + i < T && c0 + tx * 4 + j < g.width) to[(size_t)(i0 + ty * 4 + i) * row + c0 + tx * 4 + j] = by * acc[i][j];
      };
      small<true, false>(
          room, seen, [=](int m, int k) { return i0 + m < T ? s[(size_t)(i0 + m) * T + k] : 0.f; },
          [=](int n, int k) { return c0 + n < g.width ? keys[(size_t)k * row + c0 + n] : 0.f; }, acc);
      put(dq, scale, acc);
      // The places from i0 on look at those of this tile.
      small<false, false>(
          room, T - i0, [=](int m, int k) { return i0 + m < T ? s[(size_t)(i0 + k) * T + i0 + m] : 0.f; },
          [=](int n, int k) { return c0 + n < g.width ? q[(size_t)(i0 + k) * row + c0 + n] : 0.f; }, acc);
      put(dk, scale, acc);
      small<false, false>(
          room, T - i0, [=](int m, int k) { return i0 + m < T ? w[(size_t)(i0 + k) * T + i0 + m] : 0.f; },
          [=](int n, int k) { return c0 + n < g.width ? dy[(size_t)(i0 + k) * all + c0 + n] : 0.f; }, acc);
      put(dv, 1.f, acc);
    }
}
