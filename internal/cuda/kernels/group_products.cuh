// Products of matrices by groups of warps: linear layers on every place of an example, both ways,
// and sums of their gradients times weights, as products.cuh has them for smaller ones.
#pragma once
#include "ends.cuh"
#include "groups.cuh"

// Matrices of a layer are laid once for all rows, in two parts of float16: by 64 columns and 64 of
// k, a unit, which has a scale of its own, and behind its values what takes products back. A block
// brings one unit, or two side by side, to shared memory at a time, in turns, and each to where
// 128 bytes begin.
enum { LAID_K = 64, LAID_COLUMNS = GROUP_HALF, LAID_PART = LAID_K * LAID_COLUMNS, LAID_UNIT = TWO * LAID_PART + 8, LAID_ROOM = TWO * LAID_PART + 64, LAID_STAGES = 2 };

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

// LEAST_MATRIX is the least exponent that a matrix' scale is made of: so that what takes it back is
// not so small that its product with another one vanishes.
enum { LEAST_MATRIX = 60 };

// group_lay: a unit a block; a thread has twice eight values of k, of one column.
extern "C" __global__ void __launch_bounds__(256) group_lay(GroupMatrices all) {
  __shared__ float most[8];
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  const GroupMatrix &l = all.of[i];
  int unit = blockIdx.x - l.first, chunks = l.k / LAID_K, t = threadIdx.x, own = t % LAID_COLUMNS, column = unit / chunks * LAID_COLUMNS + own;
  float v[2][8], size = 0.f;
  for (int h = 0; h < 2; h++)
    for (int q = 0; q < 8; q++) {
      int k = unit % chunks * LAID_K + (t / LAID_COLUMNS + 4 * h) * 8 + q;
      v[h][q] = l.from[l.turned ? (size_t)column * l.k + k : (size_t)k * l.n + column];
      size = fmaxf(size, fabsf(v[h][q]));
    }
  for (int o = 16; o; o >>= 1) size = fmaxf(size, __shfl_xor_sync(~0u, size, o));
  if (t % 32 == 0) most[t / 32] = size;
  __syncthreads();
  for (int w = 0; w < 8; w++) size = fmaxf(size, most[w]);
  Scale scale = scaleOf(bitsOf(size) >> 23, LEAST_MATRIX);
  unsigned short *to = l.to + (size_t)unit * LAID_UNIT;
  for (int h = 0; h < 2; h++) {
    unsigned pairs[4][TWO];
    for (int q = 0; q < 4; q++) divideTwo(v[h][2 * q] * scale.by, v[h][2 * q + 1] * scale.by, pairs[q]);
    for (int p = 0; p < TWO; p++) *(uint4 *)(to + p * LAID_PART + (t / LAID_COLUMNS + 4 * h) * PAIR_EIGHT + own * 8) = make_uint4(pairs[0][p], pairs[1][p], pairs[2][p], pairs[3][p]);
  }
  if (t == 0) *(float4 *)(to + TWO * LAID_PART) = make_float4(scale.back, 0.f, 0.f, 0.f);
}

// grouped is a block's share of a product of M rows of K values with a laid matrix of N columns: of
// 64 columns, or twice as many, of every so many'th 64 rows for each of its groups. What a row and
// a column come to does not depend on how many of them there are.
template <int GROUPS, int HALVES, class End>
__device__ __forceinline__ void grouped(const float *x, const unsigned short *laid, int M, int N, int K, const End &end) {
  const int COLUMNS = HALVES * LAID_COLUMNS, ROWS = GROUPS * GROUP_LINES;
  __shared__ Barrier full[LAID_STAGES], empty[LAID_STAGES], there[GROUPS][LINES_STAGES], gone[GROUPS][LINES_STAGES];
  DYNAMIC(room);
  int t = threadIdx.x, lane = t % 32, group = t / 128, across = N / COLUMNS, chunks = K / LAID_K, count = (M + ROWS - 1) / ROWS;
  int column = blockIdx.x % across, first = blockIdx.x / across, step = gridDim.x / across;
  int all = first < count ? (count - first + step - 1) / step * chunks : 0;
  bool stays = chunks <= LAID_STAGES;  // then every chunk of the matrix is brought once
  unsigned short *stages = (unsigned short *)room;
  float *behind = room + LAID_STAGES * HALVES * LAID_ROOM / 2, *lines = behind + group * LINES_STAGES * LINES, *leaving = behind + GROUPS * LINES_STAGES * LINES + t / 32 * LEAVING_ALL;
  const unsigned short *matrix = laid + (size_t)column * HALVES * chunks * LAID_UNIT;
  // What is brought next: a chunk of the matrix, by one thread, and of the group's lines.
  int matrixChunk = 0, lineTile = first, lineChunk = 0, lineSlot = 0;
  auto fill = [&](int slot) {
    announce(&full[slot], 2 * HALVES * LAID_UNIT);
#pragma unroll
    for (int h = 0; h < HALVES; h++) bring(&full[slot], stages + (slot * HALVES + h) * LAID_ROOM, matrix + (size_t)(h * chunks + matrixChunk) * LAID_UNIT, 2 * LAID_UNIT);
    matrixChunk = matrixChunk + 1 < chunks ? matrixChunk + 1 : 0;
  };
  auto fillLines = [&] {
    int m0 = lineTile * ROWS + group * GROUP_LINES + t % 128 / 16;
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
    for (int i = 0; i < LAID_STAGES; i++) ready(&full[i], 1), ready(&empty[i], 128 * GROUPS);
    for (int i = 0; i < GROUPS * LINES_STAGES; i++) ready(&there[0][i], 128), ready(&gone[0][i], 128);
    readied();
  }
  __syncthreads();
  if (t == 0)
    for (int c = 0; c < all && c < (stays ? chunks : LAID_STAGES); c++) fill(c);
  __syncwarp();
  for (int c = 0; c < all && c < LINES_STAGES; c++) fillLines();
  const float *own = lines + (t % 128 / 32 * 16 + lane / 4) * LINE + lane % 4 * 2;
  TwoAdder<HALVES> adder;
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
      const unsigned short *stage = stages + slot * HALVES * LAID_ROOM;
      float right[HALVES];
#pragma unroll
      for (int h = 0; h < HALVES; h++) right[h] = *(const float *)(stage + h * LAID_ROOM + TWO * LAID_PART);
      // A left side is 32 of k, of which four lanes have those of a line.
      adder.add(stage, LAID_PART, LAID_ROOM, right, [&](int step, Tile(&a)[CHAINED][TWO], float(&back)[2]) {
        float2 v[2][2 * CHAINED];
        float size[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
          for (int i = 0; i < 2 * CHAINED; i++) v[h][i] = *(const float2 *)(line + 16 * CHAINED * step + 8 * i + 8 * h * LINE);
          size[h] = fmaxf(largest(v[h][0].x, v[h][0].y, v[h][1].x, v[h][1].y), largest(v[h][2].x, v[h][2].y, v[h][3].x, v[h][3].y));
        }
        unsigned halves = upperHalves(size[0], size[1]);
        halves = largerTwo(halves, (unsigned)__shfl_xor_sync(~0u, halves, 1));
        halves = largerTwo(halves, (unsigned)__shfl_xor_sync(~0u, halves, 2));
#pragma unroll
        for (int h = 0; h < 2; h++) {
          Scale scale = scaleOf(exponentOf(halves, h));
#pragma unroll
          for (int i = 0; i < 2 * CHAINED; i++) {
            unsigned parts[TWO];
            divideTwo(v[h][i].x * scale.by, v[h][i].y * scale.by, parts);
#pragma unroll
            for (int p = 0; p < TWO; p++) a[i / 2][p][i % 2 * 2 + h] = parts[p];
          }
          back[h] = scale.back;
        }
      });
      arrive(&gone[group][now]);
      if (!stays) arrive(&empty[slot]);
      before = now, beforePhase = phase;
      if (++now == LINES_STAGES) now = 0, phase ^= 1;
    }
    if (!End::MUCH) {  // two values of a line at a time
      int m = tile * ROWS + t / 32 * 16 + lane / 4, n = column * COLUMNS + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 2 * HALVES; i++) {
        int h = i / HALVES, j0 = i % HALVES * (GROUP_HALF / 8);
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
    int m = tile * ROWS + t / 32 * 16 + lane / 8, n = column * COLUMNS + lane % 8 * 4;
#pragma unroll
    for (int j0 = 0; j0 < COLUMNS / 8; j0 += LEAVING / 8) {
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

// group_times and group_times_back, by blocks of 128 rows and columns, and, small, of 64: for few rows.
template <int GROUPS, int HALVES>
__device__ __forceinline__ void groupTimes(const float *x, const unsigned short *laid, const float *bias, const float *plus, float *before, float *out, int M, int N, int K, Act act) {
  if (act.kind == 5)
    grouped<GROUPS, HALVES>(x, laid, M, N, K, TimesEnd<true>{bias, plus, before, out, N, act});
  else
    grouped<GROUPS, HALVES>(x, laid, M, N, K, TimesEnd<false>{bias, plus, before, out, N, act});
}
template <int GROUPS, int HALVES>
__device__ __forceinline__ void groupTimesBack(const float *d, const unsigned short *laid, const float *plus, const float *at, Act gate, float *dx, int M, int N, int K) {
  if (gate.kind == 5)
    grouped<GROUPS, HALVES>(d, laid, M, N, K, BackEnd<true>{plus, at, dx, N, gate});
  else
    grouped<GROUPS, HALVES>(d, laid, M, N, K, BackEnd<false>{plus, at, dx, N, gate});
}
#define GROUP_TIMES(NAME, GROUPS, HALVES, BLOCKS)                                                                                                              \
  extern "C" __global__ void __launch_bounds__(128 * GROUPS, BLOCKS) group_times##NAME(const float *x, const unsigned short *laid, const float *bias,          \
                                                                                       const float *plus, float *before, float *out, int M, int N, int K,     \
                                                                                       Act act) {                                                             \
    groupTimes<GROUPS, HALVES>(x, laid, bias, plus, before, out, M, N, K, act);                                                                                \
  }                                                                                                                                                            \
  extern "C" __global__ void __launch_bounds__(128 * GROUPS, BLOCKS) group_times_back##NAME(const float *d, const unsigned short *laid, const float *plus,     \
                                                                                            const float *at, Act gate, float *dx, int M, int N, int K) {      \
    groupTimesBack<GROUPS, HALVES>(d, laid, plus, at, gate, dx, M, N, K);                                                                                      \
  }
GROUP_TIMES(, 2, 2, 1)
GROUP_TIMES(_small, 1, 1, 2)

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
