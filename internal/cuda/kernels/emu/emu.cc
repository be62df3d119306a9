// A library with the driver's names that runs the kernels on a processor:
//   g++ -O2 -std=c++17 -shared -fPIC -fvisibility=hidden -o libemu.so internal/cuda/kernels/emu/emu.cc
// Blocks run in the order that COTERIE_EMU_ORDER asks for (forward, or backward), so that
// a block that reads what another writes is found; memory that nobody wrote holds no
// numbers. Backward, what a second stream starts runs as late as it may: when the first one
// waits for it; ahead, what the first one starts does; late, both do, until this program waits. COTERIE_EMU_FAIL makes a call fail: "cuMemAlloc", "lost" after 3 launches.
// COTERIE_EMU_MEMORY is how many bytes the device has.
#define EMULATED
#include "../kernels.cu"
#include "../tensor.cu"
#include "../groups.cu"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

dim3 blockIdx, threadIdx, gridDim, blockDim;
float *emu_shared;
double emu_exchange[1024];
unsigned emu_sides[1024][18];
const void *emu_rows[1024];

// emu_switch saves where one fiber is and goes on with another. The system's own
// (swapcontext) asks the kernel each time, which takes most of a test's time.
#ifdef __x86_64__
extern "C" void emu_switch(void **save, void *load);
asm(R"(
.text
.globl emu_switch
emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#endif

void emu_clear();  // of what is on its way
void emu_end();    // all is sent

namespace {
struct Fiber {
#ifdef __x86_64__
  void *at;
#else
  ucontext_t ctx;
#endif
  std::vector<char> stack = std::vector<char>(64 << 10);
};
std::vector<Fiber *> fibers;
// What a thread does: it runs, waits for its warp, for all of the block's threads, or for a barrier's
// phase, or is done.
enum Doing : unsigned char { RUNS, WARP, BLOCK, PHASE, DONE };
Doing doing[1024];
unsigned current, warpEnd;  // which thread runs, and behind which one its warp ends
std::function<void()> body;

#ifdef __x86_64__
void *scheduler;
void pass(Fiber *from, Fiber *to) { emu_switch(&from->at, to ? to->at : scheduler); }
void go(Fiber *f) { emu_switch(&scheduler, f->at); }
#else
ucontext_t scheduler;
void pass(Fiber *from, Fiber *to) { swapcontext(&from->ctx, to ? &to->ctx : &scheduler); }
void go(Fiber *f) { swapcontext(&scheduler, &f->ctx); }
#endif

// next is the warp's first thread from one on that runs, or its end.
unsigned next(unsigned t) {
  while (t < warpEnd && doing[t] != RUNS) t++;
  return t;
}

// leave goes on with the warp's next thread, without a way round by the scheduler as long as there is one.
void leave(Doing why) {
  unsigned from = current, to = next(from + 1);
  doing[from] = why;
  if (to == warpEnd) return pass(fibers[from], nullptr);
  current = to, threadIdx = {to, 0, 0};
  pass(fibers[from], fibers[to]);
}

void enter() {
  body();
  leave(DONE);
}

void start(Fiber *f) {
#ifdef __x86_64__
  uintptr_t top = (uintptr_t)(f->stack.data() + f->stack.size()) & ~(uintptr_t)15;
  void **to = (void **)top;
  *--to = nullptr;          // enter never returns
  *--to = (void *)enter;    // where emu_switch returns to
  to -= 6;                  // its registers
  f->at = to;
#else
  getcontext(&f->ctx);
  f->ctx.uc_stack.ss_sp = f->stack.data();
  f->ctx.uc_stack.ss_size = f->stack.size();
  f->ctx.uc_link = nullptr;
  makecontext(&f->ctx, enter, 0);
#endif
}

// warp runs the threads of one, from first on, as far as they come: until all that are not done
// wait for the block.
void warp(unsigned first, unsigned end) {
  warpEnd = end;
  for (;;) {
    if (unsigned t = next(first); t < end) current = t, threadIdx = {t, 0, 0}, go(fibers[t]);
    bool together = true, any = false;
    for (unsigned t = first; t < end; t++) {
      together = together && (doing[t] == WARP || doing[t] == DONE);
      any = any || doing[t] == WARP;
    }
    if (!together || !any) return;
    for (unsigned t = first; t < end; t++)
      if (doing[t] == WARP) doing[t] = RUNS;
  }
}

// block runs one warp after another to the next barrier of all, the last one first if blocks
// run backward: a warp that does not wait for what another one writes, or reads, is found.
// Threads that are done are waited for by nobody; a block in which nobody can go on waits for
// ever on a device.
void block(unsigned threads, bool last) {
  unsigned again = 0;
  while (fibers.size() < threads) fibers.push_back(new Fiber);
  for (unsigned t = 0; t < threads; t++) start(fibers[t]), doing[t] = RUNS;
  unsigned warps = (threads + 31) / 32;
  for (;;) {
    for (unsigned i = 0; i < warps; i++) {
      unsigned first = 32 * (last ? warps - 1 - i : i);
      warp(first, first + 32 < threads ? first + 32 : threads);
    }
    bool all = true, gone = true, phase = false;
    for (unsigned t = 0; t < threads; t++)
      if (doing[t] != DONE) gone = false, all = all && doing[t] == BLOCK, phase = phase || doing[t] == PHASE;
    if (gone) return;
    if (phase && again++ < 10000) {  // which others may end: who waits for it looks again
      for (unsigned t = 0; t < threads; t++)
        if (doing[t] == PHASE) doing[t] = RUNS;
      continue;
    }
    again = 0;
    if (!all) fprintf(stderr, "emulation: threads wait for others that do not come\n"), abort();
    for (unsigned t = 0; t < threads; t++)
      if (doing[t] == BLOCK) doing[t] = RUNS;
  }
}

// A kernel is bound to its arguments when it is launched, or recorded.
using Bound = std::function<void()>;
using Kernel = std::function<Bound(void **)>;

template <class... A, size_t... I>
Bound boundTo(void (*k)(A...), void **p, std::index_sequence<I...>) {
  std::tuple<A...> args(*(A *)p[I]...);
  return [k, args] { std::apply(k, args); };
}
template <class... A>
Kernel wrap(void (*k)(A...)) {
  return [k](void **p) { return boundTo(k, p, std::index_sequence_for<A...>{}); };
}
#define K(name) {#name, wrap(name)}
std::map<std::string, Kernel> kernels = {
    K(conv_32), K(conv_64), K(conv_odd_32), K(conv_spread_64), K(turn), K(thin_3), K(thin_5),
    K(direct_2_10), K(direct_3_8), K(direct_3_9), K(direct_3_10), K(direct_4_8), K(direct_4_9), K(direct_5_9), K(direct_8_9), K(near_3_13_4), K(near_4_13_4),
    K(pooled_2_10), K(pooled_3_8), K(pooled_3_9), K(pooled_4_9), K(pooled_5_9), K(pooled_8_9), K(pooled_near_3_12_8), K(pooled_near_8_9_4),
    K(taps_2_2), K(taps_3_3), K(taps_3_1), K(taps_4_2), K(taps_5_1), K(taps_8_1),
    K(taps_pooled_2_2), K(taps_pooled_3_3), K(taps_pooled_3_1), K(taps_pooled_4_2), K(taps_pooled_5_1), K(taps_pooled_8_1),
    K(merged_4_13_8),
    K(filters_32), K(filters_64), K(filters_odd_32), K(biases),
    K(dense_32), K(dense_64), K(dense_end), K(dense_back), K(few_back), K(dense_sums_32), K(dense_sums_64), K(dense_adds), K(dense_square),
    K(gather), K(max_pool_1), K(max_pool_4), K(max_pool_back_1), K(max_pool_back_4), K(activate), K(cross_entropy), K(head), K(squared_error), K(norms), K(take_rows), K(take_factors), K(row_sum), K(arranged_all),
    K(narrowed), K(normals), K(added), K(directions), K(moved),
    K(times_128), K(times_back_128), K(times_sum_128), K(times_64), K(times_back_64), K(times_sum_64), K(times_odd), K(times_back_odd), K(times_sum_odd),
    K(parts_sum), K(spread), K(times_square), K(times_half), K(times_half_odd), K(embed), K(places_add), K(rows_square), K(words_square), K(order_words), K(words_sum), K(words_meet), K(next_word), K(text_losses),
    K(layer_norm), K(layer_norm_back), K(layer_norm_128), K(layer_norm_back_128), K(layer_norm_512), K(layer_norm_back_512), K(layer_norm_kept), K(group_norm), K(group_norm_back), K(mean_pool), K(mean_pool_back), K(joined), K(joined_back),
    K(whole_rows), K(whole_products), K(formed_square), K(formed_sum),
    K(attend), K(attend_back), K(attend_near), K(attend_back_near), K(next_word_2), K(next_word_4),
    K(tensor_times_128x64x4), K(tensor_times_64x64x4), K(tensor_times_32x32x4), K(tensor_times_back_128x64x8),
    K(tensor_times_back_64x64x4), K(tensor_times_back_32x32x4), K(tensor_times_sum_128x64x4), K(tensor_times_sum_64x64x4),
    K(tensor_times_sum_32x32x4), K(tensor_parts_sum), K(tensor_filters), K(tensor_conv_3_4),
    K(tensor_conv_4_2), K(tensor_pooled_3_4), K(tensor_pooled_4_2), K(tensor_taps_3_4),
    K(tensor_taps_4_4), K(tensor_taps_9_4), K(tensor_taps_5_2),
    K(group_lay), K(group_times), K(group_times_back), K(group_times_small), K(group_times_back_small), K(group_times_sum), K(group_halves),
    K(text_lay), K(text_norm), K(text_met), K(text_chances), K(text_attend), K(text_attend_back), K(text_sum), K(text_rows), K(text_adds), K(text_words),
    K(text_times_open), K(text_times_norm), K(text_times_norm_heads), K(text_times_gelu), 
    K(text_times_gelu_back), K(text_times_norm_back), K(text_times_norm_back_heads), K(text_times_chances), K(text_times_slopes),
    K(text_forward_first), K(text_forward), K(text_forward_last), K(text_backward_first), K(text_backward), K(text_backward_last)};

bool fails(const char *call) {
  const char *asked = getenv("COTERIE_EMU_FAIL");
  return asked && std::string(asked) == call;
}
int launches;
std::map<void *, unsigned> mostShared;  // of kernels that asked for more than all have

// A row of what was recorded; the thread that records has one under way.
using Row = std::vector<Bound>;
thread_local Row *recording;
enum { UNSUPPORTED = 900 };

bool ordered(const char *so) {
  const char *order = getenv("COTERIE_EMU_ORDER");
  return order && std::string(order) == so;
}
bool backward() { return ordered("backward"); }

// A stream is what was started on it, step by step, and has not run yet. Beside is every second one that
// a thread makes, which runs beside the one before.
struct Stream;
struct Step {
  Bound run;  // or it waits
  Stream *other = nullptr;  // until so many steps of another one have run
  size_t before = 0;
  volatile unsigned *gate = nullptr;  // or until a number is that one, or above
  unsigned value = 0;
};
struct Stream {
  bool beside = false;
  std::deque<Step> steps;
  size_t ran = 0, started = 0;
  // What runs as late as it may: what is on the second stream, on the first, or on both.
  bool late() const { return ordered("late") || (beside ? backward() : ordered("ahead")); }
};
thread_local std::vector<Stream *> streams;

// Of a thread's streams what was started before a recording, which has none of it.
struct Started {
  std::deque<Step> steps;
  size_t ran, started;
};
thread_local std::vector<Started> unrecorded;

// Closed gates are in everybody's way: some of what a driver does waits for all that was started.
std::mutex gatesMutex;
std::vector<std::pair<volatile unsigned *, unsigned>> gates;
bool opened(volatile unsigned *at, unsigned value) { return (int)(*at - value) >= 0; }
bool closed() {
  std::lock_guard<std::mutex> mine(gatesMutex);
  for (size_t i = gates.size(); i-- > 0;)
    if (opened(gates[i].first, gates[i].second)) gates.erase(gates.begin() + i);
  return !gates.empty();
}

// advance has a stream run until so many of its steps have run, and says whether that can be. Others run
// as far as it waits for them.
bool advance(Stream *s, size_t until) {
  while (s->ran < until) {
    Step &next = s->steps.front();
    if (next.other && !advance(next.other, next.before)) return false;
    if (next.gate && !opened(next.gate, next.value)) return false;
    Bound run = next.run;
    s->steps.pop_front(), s->ran++;
    if (run && recording)
      recording->push_back(run);
    else if (run)
      run();
  }
  return true;
}
bool advance(Stream *s) { return advance(s, s->started); }

void start(void *stream, Step step) {
  Stream *s = (Stream *)stream;
  s->steps.push_back(step), s->started++;
  if (!s->late()) advance(s);
}
void start(void *stream, const Bound &run) {
  Step step;
  step.run = run;
  start(stream, step);
}

// alone says that nothing of a thread is under way any more, and that nothing has anybody wait.
bool alone() {
  if (recording || closed()) return false;
  for (Stream *s : streams)
    if (!advance(s)) return false;
  return true;
}

// What is taken of the device's memory: the size of everything, by where it lies, and of all together.
std::mutex memoryMutex;
std::map<void *, size_t> sizes;
size_t held;
size_t memory() {
  const char *asked = getenv("COTERIE_EMU_MEMORY");
  return asked ? strtoull(asked, nullptr, 10) : (size_t)1 << 33;
}

// An event is so many steps of a stream, of what is recorded or of what is not.
struct Event {
  Stream *of = nullptr;
  size_t steps = 0;
  Row *row = nullptr;
};

void run(const Bound &bound, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned shared) {
  static std::mutex one;  // block and thread are everybody's
  std::lock_guard<std::mutex> mine(one);
  bool last = backward();
  body = bound;
  std::vector<float4> room(shared / 16 + 1);
  gridDim = {gx, gy, gz}, blockDim = {bx, 1, 1};
  unsigned all = gx * gy * gz;
  for (unsigned i = 0; i < all; i++) {
    unsigned b = last ? all - 1 - i : i;
    memset((void *)room.data(), 0xff, shared);
    emu_shared = (float *)room.data();
    emu_clear();
    blockIdx = {b % gx, b / gx % gy, b / gx / gy}, block(bx, last);
    emu_end();
  }
}
}  // namespace

void __syncthreads() { leave(BLOCK); }
void emu_warp() { leave(WARP); }
bool __syncthreads_or(bool is) {
  bool any = false;
  emu_exchange[threadIdx.x] = is;
  __syncthreads();
  for (unsigned t = 0; t < blockDim.x; t++) any = any || emu_exchange[t] != 0;
  __syncthreads();
  return any;
}

namespace {
// What is on its way, of a block.
struct Sum {
  float *to;
  std::vector<float> values;
};
struct Copy {
  void *to;
  const void *from;
  size_t bytes;
};
struct Phases {
  unsigned arrivals = 0, missing = 0, ended = 0;
  long announced = 0;
  std::vector<Copy> copies;
};
std::vector<Sum> pending[1024];
std::vector<Copy> begun[1024], sending[1024];
std::map<unsigned long long *, Phases> barriers;

void begin(std::vector<Copy> &to, Copy c) { memset(c.to, 0xff, c.bytes), to.push_back(c); }

// settle ends a phase if nothing is missing: as late as anybody can tell.
void settle(Phases &b) {
  if (b.missing > 0 || b.announced > 0) return;
  for (const Copy &c : b.copies) memcpy(c.to, c.from, c.bytes);
  b.copies.clear(), b.missing = b.arrivals, b.ended++;
}
}  // namespace

void emu_clear() {
  barriers.clear();
  for (auto &all : pending) all.clear();
  for (auto &all : begun) all.clear();
}
void emu_pend(float *to, const float *sum, int count) {
  pending[threadIdx.x].push_back({to, std::vector<float>(sum, sum + count)});
  memset((void *)to, 0xff, 4 * count);
}
void emu_last(const float *of, float *sum, int count) {
  for (const Sum &one : pending[threadIdx.x])
    if (one.to == of) memcpy(sum, one.values.data(), 4 * count);
}
void emu_deliver(unsigned left) {
  auto &all = pending[threadIdx.x];
  while (all.size() > left) memcpy(all[0].to, all[0].values.data(), 4 * all[0].values.size()), all.erase(all.begin());
}
void emu_barrier(unsigned long long *b, unsigned arrivals) { barriers[b].arrivals = barriers[b].missing = arrivals; }
void emu_arrive(unsigned long long *b) {
  Phases &p = barriers[b];
  settle(p);
  if (p.missing-- == 0) fprintf(stderr, "emulation: more arrive at a barrier than it is for\n"), abort();
}
void emu_announce(unsigned long long *b, unsigned bytes) { emu_arrive(b), barriers[b].announced += bytes; }
void emu_bring(unsigned long long *b, void *to, const void *from, unsigned bytes) { begin(barriers[b].copies, {to, from, bytes}), barriers[b].announced -= bytes; }
void emu_copy(void *to, const void *from) { begin(begun[threadIdx.x], {to, from, 16}); }
void emu_copied(unsigned long long *b) {
  emu_arrive(b);
  auto &mine = begun[threadIdx.x];
  barriers[b].copies.insert(barriers[b].copies.end(), mine.begin(), mine.end());
  mine.clear();
}
void emu_send(void *to, const void *from, unsigned bytes) { sending[threadIdx.x].push_back({to, from, bytes}); }
namespace {
void deliver(std::vector<Copy> &all) {
  for (const Copy &c : all) memcpy(c.to, c.from, c.bytes);
  all.clear();
}
}  // namespace
void emu_sent() { deliver(sending[threadIdx.x]); }
void emu_end() {
  for (auto &all : sending) deliver(all);
}
void emu_wait(unsigned long long *b, unsigned phase) {
  for (;;) {
    Phases &p = barriers[b];
    settle(p);
    if (p.ended % 2 != phase) return;
    leave(PHASE);
  }
}

#pragma GCC visibility push(default)  // of all that there is, what a driver has
extern "C" {
int cuInit(unsigned) { return fails("cuInit") ? 100 : 0; }
int cuDriverGetVersion(int *v) { return *v = 13000, 0; }
int cuDeviceGetCount(int *n) { return *n = 1, 0; }
int cuDeviceGet(int *d, int) { return *d = 0; }
int cuDeviceGetName(char *s, int n, int) { return snprintf(s, n, "emulated"), 0; }
int cuDeviceGetAttribute(int *v, int what, int) {
  const char *processors = getenv("COTERIE_EMU_PROCESSORS");  // with few, large tiles pay
  const char *shared = getenv("COTERIE_EMU_SHARED");  // bytes that a block may ask for
  if (what == 97) return *v = shared ? atoi(shared) : 227 << 10, 0;
  const char *major = getenv("COTERIE_EMU_MAJOR");  // of the compute capability
  return *v = what == 75 ? (fails("old") ? 5 : major ? atoi(major) : 9) : what == 76 ? (major && atoi(major) == 7 ? 5 : 0) : what == 16 ? (processors ? atoi(processors) : 1000) : 0, 0;
}
int cuDevicePrimaryCtxRetain(void **c, int) { return *c = nullptr, 0; }
int cuCtxSetCurrent(void *) { return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) {
  std::lock_guard<std::mutex> mine(memoryMutex);
  *t = memory(), *f = fails("cuMemAlloc") ? 1 << 20 : *t > held ? *t - held : 0;
  return 0;
}
int cuMemAlloc_v2(void **p, size_t n) {  // poisoned
  if (fails("cuMemAlloc")) return 2;
  if (recording || closed()) return UNSUPPORTED;
  std::lock_guard<std::mutex> mine(memoryMutex);
  if (held + n > memory()) return 2;
  *p = aligned_alloc(256, (n + 255) / 256 * 256);
  memset(*p, 0xff, n);
  held += sizes[*p] = n;
  return 0;
}
int cuMemFree_v2(void *p) {
  if (!alone()) return UNSUPPORTED;
  std::lock_guard<std::mutex> mine(memoryMutex);
  held -= sizes[p], sizes.erase(p);
  return free(p), 0;
}
int cuMemHostRegister_v2(void *, size_t, unsigned) { return alone() ? 0 : UNSUPPORTED; }
int cuMemHostUnregister(void *) { return alone() ? 0 : UNSUPPORTED; }
int cuMemHostGetDevicePointer_v2(void **at, void *p, unsigned) { return *at = p, fails("mapping") ? 1 : 0; }
// Copies could be recorded, but what they read would have to stay: nobody means to.
int copied(void *to, const void *from, size_t n, void *stream) {
  if (recording || !advance((Stream *)stream)) return UNSUPPORTED;
  return memcpy(to, from, n), 0;
}
int cuMemcpyHtoDAsync_v2(void *d, const void *s, size_t n, void *stream) { return copied(d, s, n, stream); }
int cuMemcpyDtoHAsync_v2(void *d, const void *s, size_t n, void *stream) { return copied(d, s, n, stream); }
int cuMemsetD8Async(void *d, unsigned char v, size_t n, void *stream) {
  return start(stream, [=] { memset(d, v, n); }), 0;
}
int cuModuleLoadData(void **m, const void *) { return closed() ? UNSUPPORTED : (*m = nullptr, 0); }
int cuModuleGetFunction(void **f, void *, const char *name) {
  auto k = kernels.find(name);
  if (k == kernels.end()) return 500;
  return *f = &k->second, 0;
}
int cuFuncSetAttribute(void *f, int what, int v) {
  int most = 0;
  cuDeviceGetAttribute(&most, 97, 0);
  if (what != 8 || v > most) return 1;
  return mostShared[f] = v, 0;
}
int cuStreamCreateWithPriority(void **s, unsigned, int) {
  Stream *made = new Stream;
  made->beside = streams.size() % 2 == 1;
  streams.push_back(made);
  return *s = made, 0;
}
int cuStreamSynchronize(void *s) { return !recording && advance((Stream *)s) ? 0 : UNSUPPORTED; }
int cuEventCreate(void **e, unsigned) { return *e = new Event, 0; }
int cuEventRecord(void *e, void *s) {
  *(Event *)e = {(Stream *)s, ((Stream *)s)->started, recording};
  return 0;
}
int cuEventSynchronize(void *event) {
  Event &e = *(Event *)event;
  return !recording && !e.row && (!e.of || advance(e.of, e.steps)) ? 0 : UNSUPPORTED;
}
int cuStreamWaitEvent(void *s, void *event, unsigned) {
  Event &e = *(Event *)event;
  if (e.row != recording) return UNSUPPORTED;  // of another recording, or of none
  Step step;
  step.other = e.of, step.before = e.steps;
  return start(s, step), 0;
}
int cuStreamWaitValue32_v2(void *s, void *at, unsigned value, unsigned) {
  if (recording) return UNSUPPORTED;
  Step step;
  step.gate = (volatile unsigned *)at, step.value = value;
  {
    std::lock_guard<std::mutex> mine(gatesMutex);
    gates.push_back({step.gate, value});
  }
  return start(s, step), 0;
}
int cuStreamBeginCapture_v2(void *, int) {
  if (recording || closed()) return UNSUPPORTED;
  for (Stream *s : streams) {
    unrecorded.push_back({s->steps, s->ran, s->started});
    s->steps.clear(), s->ran = s->started = 0;
  }
  return recording = new Row, 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
  bool whole = recording && advance((Stream *)stream);
  for (size_t i = 0; recording && i < streams.size(); i++) {
    Stream *s = streams[i];
    whole = whole && s->steps.empty();  // or what runs beside was not waited for
    s->steps = unrecorded[i].steps, s->ran = unrecorded[i].ran, s->started = unrecorded[i].started;
  }
  unrecorded.clear();
  *graph = whole ? recording : nullptr;
  return recording = nullptr, whole ? 0 : UNSUPPORTED;
}
int cuGraphInstantiateWithFlags(void **row, void *graph, unsigned long long) { return closed() ? UNSUPPORTED : (*row = new Row(*(Row *)graph), 0); }
int cuGraphLaunch(void *row, void *stream) {
  start(stream, [all = *(Row *)row] {
    for (const Bound &one : all) one();
  });
  return 0;
}
int cuGraphDestroy(void *graph) { return delete (Row *)graph, 0; }
int cuGraphExecDestroy(void *row) { return closed() ? UNSUPPORTED : (delete (Row *)row, 0); }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned, unsigned, unsigned shared, void *stream, void **p, void **) {
  if (fails("lost") && ++launches > 3) return 999;
  if (shared > 48 << 10 && shared > mostShared[f]) return 1;  // more must be asked for
  if (gy > 65535 || gz > 65535) return 1;                     // no device has more
  Bound bound = (*(Kernel *)f)(p);
  Bound whole = [=] { run(bound, gx, gy, gz, bx, shared); };
  return start(stream, whole), 0;
}
}
#pragma GCC visibility pop
