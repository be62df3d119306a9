// Products of texts' rows in a row, one kernel for all that lies between attention and attention: what a
// product gives to the next one stays in shared memory, and is written for sums and the way back alone.
// Two examples a block have a group each; a thread of a third one brings units of the matrices ahead, for
// both. Their bits are those of textTimes.
#pragma once
#include "text_products.cuh"

// TextChain is products in their order, of so many examples.
struct TextChain {
  TextTimes of[5];
  int examples;
};

// Laid is what 128 columns of an example in parts have of values; a group has room for two.
enum { CHAIN_GROUPS = 2, CHAIN_STAGES = 5, TEXT_LAID = TWO * TEXT * TEXT_COLUMNS };

// Units are those on their way, in the order in which they are brought.
struct Units {
  unsigned short *at;
  Barrier *there, *gone;
  int slot;
  unsigned phase;
  __device__ __forceinline__ void next() {
    if (++slot == CHAIN_STAGES) slot = 0, phase ^= 1;
  }
};

// Who takes part in a chain has its steps: rows, an example's that are read; words, those that are made
// of words and normed; heads, the product of rows that are read, of which every 32 columns have a scale;
// one, the product of what was laid last; two, that and the product of what comes of it, 128 columns at a
// time.

// Bringer brings units to a block's groups, from its examples' first on, and has what will be read be near.
struct Bringer {
  Units units;
  int first, some, next, then;  // and of the turn that follows

  __device__ __forceinline__ void bringAll(const unsigned short *unit, int count) {
#pragma unroll 1
    for (int i = 0; i < count; i++, unit += UNIT) {
      await(&units.gone[units.slot], units.phase);
      announce(&units.there[units.slot], 2 * UNIT);
      bring(&units.there[units.slot], units.at + units.slot * UNIT_ROOM, unit, 2 * UNIT);
      units.next();
    }
  }
  template <class Becomes>
  __device__ __forceinline__ void ahead(const TextTimes &p) {
    for (int i = 0; i < some; i++) Becomes::ahead(p, first + i);
  }
  // nextRows has the rows be near that the next turn begins with.
  __device__ __forceinline__ void nextRows(const Parts &x) {
    for (int i = 0; i < then; i++) near(x.of(next + i), 2 * TWO * TEXT * x.columns);
  }
  __device__ __forceinline__ void rows(const TextTimes &p) { nextRows(p.x); }
  __device__ __forceinline__ void words(const TextTimes &) {}
  template <class Becomes>
  __device__ __forceinline__ void heads(const TextTimes &p) {
    ahead<Becomes>(p);
    nextRows(p.x);
    bringAll(p.laid, p.x.columns / UNIT_K);
  }
  template <class Becomes>
  __device__ __forceinline__ void one(const TextTimes &p) {
    ahead<Becomes>(p);
    bringAll(p.laid, p.columns / TEXT_COLUMNS * UNITS);
  }
  template <class Between, class Becomes>
  __device__ __forceinline__ void two(const TextTimes &p, const TextTimes &then) {
    ahead<Between>(p);
    ahead<Becomes>(then);
#pragma unroll 1
    for (int n = 0; n < p.columns / TEXT_COLUMNS; n++) {
      bringAll(p.laid + (size_t)n * UNITS * UNIT, UNITS);
      bringAll(then.laid + (size_t)n * UNITS * UNIT, UNITS);
    }
  }
};

// Idler gives units back that its group has no example for.
struct Idler {
  Units units;

  __device__ __forceinline__ void pass(int count) {
#pragma unroll 1
    for (int i = 0; i < count; i++) {
      await(&units.there[units.slot], units.phase);
      if (threadIdx.x % 32 == 0) arrive(&units.gone[units.slot]);
      units.next();
    }
  }
  __device__ __forceinline__ void rows(const TextTimes &) {}
  __device__ __forceinline__ void words(const TextTimes &) {}
  template <class Becomes>
  __device__ __forceinline__ void heads(const TextTimes &p) { pass(p.x.columns / UNIT_K); }
  template <class Becomes>
  __device__ __forceinline__ void one(const TextTimes &p) { pass(p.columns / TEXT_COLUMNS * UNITS); }
  template <class Between, class Becomes>
  __device__ __forceinline__ void two(const TextTimes &p, const TextTimes &) { pass(p.columns / TEXT_COLUMNS * UNITS * 2); }
};

// Worker has an example's rows, and multiplies. What a step gives on lies at the first of its two places.
// SQUARE, rows' products with each other make norms.
template <bool SQUARE>
struct Worker {
  Layer &g;
  Units units;
  unsigned short *places;
  Barrier *there;   // what is read, at each of them
  unsigned phases;  // of these, a bit each
  int e;

  __device__ __forceinline__ Laid<TEXT_EIGHT, 64, false> rowsAt(int place, int q) const { return {places + place * TEXT_LAID + q * ROWS_PART, TEXT * TEXT_COLUMNS}; }
  __device__ __forceinline__ Laid<TEXT_EIGHT, 64, false> othersAt(int place, int q) const { return {places + place * TEXT_LAID + q * ROWS_PART + g.half * TEXT_SCALED * 8, TEXT * TEXT_COLUMNS}; }
  __device__ __forceinline__ Laid<UNIT_EIGHT, 64, false> unit() const { return {units.at + units.slot * UNIT_ROOM + g.half * TEXT_HALF * 8, UNIT_PART}; }
  // back is what takes the next unit back, which is there: of it, only the first lane reads, for it gives
  // the unit back.
  __device__ __forceinline__ float back() const { return __shfl_sync(~0u, g.lane == 0 ? *(const float *)(units.at + units.slot * UNIT_ROOM + TWO * UNIT_PART) : 0.f, 0); }
  __device__ __forceinline__ void giveBack(int slot) {
    __syncwarp();
    if (g.lane == 0) arrive(&units.gone[slot]);
  }

  // times has fresh be the product of 128 columns at a place, which have a scale in common, with the next
  // four units, and gives on what takes these back.
  __device__ __forceinline__ float times(TextSum &fresh, int place) {
    float right = 0.f;
    int last = 0;
#pragma unroll
    for (int q = 0; q < UNITS; q++) {
      await(&units.there[units.slot], units.phase);
      if (q == 0) {
        right = back();
        textStart<2, false>(fresh, rowsAt(place, q), unit());
      } else {
        textStart<2, true>(fresh, rowsAt(place, q), unit());
        textArrived<1>();
        giveBack(last);
      }
      last = units.slot;
      units.next();
    }
    textArrived<0>(fresh);
    giveBack(last);
    return right;
  }

  // pairsOf adds products of rows with each other, of 128 columns at a place: after other products, for
  // registers are few.
  __device__ __forceinline__ void pairsOf(Pairs &pairs, int place, float left) {
    PairSum one, other;
    textStart<2, false>(one, rowsAt(place, 0), othersAt(place, 0));
    textStart<2, false>(other, rowsAt(place, 1), othersAt(place, 1));
    textArrived<1>(one);
    pairs.add(g, one, left);
    textStart<2, false>(one, rowsAt(place, 2), othersAt(place, 2));
    textArrived<1>(other);
    pairs.add(g, other, left);
    textStart<2, false>(other, rowsAt(place, 3), othersAt(place, 3));
    textArrived<1>(one);
    pairs.add(g, one, left);
    textArrived<0>(other);
    pairs.add(g, other, left);
  }

  // timesEach adds the product of columns that have a scale for every 32 to a sum.
  template <bool PAIRS>
  __device__ __forceinline__ void timesEach(TextSum &sum, Pairs &pairs, int place, const float *backs) {
#pragma unroll 1
    for (int q = 0; q < UNITS; q++) {
      TextSum fresh;
      float left = backs[q];
      await(&units.there[units.slot], units.phase);
      float right = back();
      textStart<2, false>(fresh, rowsAt(place, q), unit());
      textArrived<0>(fresh);
      giveBack(units.slot);
      units.next();
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 2; i++) sum[i / 4][i % 4] = fmaf(fresh[i / 4][i % 4], left * right, sum[i / 4][i % 4]);
      if (PAIRS) {
        PairSum own;
        textStart<2, false>(own, rowsAt(place, q), othersAt(place, q));
        textArrived<0>(own);
        pairs.add(g, own, left);
      }
    }
  }

  // read begins to read bytes to a place that nobody reads or writes any more: first ones, and as many
  // others, or none.
  __device__ __forceinline__ void read(int place, const void *first, const void *others, unsigned bytes) {
    if (g.t) return;
    shown();
    announce(&there[place], others ? 2 * bytes : bytes);
    bring(&there[place], places + place * TEXT_LAID, first, bytes);
    if (others) bring(&there[place], places + place * TEXT_LAID + TEXT * TEXT_COLUMNS, others, bytes);
  }
  // readParts begins to read 128 columns in parts, number n.
  __device__ __forceinline__ void readParts(int place, const Parts &x, int n) {
    const unsigned short *from = x.of(e) + n * (TEXT_COLUMNS / 8) * TEXT_EIGHT;
    read(place, from, from + (size_t)TEXT * x.columns, 2 * TEXT * TEXT_COLUMNS);
  }
  // readBeside begins to read what an end reads, and says where that lies then.
  template <class Becomes>
  __device__ __forceinline__ void readBeside(int place, const TextTimes &p) {
    g.beside = (const float *)(places + place * TEXT_LAID);
    read(place, Becomes::beside(p, e), nullptr, 4 * TEXT * TEXT_COLUMNS);
  }
  // free waits until all of the group are through with both places.
  __device__ __forceinline__ void free() {
    if (g.t == 0) sent();
    g.meet();
  }
  __device__ __forceinline__ void arrived(int place) {
    await(&there[place], phases >> place & 1);
    phases ^= 1 << place;
  }

  __device__ __forceinline__ void rows(const TextTimes &p) {
    free();
    readParts(0, p.x, 0);
    g.back = p.x.backsOf(e)[0];
    arrived(0);
  }
  __device__ __forceinline__ void words(const TextTimes &p) {
    TextSum v;
    openText(g, v, p, e);
    g.lies = places;
    normText(g, v, p, e);
  }
  template <class Becomes>
  __device__ __forceinline__ void heads(const TextTimes &p) {
    TextSum sum;
    Pairs pairs(SQUARE);
    int count = p.x.columns / TEXT_COLUMNS;
    free();
    for (int n = 0; n < 2 && n < count; n++) readParts(n, p.x, n);
    if (count == 1) readBeside<Becomes>(1, p);
    if (p.kind != GRAM_NONE) pairs.begin(g, p, e);
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) sum[i / 4][i % 4] = 0.f;
#pragma unroll 1
    for (int n = 0; n < count; n++) {
      const float *backs = p.x.backsOf(e) + n * (TEXT_COLUMNS / TEXT_SCALED);
      arrived(n % 2);
      if (p.kind != GRAM_NONE)
        timesEach<true>(sum, pairs, n % 2, backs);
      else
        timesEach<false>(sum, pairs, n % 2, backs);
      if (n + 1 < count) {
        g.meet();
        if (n + 2 < count)
          readParts(n % 2, p.x, n + 2);
        else
          readBeside<Becomes>(n % 2, p);
      }
    }
    if (p.kind != GRAM_NONE) pairs.end(g, p, e);
    g.lies = places;
    arrived(count % 2);
    Becomes().finish(g, sum, p, e, 0);
  }
  // pairsFirst is of what lies first.
  __device__ __forceinline__ void pairsFirst(const TextTimes &p, float left) {
    if (p.kind == GRAM_NONE) return;
    Pairs pairs(SQUARE);
    pairs.begin(g, p, e);
    pairsOf(pairs, 0, left);
    pairs.end(g, p, e);
  }
  template <class Becomes>
  __device__ __forceinline__ void one(const TextTimes &p) {
    float left = g.back;
    Becomes becomes;
    becomes.begin(g, p, e);
    pairsFirst(p, left);
#pragma unroll 1
    for (int n = 0; n < p.columns / TEXT_COLUMNS; n++) {
      TextSum v;
      float right = times(v, 0);
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 2; i++) v[i / 4][i % 4] = __fmul_rn(v[i / 4][i % 4], left * right);
      becomes.finish(g, v, p, e, n);
    }
    becomes.end(g, p, e);
  }
  template <class Between, class Becomes>
  __device__ __forceinline__ void two(const TextTimes &p, const TextTimes &then) {
    TextSum sum;
    Pairs pairs(SQUARE);
    Between between;
    float left = g.back;
    between.begin(g, p, e);
    pairsFirst(p, left);
    if (then.kind != GRAM_NONE) pairs.begin(g, then, e);
#pragma unroll
    for (int i = 0; i < TEXT_HALF / 2; i++) sum[i / 4][i % 4] = 0.f;
    g.lies = places + TEXT_LAID;
#pragma unroll 1
    for (int n = 0; n < p.columns / TEXT_COLUMNS; n++) {
      TextSum v;
      if (Between::READS) {
        free();
        read(1, p.at + ((size_t)e * (p.columns / TEXT_COLUMNS) + n) * TEXT * TEXT_COLUMNS, nullptr, 4 * TEXT * TEXT_COLUMNS);
      }
      float right = times(v, 0);
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 2; i++) v[i / 4][i % 4] = __fmul_rn(v[i / 4][i % 4], left * right);
      if (Between::READS) arrived(1);
      between.finish(g, v, p, e, n);
      if (n + 1 == p.columns / TEXT_COLUMNS) readBeside<Becomes>(0, then);  // nobody reads there any more
      float own = g.back;
      right = times(v, 1);
#pragma unroll
      for (int i = 0; i < TEXT_HALF / 2; i++) sum[i / 4][i % 4] = fmaf(v[i / 4][i % 4], own * right, sum[i / 4][i % 4]);
      if (then.kind != GRAM_NONE) pairsOf(pairs, 1, own);
    }
    if (then.kind != GRAM_NONE) pairs.end(g, then, e);
    g.lies = places;
    arrived(0);
    Becomes().finish(g, sum, then, e, 0);
  }
};

// Turn is which examples a block has in a turn: two, or one where that is enough for all that are left, for
// blocks with one are through sooner.
struct Turn {
  int first, some;
  __device__ __forceinline__ Turn(int number, int examples) {
    int before = number * gridDim.x * CHAIN_GROUPS, left = examples - before, most = left > (int)gridDim.x ? CHAIN_GROUPS : 1;
    first = before + blockIdx.x * most, some = examples - first;
    if (some > most) some = most;
  }
};

// textChain is a block's share of a chain.
template <bool SQUARE, class Chain>
__device__ __forceinline__ void textChain(const TextChain &p) {
  __shared__ Barrier unitThere[CHAIN_STAGES], unitGone[CHAIN_STAGES], rowsThere[2 * CHAIN_GROUPS], meets[CHAIN_GROUPS];
  DYNAMIC(chainRoom);
  int t = threadIdx.x, group = __shfl_sync(~0u, t / GROUP, 0);
  unsigned short *laid = (unsigned short *)chainRoom, *matrix = laid + CHAIN_GROUPS * 2 * TEXT_LAID;
  if (t == 0) {
    for (int i = 0; i < CHAIN_STAGES; i++) ready(&unitThere[i], 1), ready(&unitGone[i], GROUP_WARPS * CHAIN_GROUPS);
    for (int i = 0; i < 2 * CHAIN_GROUPS; i++) ready(&rowsThere[i], 1);
    for (int i = 0; i < CHAIN_GROUPS; i++) ready(&meets[i], GROUP);
    readied();
  }
  __syncthreads();
  if (group == CHAIN_GROUPS) {
    giveRegisters<24>();
    if (t > GROUP * CHAIN_GROUPS) return;
    Bringer all = {{matrix, unitThere, unitGone, 0, 1}, 0, 0, 0, 0};
#pragma unroll 1
    for (int i = 0;; i++) {
      Turn turn(i, p.examples);
      if (turn.some <= 0) break;
      Turn next(i + 1, p.examples);
      all.first = turn.first, all.some = turn.some, all.next = next.first, all.then = next.some;
      Chain::go(all, p);
    }
    return;
  }
  takeRegisters<112>();
  Layer g(&meets[group], (float *)(matrix + CHAIN_STAGES * UNIT_ROOM) + group * GROUP_ROOM);
  Worker<SQUARE> all = {g, {matrix, unitThere, unitGone, 0, 0}, laid + group * 2 * TEXT_LAID, rowsThere + 2 * group, 0, 0};
#pragma unroll 1
  for (int i = 0;; i++) {
    Turn turn(i, p.examples);
    if (turn.some <= 0) break;
    all.e = turn.first + group;
    if (group < turn.some) {
      Chain::go(all, p);
    } else {  // the last ones
      Idler rest = {all.units};
      Chain::go(rest, p);
    }
  }
  if (g.t == 0) sent();
}

struct ForwardFirst {  // to the first questions, keys and values
  template <class Side>
  static __device__ __forceinline__ void go(Side &s, const TextChain &p) {
    s.words(p.of[0]);
    s.template one<OpenEnd>(p.of[1]);
  }
};
struct Forward {  // from one attention to the next
  template <class Side>
  static __device__ __forceinline__ void go(Side &s, const TextChain &p) {
    s.template heads<NormEnd>(p.of[0]);
    s.template two<GeluEnd, NormEnd>(p.of[1], p.of[2]);
    s.template one<OpenEnd>(p.of[3]);
  }
};
struct ForwardLast {  // from the last one to chances
  template <class Side>
  static __device__ __forceinline__ void go(Side &s, const TextChain &p) {
    s.template heads<NormEnd>(p.of[0]);
    s.template two<GeluEnd, NormEnd>(p.of[1], p.of[2]);
    s.template one<ChancesEnd>(p.of[3]);
  }
};
struct BackwardFirst {  // from scores back to the last attention
  template <class Side>
  static __device__ __forceinline__ void go(Side &s, const TextChain &p) {
    s.rows(p.of[0]);
    s.template two<SlopesEnd, NormBackEnd>(p.of[0], p.of[1]);
    s.template two<GeluBackEnd, NormBackEnd>(p.of[2], p.of[3]);
    s.template one<OpenEnd>(p.of[4]);
  }
};
struct Backward {  // from one attention back to the one before
  template <class Side>
  static __device__ __forceinline__ void go(Side &s, const TextChain &p) {
    s.template heads<NormBackEnd>(p.of[0]);
    s.template two<GeluBackEnd, NormBackEnd>(p.of[1], p.of[2]);
    s.template one<OpenEnd>(p.of[3]);
  }
};
struct BackwardLast {  // from the first one back to words
  template <class Side>
  static __device__ __forceinline__ void go(Side &s, const TextChain &p) { s.template heads<NormBackEnd>(p.of[0]); }
};
extern "C" __global__ void __launch_bounds__(CHAIN_GROUPS * GROUP + 128, 1) text_forward_first(TextChain p) { textChain<false, ForwardFirst>(p); }
extern "C" __global__ void __launch_bounds__(CHAIN_GROUPS * GROUP + 128, 1) text_forward(TextChain p) { textChain<false, Forward>(p); }
extern "C" __global__ void __launch_bounds__(CHAIN_GROUPS * GROUP + 128, 1) text_forward_last(TextChain p) { textChain<false, ForwardLast>(p); }
extern "C" __global__ void __launch_bounds__(CHAIN_GROUPS * GROUP + 128, 1) text_backward_first(TextChain p) { textChain<true, BackwardFirst>(p); }
extern "C" __global__ void __launch_bounds__(CHAIN_GROUPS * GROUP + 128, 1) text_backward(TextChain p) { textChain<true, Backward>(p); }
extern "C" __global__ void __launch_bounds__(CHAIN_GROUPS * GROUP + 128, 1) text_backward_last(TextChain p) { textChain<true, BackwardLast>(p); }
