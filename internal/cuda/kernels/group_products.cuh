// Products of matrices by groups of warps: linear layers on every place of an example, both ways,
// and sums of their gradients times weights, as products.cuh has them for smaller ones.
#pragma once
#include "ends.cuh"
#include "groups.cuh"

// Matrices of a layer are laid once for all rows, in parts: by 128 columns and 64 of k, which a
// block brings to shared memory at a time, in turns.
enum { LAID_K = 64, LAID_PART = LAID_K * GROUP_COLUMNS, LAID = PARTS * LAID_PART, LAID_STAGES = 2, GROUPS = 2, GROUP_THREADS = 128 * GROUPS };

// Every group brings its own lines, as they are, up to two chunks ahead: with 32 bytes between
// two lines, so that those that are read at once begin in different banks.
enum { LINE = LAID_K + 8, LINES = GROUP_LINES * LINE, LINES_STAGES = 3 };

// Where much is written, a warp's 16 lines leave by way of shared memory, 32 columns at a time, so
// that a line's lie side by side in one access; with 32 bytes between two lines.
enum { LEAVING = 32, LEAVING_LINE = LEAVING + 8, LEAVING_ALL = 16 * LEAVING_LINE };

// GroupMatrix is a matrix, [k][n] or, turned, [n][k], that is to be laid; first is where its
// blocks begin.
struct GroupMatrix {
  const float *from;
  unsigned short *to;
  int n, k, turned, first;
};
struct GroupMatrices {
  GroupMatrix of[16];
  int count;
};

// group_lay: eight values of k, of one column, a thread.
extern "C" __global__ void __launch_bounds__(256) group_lay(GroupMatrices all) {
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  const GroupMatrix &l = all.of[i];
  int at = (blockIdx.x - l.first) * 256 + threadIdx.x, column = at % l.n, eight = at / l.n;
  if (eight >= l.k / 8) return;
  unsigned pairs[4][PARTS];
  for (int q = 0; q < 4; q++) {
    int k = 8 * eight + 2 * q;
    size_t o = l.turned ? (size_t)column * l.k + k : (size_t)k * l.n + column;
    divide(l.from[o], l.from[o + (l.turned ? 1 : l.n)], pairs[q]);
  }
  unsigned short *to = l.to + (size_t)(column / GROUP_COLUMNS * (l.k / LAID_K) + eight / (LAID_K / 8)) * LAID + eight % (LAID_K / 8) * GROUP_EIGHT + column % GROUP_COLUMNS * 8;
  for (int p = 0; p < PARTS; p++) *(uint4 *)(to + p * LAID_PART) = make_uint4(pairs[0][p], pairs[1][p], pairs[2][p], pairs[3][p]);
}

// grouped is a block's share of a product of M rows of K values with a laid matrix of N columns:
// 128 columns, of every so many'th 128 rows.
template <class End>
__device__ __forceinline__ void grouped(const float *x, const unsigned short *laid, int M, int N, int K, const End &end) {
  __shared__ Barrier full[LAID_STAGES], empty[LAID_STAGES], there[GROUPS][LINES_STAGES], gone[GROUPS][LINES_STAGES];
  DYNAMIC(room);
  int t = threadIdx.x, lane = t % 32, group = t / 128, across = N / GROUP_COLUMNS, chunks = K / LAID_K, count = (M + GROUP_LINES * GROUPS - 1) / (GROUP_LINES * GROUPS);
  int column = blockIdx.x % across, first = blockIdx.x / across, step = gridDim.x / across;
  int all = first < count ? (count - first + step - 1) / step * chunks : 0;
  bool stays = chunks <= LAID_STAGES;  // then every chunk of the matrix is brought once
  unsigned short *stages = (unsigned short *)room;
  float *lines = room + LAID_STAGES * LAID / 2 + group * LINES_STAGES * LINES, *leaving = room + LAID_STAGES * LAID / 2 + GROUPS * LINES_STAGES * LINES + t / 32 * LEAVING_ALL;
  const unsigned short *matrix = laid + (size_t)column * chunks * LAID;
  // What is brought next: a chunk of the matrix, by one thread, and of the group's lines.
  int matrixChunk = 0, lineTile = first, lineChunk = 0, lineSlot = 0;
  auto fill = [&](int slot) {
    announce(&full[slot], 2 * LAID);
    bring(&full[slot], stages + slot * LAID, matrix + (size_t)matrixChunk * LAID, 2 * LAID);
    matrixChunk = matrixChunk + 1 < chunks ? matrixChunk + 1 : 0;
  };
  auto fillLines = [&] {
    int m0 = lineTile * GROUP_LINES * GROUPS + group * GROUP_LINES + t % 128 / 16;
    const float *from = x + (size_t)m0 * K + lineChunk * LAID_K + t % 16 * 4;
    float *to = lines + lineSlot * LINES + t % 128 / 16 * LINE + t % 16 * 4;
#pragma unroll
    for (int i = 0; i < GROUP_LINES / 8; i++)
      if (m0 + 8 * i < M) copy(to + 8 * i * LINE, from + (size_t)(8 * i) * K);
    copied(&there[group][lineSlot]);
    lineSlot = lineSlot + 1 < LINES_STAGES ? lineSlot + 1 : 0;
    if (++lineChunk == chunks) lineChunk = 0, lineTile += step;
  };
  if (t == 0) {
    for (int i = 0; i < LAID_STAGES; i++) ready(&full[i], 1), ready(&empty[i], GROUP_THREADS);
    for (int i = 0; i < GROUPS * LINES_STAGES; i++) ready(&there[0][i], 128), ready(&gone[0][i], 128);
    readied();
  }
  __syncthreads();
  if (t == 0)
    for (int c = 0; c < all && c < (stays ? chunks : LAID_STAGES); c++) fill(c);
  __syncwarp();
  for (int c = 0; c < all && c < LINES_STAGES; c++) fillLines();
  const float *own = lines + (t % 128 / 32 * 16 + lane / 4) * LINE + lane % 4 * 2;
  GroupAdder adder;
  int c = 0, before = 0, beforePhase = 0, now = 0, phase = 0;  // a chunk; where the lines before it are, and its own
#pragma unroll 1
  for (int tile = first; tile < count; tile += step) {
    adder.clear();
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk++, c++) {
      int slot = stays ? chunk : c % LAID_STAGES;
      // Where the chunk before was, both sides' next ones but one are brought.
      if (t == 0 && !stays && c > 0 && c - 1 + LAID_STAGES < all) {
        await(&empty[(c - 1) % LAID_STAGES], (c - 1) / LAID_STAGES & 1);
        fill((c - 1) % LAID_STAGES);
      }
      __syncwarp();
      if (c > 0 && c - 1 + LINES_STAGES < all) {
        await(&gone[group][before], beforePhase);
        fillLines();
      }
      await(&full[slot], stays ? 0 : c / LAID_STAGES & 1);
      await(&there[group][now], phase);
      const float *line = own + now * LINES;
      adder.add<false, LAID_K / 16>(stages + slot * LAID, LAID_PART, [&](int i, Tile(&a)[PARTS]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          float2 u = *(const float2 *)(line + 16 * i + 8 * h * LINE), v = *(const float2 *)(line + 16 * i + 8 + 8 * h * LINE);
          unsigned low[PARTS], high[PARTS];
          divide(u.x, u.y, low);
          divide(v.x, v.y, high);
#pragma unroll
          for (int p = 0; p < PARTS; p++) a[p][h] = low[p], a[p][2 + h] = high[p];
        }
      });
      arrive(&gone[group][now]);
      if (!stays) arrive(&empty[slot]);
      before = now, beforePhase = phase;
      if (++now == LINES_STAGES) now = 0, phase ^= 1;
    }
    if (!End::MUCH) {  // two values of a line at a time
      int m = tile * GROUP_LINES * GROUPS + t / 32 * 16 + lane / 4, n = column * GROUP_COLUMNS + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        int h = i / 2, j0 = i % 2 * (GROUP_HALF / 8);
        if (m + 8 * h >= M) continue;
        Beside<2> beside[GROUP_HALF / 8];
#pragma unroll
        for (int j = 0; j < GROUP_HALF / 8; j++) end.read(beside[j], m + 8 * h, n + 8 * (j0 + j));
#pragma unroll
        for (int j = 0; j < GROUP_HALF / 8; j++) {
          float both[2] = {adder.at(j0 + j, 2 * h), adder.at(j0 + j, 2 * h + 1)};
          end.write(both, m + 8 * h, n + 8 * (j0 + j), beside[j]);
        }
      }
      continue;
    }
    int m = tile * GROUP_LINES * GROUPS + t / 32 * 16 + lane / 8, n = column * GROUP_COLUMNS + lane % 8 * 4;
#pragma unroll
    for (int j0 = 0; j0 < GROUP_COLUMNS / 8; j0 += LEAVING / 8) {
      Beside<4> beside[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (m + 4 * i < M) end.read(beside[i], m + 4 * i, n + 8 * j0);
      __syncwarp();
#pragma unroll
      for (int j = 0; j < LEAVING / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) *(float2 *)(leaving + (lane / 4 + 8 * h) * LEAVING_LINE + 8 * j + lane % 4 * 2) = make_float2(adder.at(j0 + j, 2 * h), adder.at(j0 + j, 2 * h + 1));
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float v[4];
        spreadOut(*(const float4 *)(leaving + (lane / 8 + 4 * i) * LEAVING_LINE + lane % 8 * 4), v);
        if (m + 4 * i < M) end.write(v, m + 4 * i, n + 8 * j0, beside[i]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(GROUP_THREADS, 1) group_times(const float *x, const unsigned short *laid, const float *bias, const float *plus, float *before, float *out,
                                                                           int M, int N, int K, Act act) {
  if (act.kind == 5)
    grouped(x, laid, M, N, K, TimesEnd<true>{bias, plus, before, out, N, act});
  else
    grouped(x, laid, M, N, K, TimesEnd<false>{bias, plus, before, out, N, act});
}
extern "C" __global__ void __launch_bounds__(GROUP_THREADS, 1) group_times_back(const float *d, const unsigned short *laid, const float *plus, const float *at, Act gate, float *dx, int M,
                                                                                int N, int K) {
  if (gate.kind == 5)
    grouped(d, laid, M, N, K, BackEnd<true>{plus, at, dx, N, gate});
  else
    grouped(d, laid, M, N, K, BackEnd<false>{plus, at, dx, N, gate});
}

// group_times_sum: parts of the sums over K rows of layers' x times (weight times d), like
// tensor_times_sum; 128 x 128 values a block, 32 rows at a time. A third group brings rows as
// they are, up to three times ahead and with 16 bytes between two of them, and takes the right
// side apart, in turns in two places; two groups take their lines apart and multiply. K is a
// multiple of 4.
enum { SUM_K = 32, SUM_PART = SUM_K * GROUP_COLUMNS, SUM_SIDE = PARTS * SUM_PART, SUM_LINES = 128, SUM_ROW = 128 + 4, SUM_STAGES = 4, SUM_STAGE = (2 * SUM_ROW + 1) * SUM_K, SUM_THREADS = 384 };

// SumRoom is what a block of sums has in common: a stage is rows of x, rows of d, and weights.
struct SumRoom {
  unsigned short *sides;
  float *stages;
  Barrier *there, *full, *empty;  // stages that have come; sides that are divided, and done with
  int (*left)[4];                 // of a side, whether rows are left out
};

// divideRows is what the third group does.
__device__ __forceinline__ void divideRows(const SumRoom &room, const Summed &l, const float *weights, int m0, int n0, int from, int to, float *columns) {
  int t = threadIdx.x % 128, lane = t % 32, warp = t / 32, M = l.m, N = l.n, count = (to - from + SUM_K - 1) / SUM_K, rest = to - from - warp;
  const float *x = l.x + (size_t)(from + warp) * M + m0 + lane * 4, *d = l.d + (size_t)(from + warp) * N + n0 + lane * 4;
  auto fill = [&](int c) {
    float *stage = room.stages + c % SUM_STAGES * SUM_STAGE, *own = stage + warp * SUM_ROW + lane * 4;
#pragma unroll
    for (int i = 0; i < SUM_K / 4; i++)
      if (4 * i < rest) {
        copy(own + 4 * i * SUM_ROW, x + 4 * i * M);
        copy(own + (SUM_K + 4 * i) * SUM_ROW, d + 4 * i * N);
      }
    x += SUM_K * M, d += SUM_K * N, rest -= SUM_K;
    int k = from + c * SUM_K + 4 * t;
    if (t < SUM_K / 4 && k < to) copy(stage + 2 * SUM_ROW * SUM_K + 4 * t, weights + k);
    copied(&room.there[c % SUM_STAGES]);
  };
  float sums[2][4] = {};
  for (int c = 0; c < count && c < SUM_STAGES; c++) fill(c);
#pragma unroll 1
  for (int c = 0; c < count; c++) {
    if (c >= 2) await(&room.empty[c % 2], c / 2 - 1 & 1);
    if (c >= 2 && c + 2 < count && c + 2 >= SUM_STAGES) fill(c + 2);  // where the one was that is done with
    await(&room.there[c % SUM_STAGES], c / SUM_STAGES & 1);
    // Of the right side a thread has rows lane/4 and every eighth from there, of twice four columns.
    const float *stage = room.stages + c % SUM_STAGES * SUM_STAGE, *right = stage + (SUM_K + lane / 4) * SUM_ROW + warp * 32 + lane % 4 * 4;
    unsigned short *own = room.sides + c % 2 * SUM_SIDE + (warp * 4 + lane % 4 / 2) * 64 + lane / 4 * 8 + lane % 2 * 4;
    int some = to - from - c * SUM_K - lane / 4;
    bool any = false;
#pragma unroll
    for (int q = 0; q < SUM_K / 8; q++) {
      float w = stage[2 * SUM_ROW * SUM_K + lane / 4 + 8 * q];
      bool out = w == 0.f || 8 * q >= some;
      any = any || out;
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float4 v = *(const float4 *)(right + 8 * q * SUM_ROW + 16 * h);
        v.x *= w, v.y *= w, v.z *= w, v.w *= w;
        if (out) v = make_float4(0.f, 0.f, 0.f, 0.f);  // finite or not
        if (columns) sums[h][0] += v.x, sums[h][1] += v.y, sums[h][2] += v.z, sums[h][3] += v.w;
        unsigned low[PARTS], high[PARTS];
        divide(v.x, v.y, low);
        divide(v.z, v.w, high);
#pragma unroll
        for (int p = 0; p < PARTS; p++) *(uint2 *)(own + p * SUM_PART + q * GROUP_EIGHT + h * 128) = make_uint2(low[p], high[p]);
      }
    }
    shown();
    any = __ballot_sync(~0u, any) != 0;
    if (lane == 0) room.left[c % 2][warp] = any;
    arrive(&room.full[c % 2]);
  }
  if (!columns) return;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float s = sums[i / 4][i % 4];
    for (int o = 4; o < 32; o <<= 1) s += __shfl_xor_sync(~0u, s, o);
    if (lane < 4) columns[n0 + warp * 32 + i / 4 * 16 + lane * 4 + i % 4] = s;
  }
}

__device__ __forceinline__ void groupSum(const float *weights, const Summeds &all, int K) {
  __shared__ Barrier there[SUM_STAGES], full[2], empty[2];
  __shared__ int left[2][4];
  DYNAMIC(room);
  SumRoom shared = {(unsigned short *)room, room + SUM_SIDE, there, full, empty, left};  // both sides are of two bytes
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  const Summed l = all.of[i];
  int M = l.m, N = l.n, across = N / GROUP_COLUMNS, down = M / SUM_LINES, b = blockIdx.x - l.first, z = b / (across * down);
  int m0 = b / across % down * SUM_LINES, n0 = b % across * GROUP_COLUMNS, tiles = (K + SUM_K - 1) / SUM_K;
  int from = (int)((long long)z * tiles / all.split) * SUM_K, to = (int)((long long)(z + 1) * tiles / all.split) * SUM_K;
  if (to > K) to = K;
  int t = threadIdx.x, lane = t % 32, warp = t / 32, count = (to - from + SUM_K - 1) / SUM_K;
  float *part = l.parts + (size_t)z * (M + l.bias) * N;
  if (t == 0) {
    for (int i = 0; i < SUM_STAGES; i++) ready(&there[i], 128);
    for (int i = 0; i < 2; i++) ready(&full[i], 128), ready(&empty[i], 256);
    readied();
  }
  __syncthreads();
  if (warp >= 8) {
    giveRegisters<72>();
    divideRows(shared, l, weights, m0, n0, from, to, l.bias && m0 == 0 ? part + (size_t)M * N : nullptr);
  } else {
    takeRegisters<216>();
    GroupAdder adder;
    adder.clear();
#pragma unroll 1
    for (int c = 0; c < count; c++) {
      await(&there[c % SUM_STAGES], c / SUM_STAGES & 1);
      await(&full[c % 2], c / 2 & 1);
      const float *stage = shared.stages + c % SUM_STAGES * SUM_STAGE;
      bool any = left[c % 2][0] || left[c % 2][1] || left[c % 2][2] || left[c % 2][3];
      adder.chain<true, SUM_K / 16>(shared.sides + c % 2 * SUM_SIDE, SUM_PART, [&](int i, Tile(&a)[PARTS]) {
        // What a tile is: two lines, and of k lane%4*2, the next one, and both eight on.
        const float *own = stage + (16 * i + lane % 4 * 2) * SUM_ROW + warp * 16 + lane / 4;
        float v[4][2];
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
          for (int h = 0; h < 2; h++) v[q][h] = own[(q / 2 * 8 + q % 2) * SUM_ROW + 8 * h];
        if (any)
#pragma unroll
          for (int q = 0; q < 4; q++) {
            int k = 16 * i + lane % 4 * 2 + q / 2 * 8 + q % 2;
            if (stage[2 * SUM_ROW * SUM_K + k] == 0.f || from + c * SUM_K + k >= to) v[q][0] = v[q][1] = 0.f;
          }
#pragma unroll
        for (int h = 0; h < 2; h++) {
          unsigned low[PARTS], high[PARTS];
          divide(v[0][h], v[1][h], low);
          divide(v[2][h], v[3][h], high);
#pragma unroll
          for (int p = 0; p < PARTS; p++) a[p][h] = low[p], a[p][2 + h] = high[p];
        }
      });
      arrive(&empty[c % 2]);
    }
    int m = m0 + warp * 16 + lane / 4, column = n0 + lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < GROUP_COLUMNS / 8; j++) *(float2 *)(part + (size_t)(m + 8 * h) * N + column + 8 * j) = make_float2(adder.at(j, 2 * h), adder.at(j, 2 * h + 1));
  }
}
extern "C" __global__ void __launch_bounds__(SUM_THREADS, 1) group_times_sum(const float *weights, Summeds all, int K) { groupSum(weights, all, K); }
