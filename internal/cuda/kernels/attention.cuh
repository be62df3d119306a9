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

// Of at most 64 places and heads of at most 32 channels, in fours, a block holds a head of an
// example whole: what lies between reading and writing stays in registers and shared memory. A
// thread has places 4*(t/16) to 4*(t/16)+3, and of those that they look at t%16, t%16 + 16 and
// so on, whose rows begin in different banks; of channels 2*(t%16) and the next one.
enum { NEAR_PLACES = 64, NEAR_WIDTH = 32, NEAR_ROW = NEAR_WIDTH + 4, NEAR_ROWS = NEAR_PLACES * NEAR_ROW, NEAR_LOOKS_ROW = NEAR_PLACES + 4, NEAR_LOOKS = NEAR_PLACES * NEAR_LOOKS_ROW };

// nearLoad reads a head's rows; what is not there is 0.
__device__ __forceinline__ void nearLoad(float *to, const float *from, int step, const Heads &g) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int at = threadIdx.x + 256 * i, place = at / 8, c = at % 8 * 4;
    *(float4 *)(to + place * NEAR_ROW + c) = fetch<true>(from + (size_t)place * step + c, place < g.places && c < g.width ? 4 : 0);
  }
}

// nearPairs: products of a thread's places' rows of x with rows of y that they look at.
__device__ __forceinline__ void nearPairs(const float *x, const float *y, float (&acc)[4][4]) {
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) acc[i][j] = 0.f;
#pragma unroll 2
  for (int c = 0; c < NEAR_WIDTH; c += 4) {
    float4 u[4], v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) u[i] = *(const float4 *)(x + (4 * ty + i) * NEAR_ROW + c), v[i] = *(const float4 *)(y + (tx + 16 * i) * NEAR_ROW + c);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) acc[i][j] += u[i].x * v[j].x + u[i].y * v[j].y + u[i].z * v[j].z + u[i].w * v[j].w;
  }
}

// nearLooks lays what a thread has of weights, or their slopes, where others read it.
__device__ __forceinline__ void nearLooks(float *looks, const float (&w)[4][4]) {
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) looks[(4 * ty + i) * NEAR_LOOKS_ROW + tx + 16 * j] = w[i][j];
}

// nearSeen: for a thread's places the sum of rows of y, times weights, that they look at.
__device__ __forceinline__ void nearSeen(const float *looks, const float *y, float (&acc)[4][2]) {
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < 4; i++) acc[i][0] = acc[i][1] = 0.f;
#pragma unroll 2
  for (int at = 0; at <= 4 * ty; at += 4) {  // later ones have no weight
    float4 w[4];
    float2 v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = *(const float4 *)(looks + (4 * ty + i) * NEAR_LOOKS_ROW + at), v[i] = *(const float2 *)(y + (at + i) * NEAR_ROW + 2 * tx);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      acc[i][0] += w[i].x * v[0].x + w[i].y * v[1].x + w[i].z * v[2].x + w[i].w * v[3].x;
      acc[i][1] += w[i].x * v[0].y + w[i].y * v[1].y + w[i].z * v[2].y + w[i].w * v[3].y;
    }
  }
}

// nearSeers: the same of the places that look at a thread's places.
__device__ __forceinline__ void nearSeers(const float *looks, const float *y, float (&acc)[4][2]) {
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < 4; i++) acc[i][0] = acc[i][1] = 0.f;
#pragma unroll 4
  for (int place = 4 * ty; place < NEAR_PLACES; place++) {
    float4 w = *(const float4 *)(looks + place * NEAR_LOOKS_ROW + 4 * ty);
    float2 v = *(const float2 *)(y + place * NEAR_ROW + 2 * tx);
    acc[0][0] += w.x * v.x, acc[1][0] += w.y * v.x, acc[2][0] += w.z * v.x, acc[3][0] += w.w * v.x;
    acc[0][1] += w.x * v.y, acc[1][1] += w.y * v.y, acc[2][1] += w.z * v.y, acc[3][1] += w.w * v.y;
  }
}

// nearStore writes a thread's places' channels, times by.
__device__ __forceinline__ void nearStore(float *to, int step, float by, const float (&acc)[4][2], const Heads &g) {
  int c = threadIdx.x % 16 * 2, first = threadIdx.x / 16 * 4;
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (first + i < g.places && c < g.width) *(float2 *)(to + (size_t)(first + i) * step + c) = make_float2(by * acc[i][0], by * acc[i][1]);
}

// nearShares makes weights of a place's products: what it does not look at has none.
__device__ __forceinline__ void nearShares(float (&w)[4], int place, float scale) {
  int tx = threadIdx.x % 16;
  float top = tx <= place ? w[0] : -INFINITY, sum = 0.f;
#pragma unroll
  for (int j = 1; j < 4; j++) top = tx + 16 * j <= place && w[j] > top ? w[j] : top;
#pragma unroll
  for (int o = 8; o; o >>= 1) {
    float other = __shfl_xor_sync(~0u, top, o);
    top = other > top ? other : top;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) sum += w[j] = tx + 16 * j <= place ? expf(scale * (w[j] - top)) : 0.f;
#pragma unroll
  for (int o = 8; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
#pragma unroll
  for (int j = 0; j < 4; j++) w[j] = w[j] / sum;
}

// attend_near is attend, one head of one example a block.
extern "C" __global__ void __launch_bounds__(256, 4) attend_near(const float *x, float *weights, float *out, Heads g) {
  __shared__ float4 room[3 * NEAR_ROWS / 4];
  float *q = (float *)room, *keys = q + NEAR_ROWS, *values = keys + NEAR_ROWS;
  int T = g.places, all = g.heads * g.width, row = 3 * all, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const float *from = x + (size_t)blockIdx.y * T * row + blockIdx.x * g.width;
  float *kept = weights + ((size_t)blockIdx.y * g.heads + blockIdx.x) * T * T, scale = (float)(1 / sqrt((double)g.width));
  nearLoad(q, from, row, g);
  nearLoad(keys, from + all, row, g);
  nearLoad(values, from + 2 * all, row, g);
  __syncthreads();
  float w[4][4], acc[4][2];
  nearPairs(q, keys, w);
#pragma unroll
  for (int i = 0; i < 4; i++) nearShares(w[i], 4 * ty + i, scale);
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (4 * ty + i < T && tx + 16 * j < T) kept[(4 * ty + i) * T + tx + 16 * j] = w[i][j];
  __syncthreads();  // questions and keys give their place to weights
  nearLooks(q, w);
  __syncthreads();
  nearSeen(q, values, acc);
  nearStore(out + (size_t)blockIdx.y * T * all + blockIdx.x * g.width, all, 1.f, acc, g);
}

// attend_back_near is attend_back, one head of one example a block.
extern "C" __global__ void __launch_bounds__(256, 3) attend_back_near(const float *x, const float *weights, const float *out, const float *d, float *dx, Heads g) {
  __shared__ float4 room[(3 * NEAR_ROWS + NEAR_LOOKS) / 4];
  __shared__ float along[NEAR_PLACES];
  float *q = (float *)room, *keys = q + NEAR_ROWS, *dy = keys + NEAR_ROWS, *looks = dy + NEAR_ROWS, *values = looks;
  int T = g.places, all = g.heads * g.width, row = 3 * all, t = threadIdx.x, tx = t % 16, ty = t / 16;
  const float *from = x + (size_t)blockIdx.y * T * row + blockIdx.x * g.width, *kept = weights + ((size_t)blockIdx.y * g.heads + blockIdx.x) * T * T;
  size_t first = (size_t)blockIdx.y * T * all + blockIdx.x * g.width;
  float *to = dx + (size_t)blockIdx.y * T * row + blockIdx.x * g.width, scale = (float)(1 / sqrt((double)g.width));
  float w[4][4], slopes[4][4], acc[4][2];
  nearLoad(q, from, row, g);
  nearLoad(keys, from + all, row, g);
  nearLoad(values, from + 2 * all, row, g);
  nearLoad(dy, d + first, all, g);
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) w[i][j] = 4 * ty + i < T && tx + 16 * j <= 4 * ty + i ? kept[(4 * ty + i) * T + tx + 16 * j] : 0.f;
  __syncthreads();
  float dot = 0.f;  // of place t/4, from channel t%4*4 on and 16 behind
#pragma unroll
  for (int c = t % 4 * 4; c < NEAR_WIDTH; c += 16) {
    float4 v = fetch<true>(out + first + (size_t)(t / 4) * all + c, t / 4 < T && c < g.width ? 4 : 0), u = *(const float4 *)(dy + t / 4 * NEAR_ROW + c);
    dot += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  dot += __shfl_xor_sync(~0u, dot, 1);
  dot += __shfl_xor_sync(~0u, dot, 2);
  if (t % 4 == 0) along[t / 4] = dot;
  nearPairs(dy, values, slopes);
  __syncthreads();  // values give their place to weights
  nearLooks(looks, w);
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) slopes[i][j] = tx + 16 * j <= 4 * ty + i ? w[i][j] * (slopes[i][j] - along[4 * ty + i]) : 0.f;
  __syncthreads();
  nearSeers(looks, dy, acc);
  nearStore(to + 2 * all, row, 1.f, acc, g);
  __syncthreads();  // and those to their slopes
  nearLooks(looks, slopes);
  __syncthreads();
  nearSeers(looks, q, acc);
  nearStore(to + all, row, scale, acc, g);
  nearSeen(looks, keys, acc);
  nearStore(to, row, scale, acc, g);
}
