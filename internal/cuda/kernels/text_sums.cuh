// Sums over examples of texts' gradients times their factors, of rows that stay in parts
// (text_parts.cuh): both sides of every product are read where copies have laid them, over an
// example's rows, and what comes of an example is added outside, times its factor and its scales.
#pragma once
#include "ends.cuh"
#include "text_parts.cuh"

// TextSummed is a layer whose examples' gradients are added up, in parts: x times d, [m][n], and
// behind them, if there is a bias, d alone. One of both has 128 columns. First is where its blocks
// begin.
struct TextSummed {
  Parts x, d;
  float *parts;
  int bias, first;
};
struct TextSummeds {
  TextSummed of[16];
  int count, split;
};

// A block has 128 columns of x and of d; a stage is those of an example, of both.
enum { TEXT_SIDE = TEXT * TEXT_COLUMNS, TEXT_STAGE = 2 * TWO * TEXT_SIDE, TEXT_STAGES = 3, COLUMN_WARPS = 3 };

// A cluster has so many blocks; the emulation has no clusters.
#ifdef EMULATED
enum { SUM_CLUSTER = 1 };
#else
enum { SUM_CLUSTER = 2 };
#endif

// Sharers are those blocks of a cluster that have the same side of 128 columns: each brings a part of it
// to all, and so everybody's stages are written by each. Own is this block.
struct Sharers {
  int first, count, own;
  __device__ __forceinline__ unsigned mask() const { return ((1u << count) - 1) << first; }
  // tell says to the others that a warp of this block has read a stage.
  __device__ __forceinline__ void tell(Barrier *gone) const {
#pragma unroll 1
    for (int i = first; i < first + count; i++)
      if (i != own) arriveAt(gone, i);
  }
};

// sumColumns adds up the columns of d alone, which a warp has every third eight of.
__device__ __forceinline__ void sumColumns(const TextSummed &l, const float *factors, const Sharers &sharers, const unsigned short *stages, Barrier *there, Barrier *gone, int n0, int from, int to, float *columns) {
  const int EIGHTS = (TEXT_COLUMNS / 8 + COLUMN_WARPS - 1) / COLUMN_WARPS;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 9;
  float sums[EIGHTS][2] = {};
#pragma unroll 1
  for (int e = from, i = 0; e < to; e++, i++) {
    await(&there[i % TEXT_STAGES], i / TEXT_STAGES & 1);
    const unsigned short *d = stages + i % TEXT_STAGES * TEXT_STAGE + TWO * TEXT_SIDE + lane * 2;
    float w = factors[e];
    if (w != 0.f)
#pragma unroll
      for (int q = 0; q < EIGHTS; q++) {
        int eight = warp + COLUMN_WARPS * q;
        if (eight >= TEXT_COLUMNS / 8) break;
        float one[2] = {};
#pragma unroll
        for (int r = 0; r < TEXT / 8; r++)
#pragma unroll
          for (int part = 0; part < TWO; part++) {
            unsigned both = *(const unsigned *)(d + part * TEXT_SIDE + eight * TEXT_EIGHT + r * 64);
            one[0] += lowerTwo(both), one[1] += upperTwo(both);
          }
        float back = w * l.d.backsOf(e)[(n0 + 8 * eight) / TEXT_SCALED];
        sums[q][0] += one[0] * back, sums[q][1] += one[1] * back;
      }
    arrive(&gone[i % TEXT_STAGES]);
    __syncwarp();
    if (lane == 0) sharers.tell(&gone[i % TEXT_STAGES]);
  }
#pragma unroll
  for (int q = 0; q < EIGHTS; q++)
#pragma unroll
    for (int c = 0; c < 2; c++) {
      float s = sums[q][c];
      for (int o = 4; o < 32; o <<= 1) s += __shfl_xor_sync(~0u, s, o);
      int eight = warp + COLUMN_WARPS * q;
      if (lane < 4 && eight < TEXT_COLUMNS / 8) columns[n0 + 8 * eight + 2 * lane + c] = s;
    }
}

// text_sum: a part of the examples' sum a block, of 128 x 128 values: two groups multiply, and of a third
// one a thread brings both sides, and three warps add up columns.
extern "C" __global__ void __cluster_dims__(SUM_CLUSTER, 1, 1) __launch_bounds__(384, 1) text_sum(const float *factors, TextSummeds all, int examples) {
  __shared__ Barrier there[TEXT_STAGES], gone[TEXT_STAGES];
  DYNAMIC(sumRoom);
  unsigned short *stages = (unsigned short *)sumRoom;
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  const TextSummed &l = all.of[i];
  int M = l.x.columns, N = l.d.columns, across = N / TEXT_COLUMNS, tiles = M / TEXT_COLUMNS * across, b = blockIdx.x - l.first, z = b / tiles, tile = b % tiles;
  if (z >= all.split) return;  // of a cluster that would not be whole
  int m0 = tile / across * TEXT_COLUMNS, n0 = tile % across * TEXT_COLUMNS, from = (int)((long long)z * examples / all.split), to = (int)((long long)(z + 1) * examples / all.split);
  int rank = blockIdx.x % SUM_CLUSTER, begin = tile > rank ? tile - rank : 0, end = tile - rank + SUM_CLUSTER < tiles ? tile - rank + SUM_CLUSTER : tiles;
  Sharers sharers = {rank - (tile - begin), end - begin, rank};
  bool columns = l.bias && m0 == 0;
  float *part = l.parts + (size_t)z * (M + l.bias) * N;
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t == 0) {
    int adding = !l.bias ? 0 : across > 1 ? sharers.count : begin == 0;  // of the sharers, columns
    for (int s = 0; s < TEXT_STAGES; s++) ready(&there[s], 1), ready(&gone[s], 8 * sharers.count + COLUMN_WARPS * (adding + (columns ? 31 : 0)));
    readied();
  }
  meetCluster();
  if (warp >= 8) {
    giveRegisters<72>();
    if (warp > 8 && columns) sumColumns(l, factors, sharers, stages, there, gone, n0, from, to, part + (size_t)M * N);
    if (t == 256) {
      bool turned = N == TEXT_COLUMNS;  // d is shared
      Parts shared = turned ? l.d : l.x, own = turned ? l.x : l.d;
      int first = 16 * (tile - begin) / sharers.count * TEXT_EIGHT, some = 16 * (tile - begin + 1) / sharers.count * TEXT_EIGHT - first;
#pragma unroll 1
      for (int e = from, s = 0; e < to; e++, s++) {
        unsigned short *stage = stages + s % TEXT_STAGES * TEXT_STAGE, *sharedSide = stage + (turned ? TWO * TEXT_SIDE : 0), *ownSide = stage + (turned ? 0 : TWO * TEXT_SIDE);
        Barrier *full = &there[s % TEXT_STAGES];
        await(&gone[s % TEXT_STAGES], s / TEXT_STAGES & 1 ^ 1);
        announce(full, 2 * TEXT_STAGE);
        for (int p = 0; p < TWO; p++) {
          bringTo(full, sharedSide + p * TEXT_SIDE + first, shared.of(e) + p * TEXT_SIDE + first, 2 * some, sharers.mask());
          bring(full, ownSide + p * TEXT_SIDE, own.of(e) + (size_t)p * TEXT * own.columns + tile * TEXT_SIDE, 2 * TEXT_SIDE);
        }
      }
    }
    meetCluster();  // nobody writes here, or arrives, any more
    return;
  }
  takeRegisters<216>();
  WideSum sum;
#pragma unroll
  for (int j = 0; j < TEXT_COLUMNS / 2; j++) sum[j / 32][j / 4 % 8][j % 4] = 0.f;
#pragma unroll 1
  for (int e = from, s = 0; e < to; e++, s++) {
    float w = factors[e], own[TEXT_COLUMNS / TEXT_SCALED];
    await(&there[s % TEXT_STAGES], s / TEXT_STAGES & 1);
    const unsigned short *stage = stages + s % TEXT_STAGES * TEXT_STAGE;
    Laid<64, TEXT_EIGHT, true> x = {stage + warp / 4 * 8 * TEXT_EIGHT, TEXT_SIDE}, d = {stage + TWO * TEXT_SIDE, TEXT_SIDE};
    WideSum fresh;
    textStart<TEXT / 16, false>(fresh, x, d);
    float by = w * l.x.backsOf(e)[(m0 + warp * 16) / TEXT_SCALED];
#pragma unroll
    for (int q = 0; q < TEXT_COLUMNS / TEXT_SCALED; q++) own[q] = by * l.d.backsOf(e)[n0 / TEXT_SCALED + q];
    textArrived<0>(fresh);
    __syncwarp();
    if (lane == 0) arrive(&gone[s % TEXT_STAGES]), sharers.tell(&gone[s % TEXT_STAGES]);
    if (w != 0.f)  // finite or not
#pragma unroll
      for (int j = 0; j < TEXT_COLUMNS / 2; j++) sum[j / 32][j / 4 % 8][j % 4] += fresh[j / 32][j / 4 % 8][j % 4] * own[j / 16];
  }
  int m = m0 + warp * 16 + lane / 4, column = n0 + lane % 4 * 2;
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int j = 0; j < TEXT_COLUMNS / 8; j++) *(float2 *)(part + (size_t)(m + 8 * h) * N + column + 8 * j) = make_float2(sum[j / 8][j % 8][2 * h], sum[j / 8][j % 8][2 * h + 1]);
  meetCluster();
}

// KeptRows are norms whose examples' gradients are kept side by side: where each begins there, and in
// the sum.
struct KeptRows {
  int kept0[32], to[32];
};

// text_rows adds norms' gradients times factors to their sums, 32 values a block of 256 threads, like
// row_sum.
extern "C" __global__ void __launch_bounds__(256) text_rows(const float *kept, const float *factors, float *sum, int examples, int keptRow, KeptRows all) {
  __shared__ float sums[256];
  const int BLOCKS = 2 * TEXT_COLUMNS / 32;
  int t = threadIdx.x, i = blockIdx.x / BLOCKS, c = blockIdx.x % BLOCKS * 32 + t % 32;
  const float *rows = kept + all.kept0[i] + c;
  float s = 0.f;
#pragma unroll 8
  for (int e = t / 32; e < examples; e += 8) {
    float w = factors[e], v = rows[(size_t)e * keptRow];
    s = w != 0.f ? s + w * v : s;
  }
  sums[t] = s;
  __syncthreads();
  if (t >= 32) return;
  for (int k = 1; k < 8; k++) s += sums[k * 32 + t];
  sum[all.to[i] + c] += s;
}

// text_adds adds the parts of layers' sums to them, four values a thread: a block is of 1024 of one.
extern "C" __global__ void __launch_bounds__(256) text_adds(Summeds all) {
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].adds) i++;
  const Summed &l = all.of[i];
  int n = (l.m + l.bias) * l.n, k = ((blockIdx.x - l.adds) * 256 + threadIdx.x) * 4;
  if (k >= n) return;
  float4 s = *(const float4 *)(l.sum + k);
  for (int z = 0; z < all.split; z++) {
    float4 v = *(const float4 *)(l.parts + (size_t)z * n + k);
    s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
  }
  *(float4 *)(l.sum + k) = s;
}
