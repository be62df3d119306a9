// The norm of a text's gradient of words' vectors, which are read and scored by: of 64 words and 128
// channels, an example a block.
#pragma once
#include "text_parts.cuh"

// text_words: with dx the gradients at the places where words are read, h what goes into the scores, and
// met[s][t] the slope of place s at the word of place t, the sum over places t of dx_t times (those of
// all places of the same word and twice the sum over s of met[s][t] h_s): |A|^2 + 2<A, B>, as
// words_square has it, and what rounding may have taken. A thread has four places and eight channels.
enum { WORDS_ROW = TEXT_COLUMNS + 4 };  // 16 bytes between two rows of h
extern "C" __global__ void __launch_bounds__(256, 2) text_words(const int *words, const float *dx, Parts h, const float *met, double share, Room r) {
  DYNAMIC(wordRoom);
  __shared__ int all[TEXT];
  float *at = wordRoom, *heads = at + TEXT * TEXT_COLUMNS, *slopes = heads + TEXT * WORDS_ROW;
  int t = threadIdx.x, e = blockIdx.x, tx = t % 16, place = t / 16 * 4;
  size_t first = (size_t)e * TEXT * TEXT_COLUMNS;
#pragma unroll
  for (int i = 0; i < TEXT * TEXT_COLUMNS / 4 / 256; i++) ((float4 *)at)[t + 256 * i] = ((const float4 *)(dx + first))[t + 256 * i];
#pragma unroll
  for (int i = 0; i < TEXT * TEXT_COLUMNS / 8 / 256; i++) {  // eight values of a row each
    int eight = (t + 256 * i) / TEXT, row = (t + 256 * i) % TEXT;
    const uint4 *of = (const uint4 *)h.of(e) + t + 256 * i;
    uint4 high = of[0], low = of[TEXT * TEXT_COLUMNS / 8];
    unsigned pairs[TWO][4] = {{high.x, high.y, high.z, high.w}, {low.x, low.y, low.z, low.w}};
    float back = h.backsOf(e)[eight * 8 / TEXT_SCALED];
#pragma unroll
    for (int q = 0; q < 4; q++)
      *(float2 *)(heads + row * WORDS_ROW + eight * 8 + 2 * q) = make_float2((lowerTwo(pairs[0][q]) + lowerTwo(pairs[1][q])) * back, (upperTwo(pairs[0][q]) + upperTwo(pairs[1][q])) * back);
  }
#pragma unroll
  for (int i = 0; i < TEXT * TEXT / 4 / 256; i++) ((float4 *)slopes)[t + 256 * i] = ((const float4 *)(met + (size_t)e * TEXT * TEXT))[t + 256 * i];
  if (t < TEXT) all[t] = words[e * TEXT + t];
  __syncthreads();
  float z[4][8];
#pragma unroll
  for (int i = 0; i < 32; i++) z[i / 8][i % 8] = 0.f;
#pragma unroll 2
  for (int s = 0; s < TEXT; s++) {
    float4 m = *(const float4 *)(slopes + s * TEXT + place), a = *(const float4 *)(heads + s * WORDS_ROW + tx * 4), b = *(const float4 *)(heads + s * WORDS_ROW + 64 + tx * 4);
    float w[4] = {m.x, m.y, m.z, m.w}, c[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 32; i++) z[i / 8][i % 8] += w[i / 8] * c[i % 8];
  }
  double square = 0, lengths = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float own[8], same[8], length = 0.f;
#pragma unroll
    for (int c = 0; c < 8; c++) same[c] = own[c] = at[(place + i) * TEXT_COLUMNS + c / 4 * 64 + tx * 4 + c % 4];
    // Which other places have the same word, 16 lanes four each; mostly none has.
#pragma unroll
    for (int q = 0; q < 4; q++) {
      int other = 16 * q + tx;
      unsigned which = __ballot_sync(~0u, other != place + i && all[other] == all[place + i]) >> (t % 32 & 16) & 0xffff;
      for (; which; which &= which - 1) {
        int s = 16 * q + __ffs(which) - 1;
#pragma unroll
        for (int c = 0; c < 8; c++) same[c] += at[s * TEXT_COLUMNS + c / 4 * 64 + tx * 4 + c % 4];
      }
    }
#pragma unroll
    for (int c = 0; c < 8; c++) {
      square += (double)own[c] * same[c] + 2 * ((double)own[c] * z[i][c]);
      length += own[c] * own[c];
    }
    for (int o = 8; o; o >>= 1) length += __shfl_xor_sync(~0u, length, o);
    lengths += tx == 0 ? sqrtf(length) : 0.f;
  }
  square = blockSum(square), lengths = blockSum(lengths);
  if (t == 0) r.squares[(size_t)e * r.squaresRow + r.squares0] = square + share * lengths * lengths;
}
