// A recording libcuda.so.1 for tests. Streams do their work when they are synchronised, or memory is
// freed, so a missing wait is a wrong number. Device memory is inaccessible while host code runs, and lies before a guard
// page. An image names a shared object with the kernels compiled for this processor ("// emulated:
// PATH"). Threads of a warp are coroutines, which switch at shuffles and barriers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_IMAGE = 200,
       NOT_FOUND = 500, LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900 };
enum { WARP = 32, STACK = 1 << 16, PAGE = 4096 };

// ---- the record, and injected faults

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char events[1 << 20];
static size_t events_used;
static char fault_name[64];
static int fault_after, fault_status, sticky;
static int retained, streams, allocations, modules, pushed_total, graphs;
static __thread int pushed;

static int enter(const char *name) {
  pthread_mutex_lock(&lock);
  if (events_used + 64 < sizeof events)
    events_used += snprintf(events + events_used, 64, "%s\n", name);
  int status = sticky;
  if (!strcmp(name, fault_name) && fault_after-- == 0) status = fault_status, fault_name[0] = 0;
  pthread_mutex_unlock(&lock);
  return status;
}
#define ENTER() int fault = enter(__func__); if (fault) return fault
#define NEED_CONTEXT() if (!pushed) return INVALID_CONTEXT

const char *recorded(void) { return events; }
void forget(void) { events_used = 0; events[0] = 0; sticky = 0; fault_name[0] = 0; }
void fail(const char *name, int after, int status) {
  strcpy(fault_name, name); fault_after = after; fault_status = status;
}
void count(int *into) {
  int found[] = {retained, streams, allocations, modules, pushed_total, graphs};
  memcpy(into, found, sizeof found);
}

// ---- device memory

static void finish_streams(void);

typedef struct memory { struct memory *next; char *start; size_t bytes, mapped; } memory;
static memory *memories;

static void open_memory(int protection) {
  for (memory *m = memories; m; m = m->next) mprotect(m->start, m->mapped, protection);
}
int cuMemAlloc_v2(void **out, size_t bytes) {
  ENTER(); NEED_CONTEXT();
  if (bytes == 0) return INVALID_VALUE;
  size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE, used = (bytes + 255) / 256 * 256;
  char *start = mmap(0, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  memory *made = malloc(sizeof *made);
  *made = (memory){memories, start, bytes, mapped};
  memories = made;
  allocations++;
  pthread_mutex_unlock(&lock);
  *out = start + mapped - used;
  return OK;
}
int cuMemFree_v2(char *address) {
  ENTER(); NEED_CONTEXT();
  finish_streams();
  pthread_mutex_lock(&lock);
  for (memory **m = &memories; *m; m = &(*m)->next)
    if (address >= (*m)->start && address < (*m)->start + (*m)->mapped) {
      memory *found = *m;
      *m = found->next;
      munmap(found->start, found->mapped + PAGE);
      free(found);
      allocations--;
      pthread_mutex_unlock(&lock);
      return OK;
    }
  pthread_mutex_unlock(&lock);
  return INVALID_VALUE;
}

// ---- the processor as a warp

// Lanes run in turn, forwards and backwards in alternate rounds.
typedef struct { void (*run)(void **); int arguments, uses_warps; } kernel;
static __thread struct { unsigned block, thread; int lane, waiting; } now;
static __thread ucontext_t scheduler, lanes[WARP];
static __thread float exchanged[WARP];
static __thread struct { kernel *kernel; void **arguments; } running;
static __thread int finished[WARP];

unsigned emulated_tid(void) { return now.thread; }
unsigned emulated_ctaid(void) { return now.block; }
void emulated_warp_sync(int mask) {
  int lane = now.lane;
  now.waiting++;
  swapcontext(&lanes[lane], &scheduler);
}
float emulated_shuffle(int mask, float value, int bit, int last) {
  int lane = now.lane;
  exchanged[lane] = value;
  emulated_warp_sync(mask);
  float other = exchanged[lane ^ bit];
  emulated_warp_sync(mask);
  return other;
}
static void lane_main(void) {
  int lane = now.lane;
  running.kernel->run(running.arguments);
  finished[lane] = 1;
  swapcontext(&lanes[lane], &scheduler);
}
static int run_warp(unsigned first) {
  static __thread char *stacks;
  if (!stacks) stacks = malloc(WARP * STACK);
  for (int lane = 0; lane < WARP; lane++) {
    getcontext(&lanes[lane]);
    lanes[lane].uc_stack.ss_sp = stacks + lane * STACK;
    lanes[lane].uc_stack.ss_size = STACK;
    makecontext(&lanes[lane], lane_main, 0);
    finished[lane] = 0;
  }
  for (int round = 0;; round++) {
    int done = 0;
    now.waiting = 0;
    for (int number = 0; number < WARP; number++) {
      int lane = round % 2 ? WARP - 1 - number : number;
      now.lane = lane;
      now.thread = first + lane;
      swapcontext(&scheduler, &lanes[lane]);
    }
    for (int lane = 0; lane < WARP; lane++) done += finished[lane];
    if (done == WARP) return OK;
    if (now.waiting != WARP) return LAUNCH_FAILED;  // lanes parted at a barrier
  }
}
static int run_kernel(kernel *k, unsigned blocks, unsigned threads, void **arguments) {
  running.kernel = k;
  running.arguments = arguments;
  for (now.block = 0; now.block < blocks; now.block++) {
    for (unsigned first = 0; first < threads; first += k->uses_warps ? WARP : 1) {
      if (k->uses_warps && run_warp(first)) return LAUNCH_FAILED;
      now.thread = first;
      if (!k->uses_warps) k->run(arguments);
    }
  }
  return OK;
}

// ---- streams

typedef struct work {
  struct work *next;
  kernel *kernel;
  unsigned blocks, threads;
  void *to, **arguments;
  const void *from;
  size_t bytes;
  int (*call)(void *);  // of a library, with its own data in `arguments`
} work;
typedef struct { work *first, **last; } works;
typedef struct stream { works queued, captured; int captures; struct stream *next; } stream;
static stream *all_streams;

static void append_to(works *all, work made) {
  work *kept = malloc(sizeof *kept);
  *kept = made;
  kept->next = 0;
  *all->last = kept;
  all->last = &kept->next;
}
static void append(stream *s, work made) { append_to(s->captures ? &s->captured : &s->queued, made); }
static void free_work(work *w) {
  for (int n = 0; w->kernel && n < w->kernel->arguments; n++) free(w->arguments[n]);
  free(w->arguments);
  free(w);
}
static void free_all(works *all) {
  for (work *w = all->first, *next; w; w = next) next = w->next, free_work(w);
  *all = (works){0, &all->first};
}
static work copied(const work *w) {
  work made = *w;
  if (w->call) made.arguments = memcpy(malloc(w->bytes), w->arguments, w->bytes);
  if (!w->kernel) return made;
  made.arguments = malloc((w->kernel->arguments + 1) * sizeof *made.arguments);
  for (int n = 0; n < w->kernel->arguments; n++)
    made.arguments[n] = memcpy(malloc(sizeof(void *)), w->arguments[n], sizeof(void *));
  return made;
}
static int do_all_locked(stream *s) {
  int status = OK;
  open_memory(PROT_READ | PROT_WRITE);
  for (work *w = s->queued.first; w; w = w->next) {
    if (status == OK && w->kernel) status = run_kernel(w->kernel, w->blocks, w->threads, w->arguments);
    else if (status == OK && w->call) status = w->call(w->arguments);
    else if (status == OK) memcpy(w->to, w->from, w->bytes);
  }
  free_all(&s->queued);
  open_memory(PROT_NONE);
  return status;
}
static int do_all(stream *s) {
  pthread_mutex_lock(&lock);
  int status = do_all_locked(s);
  pthread_mutex_unlock(&lock);
  return status;
}
static void finish_streams(void) {
  pthread_mutex_lock(&lock);
  for (stream *s = all_streams; s; s = s->next) do_all_locked(s);
  pthread_mutex_unlock(&lock);
}
int cuStreamCreate(stream **out, unsigned flags) {
  ENTER(); NEED_CONTEXT();
  pthread_mutex_lock(&lock);
  stream *made = *out = malloc(sizeof *made);
  *made = (stream){{0, &made->queued.first}, {0, &made->captured.first}, 0, all_streams};
  all_streams = made;
  streams++;
  pthread_mutex_unlock(&lock);
  return OK;
}
int cuStreamDestroy_v2(stream *s) {
  ENTER(); NEED_CONTEXT();
  pthread_mutex_lock(&lock);
  do_all_locked(s);
  stream **at = &all_streams;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  free(s);
  streams--;
  pthread_mutex_unlock(&lock);
  return OK;
}
int cuStreamGetCtx(stream *s, void **context) { ENTER(); *context = (void *)16; return OK; }
int cuStreamSynchronize(stream *s) {
  ENTER(); NEED_CONTEXT();
  if (s->captures) return CAPTURE_UNSUPPORTED;
  int status = do_all(s);
  if (status) sticky = status;
  return status;
}
// For recording libraries: enqueues a call, with a copy of its data.
int library_enter(const char *name) { return enter(name); }
int library_enqueue(stream *s, int (*call)(void *), const void *data, size_t bytes) {
  NEED_CONTEXT();
  append(s, (work){.call = call, .arguments = memcpy(malloc(bytes), data, bytes), .bytes = bytes});
  return OK;
}
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t bytes, stream *s) {
  ENTER(); NEED_CONTEXT();
  append(s, (work){.to = to, .from = from, .bytes = bytes});
  return OK;
}
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t bytes, stream *s) {
  ENTER(); NEED_CONTEXT();
  append(s, (work){.to = to, .from = from, .bytes = bytes});
  return OK;
}

// ---- graphs

static works *taken(works *from) {  // moves all work to a new list
  works *made = malloc(sizeof *made);
  *made = (works){from->first, from->first ? from->last : &made->first};
  *from = (works){0, &from->first};
  __sync_fetch_and_add(&graphs, 1);
  return made;
}
static int free_graph(works *graph) {
  free_all(graph);
  free(graph);
  __sync_fetch_and_sub(&graphs, 1);
  return OK;
}
int cuStreamBeginCapture_v2(stream *s, int mode) {
  ENTER(); NEED_CONTEXT();
  if (s->captures || mode != 1) return INVALID_VALUE;
  s->captures = 1;
  return OK;
}
int cuStreamEndCapture(stream *s, works **graph) {
  NEED_CONTEXT();
  *graph = 0;
  if (!s->captures) return INVALID_VALUE;
  s->captures = 0;
  int fault = enter(__func__);
  if (fault) return free_all(&s->captured), fault;
  *graph = taken(&s->captured);
  return OK;
}
int cuGraphInstantiateWithFlags(works **made, works *graph, uint64_t flags) {
  *made = (void *)1;
  ENTER(); NEED_CONTEXT();
  works all = {0, &all.first};
  for (work *w = graph->first; w; w = w->next) append_to(&all, copied(w));
  *made = taken(&all);
  return OK;
}
int cuGraphLaunch(works *graph, stream *s) {
  ENTER(); NEED_CONTEXT();
  if (s->captures) return INVALID_VALUE;
  for (work *w = graph->first; w; w = w->next) append(s, copied(w));
  return OK;
}
int cuGraphDestroy(works *graph) { enter(__func__); return free_graph(graph); }
int cuGraphExecDestroy(works *graph) { enter(__func__); NEED_CONTEXT(); return free_graph(graph); }

// ---- modules

typedef struct { void *library; kernel kernels[512]; int used; } module;

int cuModuleLoadData(module **out, const char *image) {
  ENTER(); NEED_CONTEXT();
  const char *mark = strstr(image, "// emulated: ");
  char path[4096];
  if (!mark || sscanf(mark, "// emulated: %4095s", path) != 1) return INVALID_IMAGE;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), INVALID_IMAGE;
  *out = calloc(1, sizeof **out);
  (*out)->library = library;
  __sync_fetch_and_add(&modules, 1);
  return OK;
}
int cuModuleUnload(module *m) {
  ENTER(); NEED_CONTEXT();
  dlclose(m->library);
  free(m);
  __sync_fetch_and_sub(&modules, 1);
  return OK;
}
int cuModuleGetFunction(kernel **out, module *m, const char *name) {
  ENTER(); NEED_CONTEXT();
  char symbol[256];
  snprintf(symbol, sizeof symbol, "%s_emulated", name);
  kernel *found = dlsym(m->library, symbol);
  if (!found) return NOT_FOUND;
  *out = found;
  return OK;
}
int cuLaunchKernel(kernel *k, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty,
                   unsigned tz, unsigned shared, stream *s, void **arguments, void **extra) {
  ENTER(); NEED_CONTEXT();
  if (!blocks || !threads || threads > 1024 || y * z * ty * tz != 1) return INVALID_VALUE;
  void **copies = malloc((k->arguments + 1) * sizeof *copies);
  for (int n = 0; n < k->arguments; n++)
    copies[n] = memcpy(malloc(sizeof(void *)), arguments[n], sizeof(void *));
  append(s, (work){.kernel = k, .blocks = blocks, .threads = threads, .arguments = copies});
  return OK;
}

// ---- contexts and devices

int cuInit(unsigned flags) { ENTER(); return getenv("BYOC_TEST_NO_GPU") ? 100 : OK; }
int cuDriverGetVersion(int *version) {
  const char *chosen = getenv("BYOC_TEST_CUDA_VERSION");
  *version = chosen ? atoi(chosen) : 13020;
  return OK;
}
int cuDeviceGet(int *device, int ordinal) { ENTER(); *device = ordinal; return OK; }
int cuDeviceGetName(char *name, int bytes, int device) { strcpy(name, "Recording GPU"); return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const char *chosen = getenv("BYOC_TEST_CAPABILITY");
  int capability = chosen ? atoi(chosen) : 90;
  *value = attribute == 75 ? capability / 10 : capability % 10;
  return OK;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)8 << 30; return OK; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER();
  *context = (void *)16;
  __sync_fetch_and_add(&retained, 1);
  return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  enter(__func__);
  __sync_fetch_and_sub(&retained, 1);
  return OK;
}
int cuCtxPushCurrent_v2(void *context) {
  ENTER();
  pushed++;
  __sync_fetch_and_add(&pushed_total, 1);
  return OK;
}
int cuCtxPopCurrent_v2(void **context) {
  enter(__func__);
  *context = (void *)16;
  pushed--;
  __sync_fetch_and_sub(&pushed_total, 1);
  return OK;
}
int cuGetErrorString(int status, const char **text) {
  switch (status) {
    case OK: *text = "no error"; return OK;
    case 100: *text = "no CUDA-capable device is detected"; return OK;
    case OUT_OF_MEMORY: *text = "out of memory"; return OK;
    case INVALID_CONTEXT: *text = "invalid device context"; return OK;
    case LAUNCH_FAILED: *text = "unspecified launch failure"; return OK;
    default: *text = 0; return INVALID_VALUE;
  }
}

// ---- the linker keeps the text

int cuLinkCreate_v2(unsigned count, void *options, void *values, char **state) {
  ENTER(); NEED_CONTEXT();
  *state = calloc(1, 1 << 24);
  return OK;
}
int cuLinkAddData_v2(char *state, int type, const char *data, size_t bytes, const char *name,
                     unsigned count, void *options, void *values) {
  ENTER(); NEED_CONTEXT();
  if (type != 1 || data[bytes - 1] || bytes >= 1 << 24) return INVALID_VALUE;
  memcpy(state, data, bytes);
  return OK;
}
int cuLinkComplete(char *state, void **code, size_t *bytes) {
  ENTER(); NEED_CONTEXT();
  *code = state;
  *bytes = strlen(state) + 1;
  return OK;
}
int cuLinkDestroy(char *state) { ENTER(); free(state); return OK; }

// Kernels call the emulated_… functions, so this library joins the global scope.
__attribute__((constructor)) static void join(void) {
  Dl_info found;
  if (dladdr((void *)enter, &found)) dlopen(found.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}
