// Words in and out: vectors of words and places, the scores of all words, the loss of the next
// one, and the gradient of vectors that both ends may share.
#pragma once
#include "other.cuh"
#include "tokens.cuh"

// embed gives every word its vector.
extern "C" __global__ void embed(const int *words, const float *vectors, float *out, int n, int units) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) out[k] = vectors[(size_t)words[k / units] * units + k % units];
}

// places_add adds a vector to every place.
extern "C" __global__ void places_add(const float *x, const float *vectors, float *out, int n, int each) {
  int k = blockIdx.x * 256 + threadIdx.x;
  if (k < n) out[k] = x[k] + vectors[k % each];
}

// rows_square is the squared norm of every row.
extern "C" __global__ void __launch_bounds__(256) rows_square(const float *rows, int each, Room r) {
  double s = 0;
  for (int k = threadIdx.x; k < each; k += 256) s += (double)rows[(size_t)blockIdx.x * each + k] * rows[(size_t)blockIdx.x * each + k];
  s = blockSum(s);
  if (threadIdx.x == 0) r.squares[(size_t)blockIdx.x * r.squaresRow + r.squares0] = s;
}

// words_square: the squared norm of an example's gradient of the words' vectors where they are
// read, dx, of which places of one word meet; and, unless met is null, twice its product with
// that at the scores, whose slopes times h: met has those of every place at the text's own words.
extern "C" __global__ void __launch_bounds__(256) words_square(const int *words, const float *dx, const float *h, const float *met, int places, int units, double share, Room r) {
  Pair p = pairOf(places);
  size_t first = (size_t)blockIdx.z * places;
  const int *row = words + first;
  float one[4][4];
  int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  double square = 0, lengths = 0;
  bool diagonal = p.a == p.b && tx == ty;
  between(dx + (first + p.a) * units, p.rowsA, dx + (first + p.b) * units, p.rowsB, units, one);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      int s = ty * 4 + i, t = tx * 4 + j;
      if (s < p.rowsA && t < p.rowsB && row[p.a + s] == row[p.b + t]) square += one[i][j];
      if (diagonal && i == j) lengths += sqrt((double)one[i][i]);
    }
  if (met) {
    between(h + (first + p.a) * units, p.rowsA, dx + (first + p.b) * units, p.rowsB, units, one);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        int s = ty * 4 + i, t = tx * 4 + j;
        if (s < p.rowsA && t < p.rowsB) square += 2. * one[i][j] * met[(first + p.a + s) * places + p.b + t];
      }
  }
  allowed(square, lengths, share, p, r);
}

// words_sum adds the gradients at every place where a word is read, times their weights, to
// that of the word's vector: a block is of eight words and 128 units. It looks through all places
// in their order; eight warps then take turns in those that it found.
enum { WORDS = 8 };
extern "C" __global__ void __launch_bounds__(256) words_sum(const int *words, const float *dx, const float *weights, float *sum, int n, int units, int vocabulary) {
  __shared__ unsigned masks[32];
  __shared__ int found[1024];
  __shared__ float sums[8][WORDS][128];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, word0 = blockIdx.x * WORDS, c0 = blockIdx.y * 128 + lane;
  for (int i = t; i < 8 * WORDS * 128; i += 256) ((float *)sums)[i] = 0.f;
  for (int base = 0; base < n; base += 1024) {
    int which[4];
    __syncthreads();  // of those found before
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int k = base + warp * 128 + j * 32 + lane;
      which[j] = k < n ? words[k] - word0 : -1;
      unsigned mask = __ballot_sync(~0u, (unsigned)which[j] < WORDS && weights[k] != 0.f);
      if (lane == 0) masks[warp * 4 + j] = mask;
    }
    __syncthreads();
    int count = 0, before = 0;
    for (int i = 0; i < 32; i++) {
      if (i == warp * 4) before = count;
      count += __popc(masks[i]);
    }
    if (count == 0) continue;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned mask = masks[warp * 4 + j];
      if (mask >> lane & 1) found[before + __popc(mask & ((1u << lane) - 1))] = (base + warp * 128 + j * 32 + lane) * WORDS + which[j];
      before += __popc(mask);
    }
    __syncthreads();
    for (int i0 = warp; i0 < count; i0 += 32) {
      float v[4][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int k = i0 + 8 * i < count ? found[i0 + 8 * i] / WORDS : -1;
        float w = k < 0 ? 0.f : weights[k];
#pragma unroll
        for (int j = 0; j < 4; j++) v[i][j] = k >= 0 && c0 + 32 * j < units ? w * dx[(size_t)k * units + c0 + 32 * j] : 0.f;
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (i0 + 8 * i < count)
#pragma unroll
          for (int j = 0; j < 4; j++) sums[warp][found[i0 + 8 * i] % WORDS][lane + 32 * j] += v[i][j];
    }
  }
  __syncthreads();
  for (int i = t; i < WORDS * 128; i += 256) {
    int word = word0 + i / 128, c = blockIdx.y * 128 + i % 128;
    if (word >= vocabulary || c >= units) continue;
    float s = 0;
    for (int j = 0; j < 8; j++) s += sums[j][i / 128][i % 128];
    sum[(size_t)word * units + c] += s;
  }
}

// meet keeps the slopes that place k has at the words of its text, unless nobody asks for them.
__device__ __forceinline__ void meet(const float *slopes, const int *words, float *met, int k, int places) {
  if (!met) return;
  __syncthreads();  // until all are there
  for (int i = threadIdx.x; i < places; i += 256) met[(size_t)k * places + i] = slopes[words[k / places * places + i]];
}

// next_word: the loss of the word that comes next, at one place a block, and unless back is 0
// its slopes in the scores' place. The last place of a row has none.
extern "C" __global__ void __launch_bounds__(256) next_word(float *scores, const int *words, double *losses, float *met, int places, int vocabulary, int back) {
  __shared__ float tops[8];
  __shared__ double whole;
  int t = threadIdx.x, k = blockIdx.x;
  float *y = scores + (size_t)k * vocabulary;
  if (k % places == places - 1) {
    if (back)
      for (int i = t; i < vocabulary; i += 256) y[i] = 0.f;
    if (t == 0) losses[k] = 0;
    meet(y, words, met, k, places);
    return;
  }
  float top = y[0];
  for (int i = t; i < vocabulary; i += 256) top = y[i] > top ? y[i] : top;
  for (int o = 16; o; o >>= 1) {
    float other = __shfl_xor_sync(~0u, top, o);
    top = other > top ? other : top;
  }
  if (t % 32 == 0) tops[t / 32] = top;
  __syncthreads();
  for (int i = 0; i < 8; i++) top = tops[i] > top ? tops[i] : top;
  double sum = 0;
  for (int i = t; i < vocabulary; i += 256) sum += expf(y[i] - top);
  sum = blockSum(sum);
  int next = words[k + 1];
  if (t == 0) {
    losses[k] = log(sum) + ((double)top - (double)y[next]);
    whole = sum;
  }
  __syncthreads();
  if (!back) return;
  double share = 1. / (places - 1);
  float scale = (float)(share / whole);
  for (int i = t; i < vocabulary; i += 256) {
    float v = expf(y[i] - top) * scale;
    y[i] = dropped(i == next ? v - (float)share : v);
  }
  meet(y, words, met, k, places);
}

// nextWord is next_word of at most 1024*FOURS words, in fours: a thread holds its part of a
// place's scores, which are read once and written once.
template <int FOURS>
__device__ __forceinline__ void nextWord(float *scores, const int *words, double *losses, float *met, int places, int vocabulary, int back) {
  __shared__ float tops[8];
  __shared__ double whole;
  int t = threadIdx.x, k = blockIdx.x;
  float4 *y = (float4 *)(scores + (size_t)k * vocabulary);
  if (k % places == places - 1) {
    for (int i = t; back && i < vocabulary / 4; i += 256) y[i] = make_float4(0.f, 0.f, 0.f, 0.f);
    if (t == 0) losses[k] = 0;
    meet((const float *)y, words, met, k, places);
    return;
  }
  float v[FOURS][4], top = -INFINITY;
#pragma unroll
  for (int i = 0; i < FOURS; i++) {
    float4 q = t + 256 * i < vocabulary / 4 ? y[t + 256 * i] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    v[i][0] = q.x, v[i][1] = q.y, v[i][2] = q.z, v[i][3] = q.w;
  }
  int next = words[k + 1];
  float own = scores[(size_t)k * vocabulary + next];
#pragma unroll
  for (int i = 0; i < FOURS; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) top = v[i][j] > top ? v[i][j] : top;
  for (int o = 16; o; o >>= 1) {
    float other = __shfl_xor_sync(~0u, top, o);
    top = other > top ? other : top;
  }
  if (t % 32 == 0) tops[t / 32] = top;
  __syncthreads();
  for (int i = 0; i < 8; i++) top = tops[i] > top ? tops[i] : top;
  double sum = 0;
#pragma unroll
  for (int i = 0; i < FOURS; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum += v[i][j] = expf(v[i][j] - top);
  sum = blockSum(sum);
  if (t == 0) {
    losses[k] = log(sum) + ((double)top - (double)own);
    whole = sum;
  }
  if (!back) return;
  __syncthreads();
  double share = 1. / (places - 1);
  float scale = (float)(share / whole);
#pragma unroll
  for (int i = 0; i < FOURS; i++) {
    int first = 4 * (t + 256 * i);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float slope = v[i][j] * scale;
      v[i][j] = dropped(first + j == next ? slope - (float)share : slope);
    }
    if (first < vocabulary) y[t + 256 * i] = make_float4(v[i][0], v[i][1], v[i][2], v[i][3]);
  }
  meet((const float *)y, words, met, k, places);
}
extern "C" __global__ void __launch_bounds__(256) next_word_2(float *scores, const int *words, double *losses, float *met, int places, int vocabulary, int back) {
  nextWord<2>(scores, words, losses, met, places, vocabulary, back);
}
extern "C" __global__ void __launch_bounds__(256) next_word_4(float *scores, const int *words, double *losses, float *met, int places, int vocabulary, int back) {
  nextWord<4>(scores, words, losses, met, places, vocabulary, back);
}

// text_losses: the mean over an example's places.
extern "C" __global__ void text_losses(const double *places, double *losses, int n, int each) {
  int e = blockIdx.x * 64 + threadIdx.x;
  if (e >= n) return;
  double s = 0;
  for (int i = 0; i < each; i++) s += places[(size_t)e * each + i];
  losses[e] = s / (each - 1);
}
