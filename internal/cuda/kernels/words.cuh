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

// order_words sorts places by the word that is read there, those of one word in their order. A block has
// 32 words, one a lane: it looks through all places twice, each of as many warps through its part of them,
// first to count those of its words and of words before them, which is where its own begin.
enum { WORDS = 32, ORDER_WARPS = 32 };

// eachWord looks through a warp's places: below is given how many of 32 have words before the block's, and
// found, for each of the block's words among them, which word, and which lanes have it from place k on.
template <class Below, class Found>
__device__ __forceinline__ void eachWord(const int *words, int word0, int from, int to, Below below, Found found) {
  int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int base = from; base < to; base += 512) {
    int which[16];
#pragma unroll
    for (int j = 0; j < 16; j++) {
      int k = base + j * 32 + lane;
      which[j] = k < to ? words[k] - word0 : WORDS;
    }
#pragma unroll
    for (int j = 0; j < 16; j++) {
      below(__popc(__ballot_sync(~0u, which[j] < 0)));
      for (unsigned mask = __ballot_sync(~0u, (unsigned)which[j] < WORDS); mask;) {
        int word = __shfl_sync(~0u, which[j], __ffs(mask) - 1);
        unsigned same = __ballot_sync(~0u, which[j] == word);
        found(word, same, base + j * 32);
        mask &= ~same;
      }
    }
  }
}
extern "C" __global__ void __launch_bounds__(32 * ORDER_WARPS) order_words(const int *words, int *order, int n) {
  __shared__ int counts[ORDER_WARPS][WORDS], belows[ORDER_WARPS];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, word0 = blockIdx.x * WORDS, each = (n + 32 * ORDER_WARPS - 1) / (32 * ORDER_WARPS) * 32, from = warp * each, to = from + each < n ? from + each : n;
  int count = 0, before = 0;
  eachWord(
      words, word0, from, to, [&](int some) { before += some; }, [&](int word, unsigned same, int) { count += lane == word ? __popc(same) : 0; });
  counts[warp][lane] = count;
  if (lane == 0) belows[warp] = before;
  __syncthreads();
  int start = 0, all = 0;
  for (int i = 0; i < ORDER_WARPS; i++) {
    start += belows[i] + (i < warp ? counts[i][lane] : 0);
    all += counts[i][lane];
  }
  for (int w = 0; w < WORDS; w++) {
    int some = __shfl_sync(~0u, all, w);
    start += w < lane ? some : 0;
  }
  eachWord(
      words, word0, from, to, [](int) {},
      [&](int word, unsigned same, int first) {
        int at = __shfl_sync(~0u, start, word);
        if (same >> lane & 1) order[at + __popc(same & ((1u << lane) - 1))] = first + lane;
        start += lane == word ? __popc(same) : 0;
      });
}

// words_sum adds the gradients at every place where a word is read, times its example's factor, to that of
// the word's vector: a warp has 32 places of those in the order of their words, and 128 units. A word whose
// places are not all with one warp is left to words_meet: what a warp has of the word that it begins with
// is kept in crossing first, and of the one that it ends with behind it.
enum { RUN = 32 };

// Runs says whose are the first and the last of a warp's places, and the neighbours.
struct Runs {
  int first, last, before, behind;
  __device__ __forceinline__ Runs(const int *words, const int *order, int n, int c) {
    int from = c * RUN, to = from + RUN < n ? from + RUN : n;
    first = words[order[from]], last = words[order[to - 1]];
    before = from > 0 ? words[order[from - 1]] : -1, behind = to < n ? words[order[to]] : -1;
  }
};

extern "C" __global__ void __launch_bounds__(256) words_sum(const int *words, const int *order, const float *dx, const float *factors, float *sum, float *crossing, int n, int places, int units) {
  int lane = threadIdx.x % 32, c = blockIdx.x * 8 + threadIdx.x / 32, c0 = blockIdx.y * 128 + lane, from = c * RUN;
  if (from >= n) return;
  Runs runs(words, order, n, c);
  bool in = from + lane < n;
  int own = in ? order[from + lane] : 0, ownWord = in ? words[own] : -1, word = -1;
  float ownFactor = in ? factors[own / places] : 0.f, held[4], s[4];  // what the word's sum has; of the warp's places
  auto close = [&](bool end) {
    bool begins = word == runs.before && word == runs.first, ends = end && word == runs.behind;
    float *to = begins || ends ? crossing + (size_t)(2 * c + (begins ? 0 : 1)) * units : sum + (size_t)word * units;
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (c0 + 32 * j < units) to[c0 + 32 * j] = begins || ends ? s[j] : held[j] + s[j];
  };
#pragma unroll 1
  for (int i0 = 0; i0 < RUN; i0 += 8) {
    float v[8][4], sums[8][4], factor[8];
    int next[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      int k = __shfl_sync(~0u, own, i0 + i);
      next[i] = __shfl_sync(~0u, ownWord, i0 + i), factor[i] = __shfl_sync(~0u, ownFactor, i0 + i);
      bool another = next[i] != (i == 0 ? word : next[i - 1]);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        bool is = next[i] >= 0 && c0 + 32 * j < units;
        v[i][j] = is ? dx[(size_t)k * units + c0 + 32 * j] : 0.f;
        sums[i][j] = is && another ? sum[(size_t)next[i] * units + c0 + 32 * j] : 0.f;
      }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (next[i] < 0) continue;
      if (next[i] != word) {
        if (word >= 0) close(false);
        word = next[i];
#pragma unroll
        for (int j = 0; j < 4; j++) held[j] = sums[i][j], s[j] = 0.f;
      }
      if (factor[i] != 0.f)  // finite or not
#pragma unroll
        for (int j = 0; j < 4; j++) s[j] += factor[i] * v[i][j];
    }
  }
  close(true);
}

// words_meet adds up what several warps have of a word, in their order: the one where the word begins does.
extern "C" __global__ void __launch_bounds__(256) words_meet(const int *words, const int *order, float *sum, const float *crossing, int n, int units) {
  int lane = threadIdx.x % 32, c = blockIdx.x * 8 + threadIdx.x / 32, c0 = blockIdx.y * 128 + lane;
  if (c * RUN >= n) return;
  Runs runs(words, order, n, c);
  int word = runs.last;
  if (runs.behind != word || runs.first == word && runs.before == word) return;  // it ends here, or began before
  float s[4];
#pragma unroll
  for (int j = 0; j < 4; j++) s[j] = c0 + 32 * j < units ? crossing[(size_t)(2 * c + 1) * units + c0 + 32 * j] : 0.f;
  while (runs.last == word && runs.behind == word) {
    runs = Runs(words, order, n, ++c);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (c0 + 32 * j < units) s[j] += crossing[(size_t)(2 * c) * units + c0 + 32 * j];
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (c0 + 32 * j < units) sum[(size_t)word * units + c0 + 32 * j] += s[j];
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
