// Products of texts' rows that stay in parts (text_parts.cuh) with layers' matrices, both ways, and
// what becomes of them; on the way, products of an example's rows with each other, of which
// gradients' norms are made (docs/proofs/gpu-clip.md).
#pragma once
#include "ends.cuh"
#include "text_parts.cuh"

// A matrix is laid by 128 columns and 32 of k, a unit; four of them have a scale in common, and each
// has behind its values what takes it back.
enum { UNIT_K = 32, UNIT_EIGHT = 8 * TEXT_COLUMNS, UNIT_PART = UNIT_K * TEXT_COLUMNS, UNIT = TWO * UNIT_PART + 8, UNIT_ROOM = TWO * UNIT_PART + 64, UNITS = 4 };

// Rows come 32 columns at a time, of every group: as many stages as 128 columns have, and one.
enum { ROWS_PART = UNIT_K * TEXT, ROWS_STAGE = TWO * ROWS_PART, ROWS_STAGES = UNITS + 1 };

struct TextMatrix {
  const float *from;
  unsigned short *to;
  int n, k, turned, first;
};
struct TextMatrices {
  TextMatrix of[32];
  int count;
};

enum { LEAST_TEXT_MATRIX = 60 };  // as LEAST_MATRIX

// text_lay: four units a block; a thread has eight times eight values of k, of one column.
extern "C" __global__ void __launch_bounds__(256) text_lay(TextMatrices all) {
  __shared__ float most[8];
  int i = 0;
  while (i + 1 < all.count && (int)blockIdx.x >= all.of[i + 1].first) i++;
  const TextMatrix &l = all.of[i];
  int unit = (blockIdx.x - l.first) * UNITS, t = threadIdx.x, own = t % TEXT_COLUMNS, column = unit / (l.k / UNIT_K) * TEXT_COLUMNS + own, k0 = unit % (l.k / UNIT_K) * UNIT_K + t / TEXT_COLUMNS * 8;
  float v[8][8], size = 0.f;
#pragma unroll
  for (int h = 0; h < 8; h++)
#pragma unroll
    for (int q = 0; q < 8; q++) {
      int k = k0 + 16 * h + q;
      if (!l.turned) v[h][q] = l.from[(size_t)k * l.n + column];
    }
  if (l.turned)
#pragma unroll
    for (int h = 0; h < 8; h++)
#pragma unroll
      for (int q = 0; q < 8; q += 4) {
        float4 four = *(const float4 *)(l.from + (size_t)column * l.k + k0 + 16 * h + q);
        v[h][q] = four.x, v[h][q + 1] = four.y, v[h][q + 2] = four.z, v[h][q + 3] = four.w;
      }
#pragma unroll
  for (int h = 0; h < 8; h++)
#pragma unroll
    for (int q = 0; q < 8; q++) size = fmaxf(size, fabsf(v[h][q]));
  for (int o = 16; o; o >>= 1) size = fmaxf(size, __shfl_xor_sync(~0u, size, o));
  if (t % 32 == 0) most[t / 32] = size;
  __syncthreads();
  for (int w = 0; w < 8; w++) size = fmaxf(size, most[w]);
  Scale scale = scaleOf(bitsOf(size) >> 23, LEAST_TEXT_MATRIX);
  unsigned short *to = l.to + (size_t)unit * UNIT;
#pragma unroll
  for (int h = 0; h < 8; h++) {
    int eight = t / TEXT_COLUMNS + 2 * h;
    unsigned pairs[4][TWO];
#pragma unroll
    for (int q = 0; q < 4; q++) divideTwo(v[h][2 * q] * scale.by, v[h][2 * q + 1] * scale.by, pairs[q]);
#pragma unroll
    for (int p = 0; p < TWO; p++)
      *(uint4 *)(to + eight / 4 * UNIT + p * UNIT_PART + eight % 4 * UNIT_EIGHT + own * 8) = make_uint4(pairs[0][p], pairs[1][p], pairs[2][p], pairs[3][p]);
  }
  if (t < UNITS) *(float4 *)(to + t * UNIT + TWO * UNIT_PART) = make_float4(scale.back, 0.f, 0.f, 0.f);
}

// TextTimes is a product: of examples' rows, x, with a matrix of so many columns, of which a block
// has each at a time. What else there is depends on its end. Rows' products with each other are kept
// where gram says (GRAM_KEPT), or, times those kept there before, which are of what the layer read,
// make the square of the norm of the gradient (GRAM_SQUARE).
enum { GRAM_NONE, GRAM_KEPT, GRAM_SQUARE };
struct TextTimes {
  Parts x, to;
  const unsigned short *laid;
  float *gram;
  const float *bias, *plus, *affine, *at;
  float *out, *stats, *more;
  const int *words;
  float2 *chances, *tops;
  double *losses;
  double share;
  Room room;
  int examples, columns, each, kind, biased, squares0;  // the last: of the norm that rows' products make
  int apart;                                            // 1: a block of their own makes these
};

// Pairs is what becomes of an example's rows' products with each other, which come 32 columns at a time. Of
// what a layer reads they are added up and kept, as threads have them, 16 values each; of gradients they are
// multiplied by those, which makes the squared norm of the layer's gradient.
enum { TEXT_PAIRS = TEXT * TEXT / GROUP };
struct Pairs {
  bool square;
  PairSum held;
  double some;
  float own[2];  // of rows with themselves, as far as this thread has them

  __device__ __forceinline__ static float *of(const Group &g, const TextTimes &p, int e) { return p.gram + (size_t)e * TEXT * TEXT + g.t; }
  __device__ __forceinline__ Pairs(bool squares) : square(squares), held(), some(0), own() {}
  // begin has what was kept be there.
  __device__ __forceinline__ void begin(const Group &g, const TextTimes &p, int e) {
    if (!square) return;
    const float *from = of(g, p, e);
    float bias = p.biased ? 1.f : 0.f;
#pragma unroll
    for (int i = 0; i < TEXT_PAIRS; i++) held[i / 4][i % 4] = __ldg(from + i * GROUP) + bias;
  }
  // A warp has at most one value of a row with itself of each of two eights; with says whether this thread
  // has it, and itself which it is, of row h.
  __device__ __forceinline__ static bool with(const Group &g) { return g.warp / 2 == g.half && g.lane / 8 == g.lane % 4; }
  __device__ __forceinline__ static float itself(const Group &g, const PairSum &of, int h) {
    float first = g.warp % 2 ? of[2 + h][2 * h] : of[h][2 * h], second = g.warp % 2 ? of[2 + h][2 * h + 1] : of[h][2 * h + 1];
    return g.lane / 4 % 2 ? second : first;
  }
  // add adds those of 32 columns, times left's square.
  __device__ __forceinline__ void add(const Group &g, const PairSum &fresh, float left) {
    float sum = 0.f, by = left * left;
    if (square)
#pragma unroll
      for (int h = 0; h < 2; h++) own[h] = fmaf(itself(g, fresh, h), by, own[h]);
#pragma unroll
    for (int i = 0; i < TEXT_PAIRS; i++) {
      float &to = held[i / 4][i % 4];
      if (square)
        sum = fmaf(to, fresh[i / 4][i % 4], sum);
      else
        to = fmaf(fresh[i / 4][i % 4], by, to);
    }
    if (square) some += __fmul_rn(sum, by);
  }
  // end keeps them, or the square, with what rounding may have taken from it.
  __device__ __forceinline__ void end(Group &g, const TextTimes &p, int e) {
    if (!square) {
      float *to = of(g, p, e);
#pragma unroll
      for (int i = 0; i < TEXT_PAIRS; i++) to[i * GROUP] = held[i / 4][i % 4];
      return;
    }
    float length = with(g) ? sqrtf(itself(g, held, 0) * own[0]) + sqrtf(itself(g, held, 1) * own[1]) : 0.f;
    double square = warpSum(some), lengths = warpSum(length);
    double *sums = (double *)g.room;
    if (g.lane == 0) sums[4 * g.half + g.warp] = square, sums[GROUP_WARPS + 4 * g.half + g.warp] = lengths;
    g.meet();
    if (g.t == 0) {
      for (int i = 1; i < GROUP_WARPS; i++) square += sums[i], lengths += sums[GROUP_WARPS + i];
      p.room.squares[(size_t)e * p.room.squaresRow + p.squares0] = square + p.share * lengths * lengths;
    }
    g.meet();
  }
};

// near has memory that will be read be in the cache by then; gramAhead that of products kept before.
#ifdef EMULATED
inline void near(const void *, unsigned) {}
#else
__device__ __forceinline__ void near(const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}
#endif
__device__ __forceinline__ void gramAhead(const TextTimes &p, int e) {
  if (p.kind == GRAM_SQUARE) near(p.gram + (size_t)e * TEXT * TEXT, 4 * TEXT * TEXT);
}

#ifdef EMULATED
inline float exped(float v) { return expf(v); }
#else
// exped is exp, off by some units in its last place, and by v's rounding of what is large below 0.
__device__ __forceinline__ float exped(float v) { return __expf(v); }
#endif

// addBias adds one to 128 columns from n*128 on, unless that is null.
__device__ __forceinline__ void addBias(const Group &g, TextSum &v, const float *bias, int n) {
  if (!bias) return;
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++) {
    float2 b = two(bias + n * TEXT_COLUMNS + g.column(j));
#pragma unroll
    for (int h = 0; h < 2; h++) v[j][2 * h] += b.x, v[j][2 * h + 1] += b.y;
  }
}

// Rows that are not in parts lie as threads have them: of 128 columns, number n of all examples', four
// values a thread of every eight, side by side. So a group reads and writes whole lines, and a head's 32
// columns lie together. ownOf is where a thread's begin; the next eight columns are 128 values of four on.
__device__ __forceinline__ float4 *ownOf(const Group &g, const float *all, size_t n) { return (float4 *)all + n * (TEXT_COLUMNS / 8 * 128) + g.half * (TEXT_HALF / 8 * 128) + g.t % 128; }
__device__ __forceinline__ void readOwn(const Group &g, TextSum &v, const float *from, size_t n) {
  const float4 *own = ownOf(g, from, n);
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++) {
    float4 x = own[j * 128];
    v[j][0] = x.x, v[j][1] = x.y, v[j][2] = x.z, v[j][3] = x.w;
  }
}
__device__ __forceinline__ void writeOwn(const Group &g, const TextSum &v, float *to, size_t n) {
  float4 *own = ownOf(g, to, n);
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++) own[j * 128] = make_float4(v[j][0], v[j][1], v[j][2], v[j][3]);
}

// readBetween reads 128 columns of what is read between two products: a layer has them where it lays what
// comes of them.
__device__ __forceinline__ void readBetween(const Group &g, TextSum &v, const TextTimes &p, int e, int n) { readOwn(g, v, p.at, (size_t)e * (p.columns / TEXT_COLUMNS) + n); }
__device__ __forceinline__ void readBetween(const Layer &g, TextSum &v, const TextTimes &, int, int) { readOwn(g, v, (const float *)g.lies, 0); }

// readBeside reads an example's rows for an end: a layer has them in shared memory, too.
__device__ __forceinline__ void readBeside(const Group &g, TextSum &v, const float *from, int e) { readOwn(g, v, from, e); }
__device__ __forceinline__ void readBeside(const Layer &g, TextSum &v, const float *, int) { readOwn(g, v, g.beside, 0); }

// readRows and writeRows are of an example's rows of 128 columns one after another, as other kernels
// have them.
__device__ __forceinline__ void readRows(const Group &g, TextSum &v, const float *from, int e) {
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float2 x = *(const float2 *)(from + ((size_t)e * TEXT + g.row(h)) * TEXT_COLUMNS + g.column(j));
      v[j][2 * h] = x.x, v[j][2 * h + 1] = x.y;
    }
}
__device__ __forceinline__ void writeRows(const Group &g, const TextSum &v, float *to, int e) {
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++)
#pragma unroll
    for (int h = 0; h < 2; h++) *(float2 *)(to + ((size_t)e * TEXT + g.row(h)) * TEXT_COLUMNS + g.column(j)) = make_float2(v[j][2 * h], v[j][2 * h + 1]);
}

// End is what becomes of a product: begin is of an example, ahead has what will be read of it be near, finish
// is of its columns n*128 and on, and end of all of them.
struct End {
  enum { READS = false };  // something between two products
  static __device__ __forceinline__ void ahead(const TextTimes &, int) {}
  __device__ __forceinline__ void begin(const Group &, const TextTimes &, int) {}
  __device__ __forceinline__ void end(Group &, const TextTimes &, int) {}
};

// OpenEnd writes the product and a bias, unless that is null, as it is.
struct OpenEnd : End {
  static __device__ __forceinline__ void ahead(const TextTimes &p, int e) { gramAhead(p, e); }
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int n) {
    addBias(g, v, p.bias, n);
    writeOwn(g, v, p.out, (size_t)e * (p.columns / TEXT_COLUMNS) + n);
  }
};

// normText has rows of 128 channels be normed, in parts. Stats are mean and 1/deviation.
template <class G>
__device__ __forceinline__ void normText(G &g, TextSum &v, const TextTimes &p, int e) {
  float mean[2] = {}, inverse[2] = {};
#pragma unroll
  for (int i = 0; i < TEXT_HALF / 2; i++) mean[i % 4 / 2] += v[i / 4][i % 4];
  g.ofRows(mean);
#pragma unroll
  for (int h = 0; h < 2; h++) mean[h] *= 1.f / TEXT_COLUMNS;
#pragma unroll
  for (int i = 0; i < TEXT_HALF / 2; i++) {
    float &x = v[i / 4][i % 4];
    x -= mean[i % 4 / 2];
    inverse[i % 4 / 2] += x * x;
  }
  g.ofRows(inverse);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    inverse[h] = 1.f / sqrtf(inverse[h] * (1.f / TEXT_COLUMNS) + 1e-5f);
    if (g.half == 0 && g.lane % 4 == 0) *(float2 *)(p.stats + 2 * ((size_t)e * TEXT + g.row(h))) = make_float2(mean[h], inverse[h]);
  }
#pragma unroll
  for (int j = 0; j < TEXT_HALF / 8; j++) {
    float2 f = two(p.affine + g.column(j)), b = two(p.affine + TEXT_COLUMNS + g.column(j));
#pragma unroll
    for (int h = 0; h < 2; h++) v[j][2 * h] = v[j][2 * h] * inverse[h] * f.x + b.x, v[j][2 * h + 1] = v[j][2 * h + 1] * inverse[h] * f.y + b.y;
  }
  putParts(g, v, p.to, e, 0);
}

// NormEnd adds a bias and what the layer is added to, writes that, and has it normed.
struct NormEnd : End {
  static __device__ __forceinline__ const float *beside(const TextTimes &p, int e) { return p.plus + (size_t)e * TEXT * TEXT_COLUMNS; }
  static __device__ __forceinline__ void ahead(const TextTimes &p, int e) { near(p.plus + (size_t)e * TEXT * TEXT_COLUMNS, 4 * TEXT * TEXT_COLUMNS); }
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int) {
    TextSum x;
    readBeside(g, x, p.plus, e);
    addBias(g, v, p.bias, 0);
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) v[i / 4][i % 4] += x[i / 4][i % 4];
    writeOwn(g, v, p.out, e);
    if (G::LAYS) writtenHere();  // the next end may have it copied
    normText(g, v, p, e);
  }
};

// geluNear and geluSlopeNear are geluAt and geluSlope, with exped.
__device__ __forceinline__ float geluNear(float x) { return x * oneOver(1.f + exped(fminf(-x * (1.59576912160573072f + 0.07135481627260025f * x * x), 80.f))); }
__device__ __forceinline__ float geluSlopeNear(float x) {
  float e = exped(fminf(-x * (1.59576912160573072f + 0.07135481627260025f * x * x), 80.f)), s = oneOver(1.f + e);
  return s * (1.f + e * s * x * (1.59576912160573072f + 0.21406444881780075f * x * x));
}

// GeluEnd adds a bias, writes what goes into a gelu, and in parts what comes out.
struct GeluEnd : End {
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int n) {
    addBias(g, v, p.bias, n);
    writeOwn(g, v, p.out, (size_t)e * (p.columns / TEXT_COLUMNS) + n);
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) v[i / 4][i % 4] = geluNear(v[i / 4][i % 4]);
    putParts(g, v, p.to, e, n);
  }
};

// GeluBackEnd goes back through a gelu, whose input is at.
struct GeluBackEnd : End {
  enum { READS = true };
  static __device__ __forceinline__ void ahead(const TextTimes &p, int e) {
    gramAhead(p, e);
    if (p.each == p.columns / TEXT_COLUMNS) near(p.at + (size_t)e * TEXT * p.columns, 4 * TEXT * p.columns);
  }
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int n) {
    TextSum x;
    readBetween(g, x, p, e, n);
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) v[i / 4][i % 4] *= geluSlopeNear(x[i / 4][i % 4]);
    putParts(g, v, p.to, e, n);
  }
};

// halved adds what the other lane has: of 2N values a thread keeps the first N, or, upper, the others.
template <int N>
__device__ __forceinline__ void halved(float (&a)[TEXT_HALF / 4], int lane, int mask) {
  bool upper = lane & mask;
#pragma unroll
  for (int i = 0; i < N; i++) {
    float sent = upper ? a[i] : a[i + N], stays = upper ? a[i + N] : a[i];
    a[i] = stays + __shfl_xor_sync(~0u, sent, mask);
  }
}

// ofColumns adds up what a warp's rows have of every column: of 16 values a thread, two of each eight
// columns in their order, it is left with two, of the eight that it gives on.
__device__ __forceinline__ int ofColumns(float (&a)[TEXT_HALF / 4], int lane) {
  halved<8>(a, lane, 16);
  halved<4>(a, lane, 8);
  halved<2>(a, lane, 4);
  return lane / 4;
}

// NormBackEnd goes back through a norm of rows at, and adds plus, unless that is null: what it was
// given makes the example's gradient of the norm's factors and constants. It writes the gradient at
// the norm's input, and in parts, where there is room for them: otherwise other kernels read it.
struct NormBackEnd : End {
  static __device__ __forceinline__ const float *beside(const TextTimes &p, int e) { return p.at + (size_t)e * TEXT * TEXT_COLUMNS; }
  static __device__ __forceinline__ void ahead(const TextTimes &p, int e) {
    gramAhead(p, e);
    near(p.at + (size_t)e * TEXT * TEXT_COLUMNS, 4 * TEXT * TEXT_COLUMNS);
    if (p.plus) near(p.plus + (size_t)e * TEXT * TEXT_COLUMNS, 4 * TEXT * TEXT_COLUMNS);
  }
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int) {
    TextSum y;
    float2 stats[2];
    readBeside(g, y, p.at, e);
#pragma unroll
    for (int h = 0; h < 2; h++) stats[h] = two(p.stats + 2 * ((size_t)e * TEXT + g.row(h)));
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) {
      float &one = y[i / 4][i % 4];
      one = (one - stats[i % 4 / 2].x) * stats[i % 4 / 2].y;
    }
#pragma unroll
    for (int which = 0; which < 2; which++) {  // factors, constants
      float a[TEXT_HALF / 4];
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 4; i++) {
        const float(&d)[4] = v[i / 2], (&x)[4] = y[i / 2];
        a[i] = which ? d[i % 2] + d[2 + i % 2] : d[i % 2] * x[i % 2] + d[2 + i % 2] * x[2 + i % 2];
      }
      int eight = ofColumns(a, g.lane);
      *(float2 *)(g.room + (which * 4 + g.warp) * TEXT_COLUMNS + g.column(eight)) = make_float2(a[0], a[1]);
    }
    float sums[4] = {};  // of rows: what they are lifted by, and tilted
#pragma unroll
    for (int j = 0; j < TEXT_HALF / 8; j++) {
      float2 f = two(p.affine + g.column(j));
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float &a = v[j][2 * h], &b = v[j][2 * h + 1];
        a *= f.x, b *= f.y;
        sums[h] += a + b, sums[2 + h] += a * y[j][2 * h] + b * y[j][2 * h + 1];
      }
    }
    g.ofRows(sums);  // and all have written what they have of columns
    if (g.t < TEXT_COLUMNS) {
      float kept[2];
#pragma unroll
      for (int which = 0; which < 2; which++) {
        const float *of = g.room + which * 4 * TEXT_COLUMNS + g.t;
        kept[which] = of[0] + of[TEXT_COLUMNS] + of[2 * TEXT_COLUMNS] + of[3 * TEXT_COLUMNS];
        p.room.kept[(size_t)e * p.room.keptRow + p.room.kept0 + which * TEXT_COLUMNS + g.t] = kept[which];
      }
      double square = warpSum((double)kept[0] * kept[0] + (double)kept[1] * kept[1]);
      if (g.lane == 0) p.room.squares[(size_t)e * p.room.squaresRow + p.room.squares0 + g.warp] = square;
    }
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) {
      int h = i % 4 / 2;
      v[i / 4][i % 4] = stats[h].y * (v[i / 4][i % 4] - sums[h] * (1.f / TEXT_COLUMNS) - y[i / 4][i % 4] * (sums[2 + h] * (1.f / TEXT_COLUMNS)));
    }
    if (p.plus) {
      readOwn(g, y, p.plus, e);
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 2; i++) v[i / 4][i % 4] += y[i / 4][i % 4];
    }
    if (p.to.values) {
      writeOwn(g, v, p.out, e);
      putParts(g, v, p.to, e, 0);
    } else {
      writeRows(g, v, p.out, e);
      g.meet();  // before the room is written anew
    }
  }
};

// Next is where the words are that come next of both rows of a thread.
struct Next {
  int words[2];
  __device__ __forceinline__ void begin(const Group &g, const TextTimes &p, int e) {
#pragma unroll
    for (int h = 0; h < 2; h++) words[h] = g.row(h) < TEXT - 1 ? __ldg(p.words + e * TEXT + g.row(h) + 1) : -1;  // the last row of a text has none
  }
  // among gives on which of a thread's eights of columns n*128 and on has the row's, or -1.
  __device__ __forceinline__ int among(const Group &g, int h, int n) const {
    int c = words[h] - n * TEXT_COLUMNS - g.half * TEXT_HALF;
    return (unsigned)c < TEXT_HALF && c % 8 / 2 == g.lane % 4 ? c / 8 : -1;
  }
  // first says that it is the first of two columns.
  __device__ __forceinline__ bool first(int h) const { return words[h] % 2 == 0; }
};

// lossOf puts what ChancesEnd has of a place together: its loss, the largest score, and what exp is
// multiplied by to be a slope. The last place of a text has none.
__device__ __forceinline__ void lossOf(const float2 *chances, const float *own, double *losses, float2 *tops, int k, int blocks) {
  const float2 *of = chances + (size_t)k * blocks;
  float top = of[0].x;
  for (int i = 1; i < blocks; i++) top = of[i].x > top ? of[i].x : top;
  double sum = 0;
  for (int i = 0; i < blocks; i++) sum += (double)of[i].y * expf(of[i].x - top);
  bool last = k % TEXT == TEXT - 1;
  losses[k] = last ? 0. : log(sum) + ((double)top - (double)own[k]);
  tops[k] = make_float2(top, last ? 0.f : (float)(1. / (TEXT - 1) / sum));
}

// ChancesEnd takes the largest of every 64 scores of a place, and the sum of exp of the scores less
// that; of the word that comes next it keeps the score.
struct ChancesEnd : End {
  Next next;
  __device__ __forceinline__ void begin(const Group &g, const TextTimes &p, int e) { next.begin(g, p, e); }
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int n) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int k = e * TEXT + g.row(h), eight = next.among(g, h, n);
      float top = v[0][2 * h], sum = 0.f, own = 0.f;
#pragma unroll
      for (int j = 0; j < TEXT_HALF / 8; j++) {
        float one = v[j][2 * h], other = v[j][2 * h + 1];
        top = one > top ? one : top;
        top = other > top ? other : top;
        if (j == eight) own = next.first(h) ? one : other;
      }
      if (eight >= 0) p.more[k] = own;
#pragma unroll
      for (int o = 1; o < 4; o <<= 1) {
        float other = __shfl_xor_sync(~0u, top, o);
        top = other > top ? other : top;
      }
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 4; i++) sum += exped(v[i / 2][2 * h + i % 2] - top);
      sum = ofRow(sum);
      if (g.lane % 4 == 0) p.chances[(size_t)k * (p.columns / TEXT_HALF) + 2 * n + g.half] = make_float2(top, sum);
    }
  }
  // end is of all columns of an example, where one group has them.
  __device__ __forceinline__ void end(Group &g, const TextTimes &p, int e) {
    g.meet();
    if (g.t < TEXT) lossOf(p.chances, p.more, p.losses, p.tops, e * TEXT + g.t, p.columns / TEXT_HALF);
  }
};

// text_chances does so for all places.
extern "C" __global__ void __launch_bounds__(128) text_chances(const float2 *chances, const float *own, double *losses, float2 *tops, int count, int blocks) {
  int k = blockIdx.x * 128 + threadIdx.x;
  if (k < count) lossOf(chances, own, losses, tops, k, blocks);
}

// SlopesEnd makes slopes of scores, in parts, of one scale: none is above 1/63.
struct SlopesEnd : End {
  Next next;
  float2 tops[2];
  __device__ __forceinline__ void begin(const Group &g, const TextTimes &p, int e) {
    next.begin(g, p, e);
#pragma unroll
    for (int h = 0; h < 2; h++) tops[h] = two((const float *)(p.tops + e * TEXT + g.row(h)));
  }
  template <class G>
  __device__ __forceinline__ void finish(G &g, TextSum &v, const TextTimes &p, int e, int n) {
    const float share = 1.f / (TEXT - 1);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int eight = next.among(g, h, n);
      float first = next.first(h) ? share : 0.f, second = share - first;
#pragma unroll
      for (int j = 0; j < TEXT_HALF / 8; j++) {
        float &one = v[j][2 * h], &other = v[j][2 * h + 1];
        one = exped(one - tops[h].x) * tops[h].y, other = exped(other - tops[h].x) * tops[h].y;
        if (j == eight) one -= first, other -= second;
      }
      if (g.warp == 3 && h == 1) {  // the last row has none, finite or not
        bool last = g.row(h) == TEXT - 1;
#pragma unroll
        for (int i = 0; i < TEXT_HALF / 4; i++)
          if (last) v[i / 2][2 * h + i % 2] = 0.f;
      }
    }
    if (G::LAYS) {
      if (g.t == 0) sent();
      g.meet();
    }
    writeParts(g, v, p.to, e, n, scaleOf(bitsOf(share) >> 23));
  }
};

// text_met keeps the slopes of every place at the text's own words, an example a block.
extern "C" __global__ void __launch_bounds__(256) text_met(Parts slopes, const int *words, float *met) {
  __shared__ float all[TEXT * (TEXT + 1)];
  int t = threadIdx.x, e = blockIdx.x, row = t % TEXT;
  const unsigned short *of = slopes.of(e) + row / 8 * 64 + row % 8 * 8;
  float back = slopes.backsOf(e)[0];  // one for all
#pragma unroll 4
  for (int s = t / TEXT; s < TEXT; s += 256 / TEXT) {
    int word = words[e * TEXT + s];
    const unsigned short *at = of + word / 8 * TEXT_EIGHT + word % 8;
    all[row * (TEXT + 1) + s] = (lowerTwo(at[0]) + lowerTwo(at[TEXT * slopes.columns])) * back;
  }
  __syncthreads();
  for (int i = t; i < TEXT * TEXT; i += 256) met[(size_t)e * TEXT * TEXT + i] = all[i / TEXT * (TEXT + 1) + i % TEXT];
}

template <bool B>
struct Is {
  enum { IS = B };
};

// textTimes is a block's share of a product: an example at a time, of every so many columns, by a group, and
// another one that brings rows and matrices ahead. Rows of 128 columns are brought once for all columns of the
// product that a block has; of longer ones it has 128. Tensor cores add up CHAIN times 32 of k, of rows that
// have a scale in common; the rest, if they are LONG, is added outside.
template <int CHAIN, bool LONG, class Becomes>
__device__ __forceinline__ void textTimes(const TextTimes &p) {
  const int STAGES = 8;
  __shared__ Barrier rowsThere[ROWS_STAGES], rowsGone[ROWS_STAGES], unitThere[STAGES], unitGone[STAGES], meets;
  DYNAMIC(textRoom);
  int t = threadIdx.x, K = p.x.columns, units = K / UNIT_K, splits = p.columns / TEXT_COLUMNS / p.each, all = splits + p.apart, items = p.examples * all;
  unsigned short *rows = (unsigned short *)textRoom, *matrix = rows + ROWS_STAGES * ROWS_STAGE;
  if (t == 0) {
    for (int i = 0; i < ROWS_STAGES; i++) ready(&rowsThere[i], 1), ready(&rowsGone[i], GROUP_WARPS);
    for (int i = 0; i < STAGES; i++) ready(&unitThere[i], 1), ready(&unitGone[i], GROUP_WARPS);
    ready(&meets, GROUP);
    readied();
  }
  __syncthreads();
  if (t >= GROUP) {
    giveRegisters<24>();
    if (t > GROUP) return;
    int row = 0, rowPhase = 1, slot = 0, phase = 1;
#pragma unroll 1
    for (int item = blockIdx.x; item < items; item += gridDim.x) {
      int e = item / all, which = item % all;
      const unsigned short *unit = p.laid + (size_t)which * p.each * units * UNIT;
      if (which < splits)
        Becomes::ahead(p, e);
      else
        gramAhead(p, e);
#pragma unroll 1
      for (int n = 0; n < (which < splits ? p.each : 1); n++)
#pragma unroll 1
        for (int u = 0; u < units; u++, unit += UNIT) {
          if (n == 0) {
            await(&rowsGone[row], rowPhase);
            announce(&rowsThere[row], 2 * ROWS_STAGE);
            for (int part = 0; part < TWO; part++) bring(&rowsThere[row], rows + row * ROWS_STAGE + part * ROWS_PART, p.x.of(e) + (size_t)part * TEXT * K + u * ROWS_PART, 2 * ROWS_PART);
            if (++row == ROWS_STAGES) row = 0, rowPhase ^= 1;
          }
          if (which == splits) continue;
          await(&unitGone[slot], phase);
          announce(&unitThere[slot], 2 * UNIT);
          bring(&unitThere[slot], matrix + slot * UNIT_ROOM, unit, 2 * UNIT);
          if (++slot == STAGES) slot = 0, phase ^= 1;
        }
    }
    return;
  }
  takeRegisters<232>();
  Group g(&meets, (float *)(matrix + STAGES * UNIT_ROOM));
  int first = 0, firstPhase = 0, slot = 0, phase = 0;  // where the item's rows begin; where the next unit is
#pragma unroll 1
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    int e = item / all, column = item % all * p.each, row = first, rowPhase = firstPhase;
    const float *backs = p.x.backsOf(e);
    if (item % all == splits) {
      Pairs gram(p.kind == GRAM_SQUARE);
      gram.begin(g, p, e);
#pragma unroll 1
      for (int u = 0; u < units; u += 2) {
        PairSum own[2];
        int at[2];
        auto start = [&](int i) {
          await(&rowsThere[row], rowPhase);
          Laid<TEXT_EIGHT, 64, false> x = {rows + row * ROWS_STAGE, ROWS_PART}, others = {rows + row * ROWS_STAGE + g.half * TEXT_SCALED * 8, ROWS_PART};
          textStart<2, false>(own[i], x, others);
          at[i] = row;
          if (++row == ROWS_STAGES) row = 0, rowPhase ^= 1;
        };
        auto add = [&](int i) {
          __syncwarp();
          if (g.lane == 0) arrive(&rowsGone[at[i]]);
          gram.add(g, own[i], backs[u + i]);
        };
        start(0);
        start(1);
        textArrived<1>(own[0]);
        add(0);
        textArrived<0>(own[1]);
        add(1);
      }
      gram.end(g, p, e);
      first = row, firstPhase = rowPhase;
      continue;
    }
    Becomes becomes;
    becomes.begin(g, p, e);
#pragma unroll 1
    for (int n = 0; n < p.each; n++) {
      bool pairs = p.kind != GRAM_NONE && !p.apart && column + n == 0;
      TextSum sum;
      Pairs gram(p.kind == GRAM_SQUARE);
      if (pairs) gram.begin(g, p, e);
      if (LONG)
#pragma unroll
        for (int i = 0; i < TEXT_HALF / 2; i++) sum[i / 4][i % 4] = 0.f;
      row = first, rowPhase = firstPhase;
      auto add = [&](auto withPairs) {
        const bool PAIRS = decltype(withPairs)::IS;
#pragma unroll 1
        for (int u = 0; u < units; u += CHAIN) {
          TextSum other;
          TextSum &fresh = LONG ? other : sum;
          PairSum own;
          float left = backs[u], right = 0.f;
          int lastRow = 0, lastSlot = 0;
          auto release = [&] {
            __syncwarp();
            if (g.lane == 0) {
              arrive(&unitGone[lastSlot]);
              if (n == p.each - 1) arrive(&rowsGone[lastRow]);
            }
          };
#pragma unroll
          for (int q = 0; q < CHAIN; q++) {
            if (n == 0) await(&rowsThere[row], rowPhase);
            await(&unitThere[slot], phase);
            const unsigned short *unit = matrix + slot * UNIT_ROOM;
            Laid<TEXT_EIGHT, 64, false> x = {rows + row * ROWS_STAGE, ROWS_PART}, others = {rows + row * ROWS_STAGE + g.half * TEXT_SCALED * 8, ROWS_PART};
            Laid<UNIT_EIGHT, 64, false> w = {unit + g.half * TEXT_HALF * 8, UNIT_PART};
            if (q == 0) {
              right = __shfl_sync(~0u, g.lane == 0 ? *(const float *)(unit + TWO * UNIT_PART) : 0.f, 0);  // by whom the unit is given back
              textStart<2, false>(fresh, x, w);
            } else {
              textStart<2, true>(fresh, x, w);
            }
            if (PAIRS) {
              if (q > 0) {
                textArrived<1>(own);
                gram.add(g, own, left);
              }
              textStart<2, false>(own, x, others);
            } else if (q > 0) {
              textArrived<1>();
            }
            if (q > 0) release();
            lastRow = row, lastSlot = slot;
            if (++row == ROWS_STAGES) row = 0, rowPhase ^= 1;
            if (++slot == STAGES) slot = 0, phase ^= 1;
          }
          textArrived<0>(fresh);
          release();
          if (PAIRS) {
            textArrived<0>(own);
            gram.add(g, own, left);
          }
#pragma unroll
          for (int i = 0; i < TEXT_HALF / 2; i++) {
            float one = fresh[i / 4][i % 4], &to = sum[i / 4][i % 4];
            to = LONG ? fmaf(one, left * right, to) : __fmul_rn(one, left * right);
          }
        }
      };
      if (pairs) {
        add(Is<true>());
        gram.end(g, p, e);
      } else {
        add(Is<false>());
      }
      becomes.finish(g, sum, p, e, column + n);
    }
    first = row, firstPhase = rowPhase;
  }
}

// openText has the rows that go into the first block: rows at, or, where there are words, vectors of words
// (bias) and of places (plus), added. Rows may be written where they were read.
__device__ __forceinline__ void openText(Group &g, TextSum &v, const TextTimes &p, int e) {
  if (p.words) {
    TextSum places;
    readRows(g, places, p.plus, 0);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float *from = p.bias + (size_t)p.words[e * TEXT + g.row(h)] * TEXT_COLUMNS;
#pragma unroll
      for (int j = 0; j < TEXT_HALF / 8; j++) {
        float2 x = two(from + g.column(j));
        v[j][2 * h] = x.x + places[j][2 * h], v[j][2 * h + 1] = x.y + places[j][2 * h + 1];
      }
    }
  } else {
    readRows(g, v, p.at, e);
    g.meet();
  }
  writeOwn(g, v, p.out, e);
}

// text_norm norms them, an example a block of threads.
extern "C" __global__ void __launch_bounds__(GROUP) text_norm(TextTimes p) {
  __shared__ Barrier meets;
  __shared__ float shared[GROUP_ROOM];
  if (threadIdx.x == 0) {
    ready(&meets, GROUP);
    readied();
  }
  __syncthreads();
  Group g(&meets, shared);
  TextSum v;
  openText(g, v, p, blockIdx.x);
  normText(g, v, p, blockIdx.x);
}

// Rows of heads have a scale for each.
#define TEXT_TIMES(NAME, CHAIN, LONG, BECOMES) \
  extern "C" __global__ void __launch_bounds__(GROUP + 128, 1) text_times_##NAME(TextTimes p) { textTimes<CHAIN, LONG, BECOMES>(p); }
TEXT_TIMES(open, UNITS, false, OpenEnd)
TEXT_TIMES(norm, UNITS, true, NormEnd)
TEXT_TIMES(norm_heads, 1, true, NormEnd)
TEXT_TIMES(gelu, UNITS, false, GeluEnd)
TEXT_TIMES(gelu_back, UNITS, false, GeluBackEnd)
TEXT_TIMES(norm_back, UNITS, true, NormBackEnd)
TEXT_TIMES(norm_back_heads, 1, true, NormBackEnd)
TEXT_TIMES(chances, UNITS, false, ChancesEnd)
TEXT_TIMES(slopes, UNITS, false, SlopesEnd)
