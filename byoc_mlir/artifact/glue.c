/* What a C program calls: finding libraries, state, contexts, errors.
 *
 * tables.h is generated for each model; it defines what is written in capitals here. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Of sizes, as the functions in tables.h use them. */
static inline long double floor_div(long double a, long double b) { return floorl(a / b); }
static inline long double larger(long double a, long double b) { return a > b ? a : b; }
static inline long double smaller(long double a, long double b) { return a < b ? a : b; }

#include "tables.h"

#define MOST_BYTES 0x1p47L /* more does not fit in an address space */
#include "failure.h"

/* Of the object code; docs/dev-notes/architecture.md, "Native code". */
extern int64_t byoc_load(void *state);
extern int64_t byoc_open(void *state, void *context, void *arena);
extern int64_t byoc_run(void *state, void *context, void *arena, const void *const *inputs,
                        void *const *outputs);
extern void byoc_close(void *state, void *context);
extern void byoc_unload(void *state);

/* The object code reads it; the stubs in data.s jump to where `byoc_imports` points. */
int32_t byoc_threads = THREADS;
/* Runs with several threads: the number under way, and one that is not 0 once two overlapped. */
int64_t byoc_runs[2];
void *byoc_imports[AT_LEAST_ONE(IMPORT_COUNT)];

/* What the object code asks for when it is loaded: copies of constants, which it has alone here. */
void *byoc_find_packed(const void *source, const void *layout, void *same) {
  (void)source, (void)layout, (void)same;
  return NULL;
}

void byoc_keep_packed(void *copy, int64_t bytes, const void *source, const void *layout, void *same,
                      void *clone, void *destroy) {
  (void)copy, (void)bytes, (void)source, (void)layout, (void)same, (void)clone, (void)destroy;
}

void byoc_free_packed(void *copy) { free(copy); }

/* What byoc_mlir.load uses; byoc_mlir/runtime/shared_object.py knows the structure. */
EXPORTED struct {
  int64_t (*load)(void *);
  int64_t (*open)(void *, void *, void *);
  int64_t (*run)(void *, void *, void *, const void *const *, void *const *);
  void (*close)(void *, void *);
  void (*unload)(void *);
  int32_t *threads;
  int64_t import_count;
  const char *const *import_names;
  void **imports;
} TABLE_NAME = {byoc_load,     byoc_open,    byoc_run,     byoc_close,  byoc_unload,
                &byoc_threads, IMPORT_COUNT, import_names, byoc_imports};

typedef struct context {
  struct context *next;
  int64_t slots[AT_LEAST_ONE(CONTEXT_SLOTS)];
  void *memory;
  void *arena;
  size_t arena_bytes;
} context;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t state[AT_LEAST_ONE(STATE_SLOTS)];
static context *free_contexts;
static int users; /* calls of init that no shutdown answered yet */


/* In the upper half is the number of the region, in the lower one what it returned. */
static int region_failure(int code, const char *what, int64_t status) {
  int64_t region = status >> REGION_SHIFT;
  return fail(code, "%s: %s failed with status %d", what,
              region > 0 && region <= REGION_COUNT ? region_names[region - 1] : "the host function",
              (int)(int32_t)status);
}

/* Where no region failed, a check of the host did, with this number. */
static int run_failure(const context *leased, int64_t status) {
  const check *failed;
  if (status < 1 || status > CHECK_COUNT)
    return region_failure(ERROR_RUN, "running", status);
  failed = &checks[status - 1];
  return fail(ERROR_VALUE, "%s is %lld; accepted are %lld to %lld", failed->what,
              (long long)leased->slots[FOUND_SLOT], failed->least, failed->most);
}

static int has_word(const char *line, const char *word) {
  size_t length = strlen(word);
  for (const char *found = line; (found = strstr(found, word)) != NULL; found += length)
    if ((found == line || found[-1] == ' ' || found[-1] == '\t') &&
        strchr(" \t\n", found[length]) != NULL)
      return 1;
  return 0;
}

/* The kernel says which instructions may be used: beside the processor, it has to know them. */
static int check_cpu(void) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char *line = NULL;
  size_t capacity = 0;
  int status = OK;
  if (file == NULL)
    return fail(ERROR_CPU, "/proc/cpuinfo cannot be read, so it is unknown what this machine can do");
  while (getline(&line, &capacity, file) > 0)
    if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) {
      for (int i = 0; i < FEATURE_COUNT && status == OK; i++)
        if (!has_word(line, feature_names[i]))
          status = fail(ERROR_CPU, "this machine lacks the processor feature %s; compile the model"
                        " for it", feature_names[i]);
      break;
    }
  free(line);
  fclose(file);
  return status;
}

/* An array of at least three ints: major, minor, patch. */
typedef const int *version_function(void);

static int is_wanted(void *handle, const library *wanted, const char *path) {
  version_function *function;
  const int *found, *least = wanted->version;
  if (wanted->version_function[0] == 0)
    return 1;
  *(void **)&function = dlsym(handle, wanted->version_function);
  if (function == NULL) {
    fail(ERROR_LIBRARY, "%s has no function %s", path, wanted->version_function);
    return 0;
  }
  found = function();
  if (found[0] == least[0] &&
      (found[1] > least[1] || (found[1] == least[1] && found[2] >= least[2])))
    return 1;
  fail(ERROR_LIBRARY, "%s has version %d.%d.%d, needed is %d.%d.%d or a later %d.x", path, found[0],
       found[1], found[2], least[0], least[1], least[2], least[0]);
  return 0;
}

static void *open_candidate(const library *wanted, const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fail(ERROR_LIBRARY, "%s", dlerror());
    return NULL;
  }
  if (is_wanted(handle, wanted, path))
    return handle;
  dlclose(handle);
  return NULL;
}

static void *open_beside(const library *wanted) {
  Dl_info info;
  const char *slash;
  char path[4096];
  if (!dladdr((const void *)&byoc_imports, &info) || info.dli_fname == NULL)
    return NULL;
  slash = strrchr(info.dli_fname, '/');
  if (slash == NULL)
    return NULL;
  snprintf(path, sizeof path, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname,
           wanted->name);
  return access(path, R_OK) == 0 ? open_candidate(wanted, path) : NULL;
}

/* The user's choice alone if there is one; else as recorded, beside this file, as the loader
 * finds it. */
static void *open_library(const library *wanted) {
  const char *chosen = wanted->environment[0] ? getenv(wanted->environment) : NULL;
  void *handle = NULL;
  if (chosen != NULL && chosen[0] != 0)
    return open_candidate(wanted, chosen);
  if (wanted->path[0] == '/' && access(wanted->path, R_OK) == 0)
    handle = open_candidate(wanted, wanted->path);
  if (handle == NULL)
    handle = open_beside(wanted);
  return handle != NULL ? handle : open_candidate(wanted, wanted->name);
}

static void *open_image(const image *wanted) {
  char path[64];
  size_t size = (size_t)(wanted->end - wanted->begin), written = 0;
  void *handle = NULL;
  int descriptor = memfd_create("byoc_library", 0);
  while (descriptor >= 0 && written < size) {
    ssize_t count = write(descriptor, wanted->begin + written, size - written);
    if (count <= 0)
      break;
    written += (size_t)count;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (descriptor >= 0 && written == size)
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  /* The descriptor stays open: its number is the library's name. */
  return handle;
}

static int open_libraries(void **handles, void **image_handles) {
  for (int i = 0; i < LIBRARY_COUNT; i++) {
    handles[i] = open_library(&libraries[i]);
    if (handles[i] == NULL) {
      char reason[512];
      snprintf(reason, sizeof reason, "%s", message);
      return fail(ERROR_LIBRARY, "%s cannot be used: %s%s%s", libraries[i].name, reason,
                  libraries[i].environment[0] ? "; name another one in " : "",
                  libraries[i].environment);
    }
  }
  for (int i = 0; i < IMAGE_COUNT; i++) {
    image_handles[i] = open_image(&images[i]);
    if (image_handles[i] == NULL)
      return fail(ERROR_LIBRARY, "a region's library cannot be loaded: %s", dlerror());
  }
  return OK;
}

static int resolve_imports(void) {
  void *handles[AT_LEAST_ONE(LIBRARY_COUNT)];
  void *image_handles[AT_LEAST_ONE(IMAGE_COUNT)];
  int status;
  if (PYTHON_REGION[0] != 0)
    return fail(ERROR_PYTHON, "region %s runs in Python; load this file with byoc_mlir.load",
                PYTHON_REGION);
  status = open_libraries(handles, image_handles);
  for (int i = 0; i < IMPORT_COUNT && status == OK; i++) {
    const import *wanted = &imports[i];
    void *address = NULL;
    if (wanted->image >= 0)
      address = dlsym(image_handles[wanted->image], wanted->function);
    for (int j = 0; wanted->image < 0 && j < LIBRARY_COUNT && address == NULL; j++)
      address = dlsym(handles[j], wanted->function);
    if (address == NULL && wanted->image < 0)
      address = dlsym(RTLD_DEFAULT, wanted->function);
    if (address == NULL)
      status = fail(ERROR_LIBRARY, "no library defines the function %s", wanted->function);
    byoc_imports[i] = address;
  }
  return status;
}

/* Says how often a waiting OpenMP thread spins, as byoc_mlir/runtime/system/spins.py does. */
static void set_spins(void) {
  long long spins = USUAL_SPINS;
  char text[24];
#ifdef __x86_64__
  enum { PAUSES = 2000, TRIES = 3 };
  double shortest = 1;
  for (int i = 0; i < TRIES; i++) {
    struct timespec start, end;
    double seconds;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int pause = 0; pause < PAUSES; pause++)
      __builtin_ia32_pause();
    clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    shortest = seconds < shortest ? seconds : shortest;
  }
  spins = llround(SPIN_SECONDS * PAUSES / shortest);
#endif
  snprintf(text, sizeof text, "%lld", spins);
  setenv("GOMP_SPINCOUNT", text, 0);
}

static int start(int threads) {
  int status = check_cpu();
  int64_t failure;
  if (threads < 0)
    return fail(ERROR_USAGE, "threads must not be negative, found %d", threads);
  if (getenv("OMP_WAIT_POLICY") == NULL && getenv("GOMP_SPINCOUNT") == NULL)
    set_spins();
  if (status == OK)
    status = resolve_imports();
  if (status != OK)
    return status;
  byoc_threads = threads > 0 ? threads : THREADS;
  memset(state, 0, sizeof state);
  failure = byoc_load(state);
  return failure == 0 ? OK : region_failure(ERROR_LOAD, "loading", failure);
}

EXPORTED int C_NAME(init)(int threads) {
  int status = OK;
  pthread_mutex_lock(&lock);
  if (users == 0)
    status = start(threads);
  if (status == OK)
    users++;
  pthread_mutex_unlock(&lock);
  return status;
}

static void destroy(context *one) {
  byoc_close(state, one->slots);
  free(one->memory);
  free(one);
}

EXPORTED void C_NAME(shutdown)(void) {
  pthread_mutex_lock(&lock);
  if (users > 0 && --users == 0) {
    while (free_contexts != NULL) {
      context *one = free_contexts;
      free_contexts = one->next;
      destroy(one);
    }
    byoc_unload(state);
  }
  pthread_mutex_unlock(&lock);
}

/* Checks the sizes of a call, and says how much memory it needs. */
static int check_sizes(const int64_t *sizes, long double *exact, size_t *arena_bytes) {
  long double bytes;
  for (int i = 0; i < SIZE_COUNT; i++) {
    if (sizes[i] < least_sizes[i] || sizes[i] > greatest_sizes[i])
      return fail(ERROR_SHAPE, "%s is %lld, accepted are %lld to %lld", size_names[i],
                  (long long)sizes[i], (long long)least_sizes[i], (long long)greatest_sizes[i]);
    exact[i] = sizes[i];
  }
  for (int i = 0; i < GUARD_COUNT; i++)
    if (!guard_holds(i, exact))
      return fail(ERROR_SHAPE, "the model was compiled for sizes of which %s", guard_texts[i]);
  bytes = arena_size(exact);
  if (bytes > MOST_BYTES)
    return fail(ERROR_MEMORY, "out of memory: a run needs %.0Lf bytes", bytes);
  *arena_bytes = (size_t)bytes;
  return OK;
}

/* Regions know the arena's address, so only one without regions may be made larger. */
static int reserve(context *one, size_t bytes) {
  if (one->memory != NULL && bytes <= one->arena_bytes)
    return OK;
  free(one->memory);
  one->arena_bytes = 0;
  one->memory = malloc(bytes + ARENA_ALIGNMENT);
  if (one->memory == NULL)
    return fail(ERROR_MEMORY, "out of memory: a run needs %lld bytes", (long long)bytes);
  one->arena_bytes = bytes;
  one->arena = (void *)(((uintptr_t)one->memory + ARENA_ALIGNMENT - 1) &
                        ~(uintptr_t)(ARENA_ALIGNMENT - 1));
  return OK;
}

/* With the lock held. */
static int make_context(context **made, size_t arena_bytes) {
  context *one = calloc(1, sizeof *one);
  int64_t failure;
  int status;
  *made = NULL;
  if (one == NULL)
    return fail(ERROR_MEMORY, "out of memory");
  status = reserve(one, arena_bytes);
  if (status != OK) {
    free(one);
    return status;
  }
  failure = byoc_open(state, one->slots, one->arena);
  if (failure == 0) {
    *made = one;
    return OK;
  }
  free(one->memory);
  free(one);
  return region_failure(ERROR_LOAD, "opening a context", failure);
}

static int lease(context **leased, size_t arena_bytes) {
  int status = OK;
  pthread_mutex_lock(&lock);
  if (users == 0) {
    status = fail(ERROR_USAGE, "init was not called");
  } else if (free_contexts != NULL) {
    *leased = free_contexts;
    free_contexts = free_contexts->next;
  } else {
    status = make_context(leased, arena_bytes);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static void give_back(context *one) {
  pthread_mutex_lock(&lock);
  one->next = free_contexts;
  free_contexts = one;
  pthread_mutex_unlock(&lock);
}

/* The shapes of the outputs for such sizes. */
static int shapes_for(const int64_t *sizes, int64_t *const *shapes) {
  long double exact[AT_LEAST_ONE(SIZE_COUNT)];
  size_t arena_bytes;
  int status = check_sizes(sizes, exact, &arena_bytes);
  if (status == OK)
    fill_shapes(exact, shapes);
  return status;
}

static int run_on(const int64_t *sizes, const void *const *inputs, void *const *outputs) {
  long double exact[AT_LEAST_ONE(SIZE_COUNT)];
  context *leased = NULL;
  size_t arena_bytes;
  int64_t failure;
  int status = check_sizes(sizes, exact, &arena_bytes);
  if (status == OK)
    status = lease(&leased, arena_bytes);
  if (status != OK)
    return status;
  status = reserve(leased, arena_bytes);
  failure = status == OK ? byoc_run(state, leased->slots, leased->arena, inputs, outputs) : 0;
  if (failure != 0)
    status = run_failure(leased, failure);
  give_back(leased);
  return status;
}

#ifdef PART_NAME
#include "part.h"
const part PART_NAME = {C_NAME(init), C_NAME(shutdown), C_NAME(error), shapes_for, run_on};
#else

#if SIZE_COUNT > 0
EXPORTED int C_NAME(shapes)(SHAPES_PARAMETERS) {
  const int64_t sizes[] = {SIZES};
  int64_t *const shapes[] = {SHAPES};
  return shapes_for(sizes, shapes);
}
#endif

EXPORTED int C_NAME(run)(RUN_PARAMETERS) {
  const int64_t sizes[] = {SIZES};
  const void *const inputs[] = {RUN_INPUTS};
  void *const outputs[] = {RUN_OUTPUTS};
  for (int i = HIDDEN_INPUTS; i < HIDDEN_INPUTS + INPUT_COUNT; i++)
    if (inputs[i] == NULL)
      return fail(ERROR_USAGE, "input %d is a null pointer", i - HIDDEN_INPUTS);
  for (int i = 0; i < OUTPUT_COUNT; i++)
    if (outputs[i] == NULL)
      return fail(ERROR_USAGE, "output %d is a null pointer", i);
  return run_on(sizes, inputs, outputs);
}
#endif
