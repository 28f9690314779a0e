// A recording libcudnn.so.9 for tests. It plans convolutions with what follows them as cuDNN's
// precompiled engines do: residual, bias, relu in this order, and none of them without a bias.
// A plan holds its graph as numbers. It is computed naively when the stream of the recording driver
// is synchronised; its workspace is overwritten before.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, VERSION_MISMATCH = 1002, BAD_PARAM = 2000, MISALIGNED = 2003, NOT_FINALIZED = 2004,
       BAD_TYPE = 2010, NOT_SUPPORTED = 3001, NO_MEMORY = 4004, FAILED = 5000 };
enum { POINTWISE = 0, CONVOLUTION = 1, ENGINE = 2, CONFIGURATION = 3, HEURISTICS = 4, PLAN = 5,
       FORWARD = 10, BACKWARD = 12, OPERATION = 13, GRAPH = 15, PACK = 16, TENSOR = 17, DEVICE = 38 };
enum { F32 = 0, F16 = 2, INT64 = 3, POINTER = 6, DESCRIPTOR = 15, CHAR = 24, ADD = 0, RELU = 100 };
enum { MODE_A = 3, TENSOR_CORES = 7, AT_RUN_TIME = 8, PRECISE = 9 };
#define ENTER() int fault = library_enter(__func__); if (fault) return fault

// Functions of the recording driver, which is loaded before.
int library_enter(const char *name);
int library_enqueue(void *stream, int (*run)(void *), const void *data, size_t bytes);
static int handles, descriptors;

void count_cudnn(int *into) { into[0] = handles; into[1] = descriptors; }

// ---- statuses and handles

const char *cudnnGetErrorString(int status) {
  switch (status) {
    case OK: return "CUDNN_STATUS_SUCCESS";
    case VERSION_MISMATCH: return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH";
    case MISALIGNED: return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
    case NO_MEMORY: return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return status / 1000 == 2 ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_UNKNOWN";
  }
}
void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "recorded"); }
size_t cudnnGetVersion(void) {
  const char *chosen = getenv("BYOC_TEST_CUDNN_VERSION");
  return chosen ? atoi(chosen) : 91900;
}

typedef struct { int magic; void *stream; } handle;
enum { LIVE = 0x51 };

int cudnnCreate(handle **out) {
  ENTER();
  *out = malloc(sizeof **out);
  **out = (handle){LIVE, 0};
  __sync_fetch_and_add(&handles, 1);
  return OK;
}
int cudnnDestroy(handle *h) {
  ENTER();
  if (h->magic != LIVE) abort();
  h->magic = 0;
  free(h);
  __sync_fetch_and_sub(&handles, 1);
  return OK;
}
int cudnnSetStream(handle *h, void *stream) {
  ENTER();
  if (h->magic != LIVE) abort();
  h->stream = stream;
  return OK;
}

// ---- descriptors: attributes by number

typedef struct attribute { struct attribute *next; int number, type; int64_t count; char *values; } attribute;

// A fused convolution with three spatial dimensions; tensors by role: data, weight, result.
typedef struct {
  int64_t type, transposed, sizes[3][5], strides[3], before[3], after[3], dilations[3];
  int64_t residual, bias, relu, numbers[5], engine, workspace;
} graph;
enum { DATA, WEIGHT, RESULT, BIAS, RESIDUAL };
enum { GRAPH_WORDS = sizeof(graph) / sizeof(int64_t) };

typedef struct { int magic, kind, finalized; attribute *attributes; graph graph; char *json; } descriptor;
enum { DESCRIBED = 0x62 };

static size_t size_of(int type) {
  if (type == CHAR || type == 2) return 1;
  return type == 0 || type == INT64 || type == POINTER || type == DESCRIPTOR ? 8 : 4;
}
static attribute *found(descriptor *d, int number) {
  for (attribute *a = d->attributes; a; a = a->next) if (a->number == number) return a;
  return 0;
}
static int64_t integer(descriptor *d, int number, int64_t otherwise) {
  attribute *a = found(d, number);
  if (!a) return otherwise;
  return size_of(a->type) == 8 ? *(int64_t *)a->values : *(int *)a->values;
}
static descriptor *inner(descriptor *d, int number) {
  attribute *a = found(d, number);
  return a ? *(descriptor **)a->values : 0;
}
int cudnnBackendCreateDescriptor(int kind, descriptor **out) {
  ENTER();
  *out = calloc(1, sizeof **out);
  (*out)->magic = DESCRIBED;
  (*out)->kind = kind;
  __sync_fetch_and_add(&descriptors, 1);
  return OK;
}
int cudnnBackendDestroyDescriptor(descriptor *d) {
  ENTER();
  if (d->magic != DESCRIBED) abort();
  for (attribute *a = d->attributes, *next; a; a = next) next = a->next, free(a->values), free(a);
  free(d->json);
  d->magic = 0;
  free(d);
  __sync_fetch_and_sub(&descriptors, 1);
  return OK;
}
int cudnnBackendSetAttribute(descriptor *d, int number, int type, int64_t count, const void *values) {
  ENTER();
  if (d->magic != DESCRIBED || d->finalized || count < 1) return BAD_PARAM;
  for (int64_t n = 0; type == DESCRIPTOR && n < count; n++) {
    descriptor *one = ((descriptor *const *)values)[n];
    if (one->magic != DESCRIBED || !one->finalized) return NOT_FINALIZED;
  }
  attribute *made = malloc(sizeof *made);
  *made = (attribute){d->attributes, number, type, count, malloc(count * size_of(type) + 1)};
  memcpy(made->values, values, count * size_of(type));
  made->values[count * size_of(type)] = 0;
  d->attributes = made;
  return OK;
}

// ---- graphs

static int read_tensor(const graph *g, descriptor *d, int64_t *sizes, int64_t *number, int is_virtual) {
  attribute *dims = found(d, 902), *strides = found(d, 903), *flag = found(d, 907);
  if (d->kind != TENSOR || !dims || !strides || dims->count != strides->count || !flag) return BAD_PARAM;
  if (flag->values[0] != is_virtual || integer(d, 901, -1) != (is_virtual ? F32 : g->type)) return BAD_TYPE;
  if (!is_virtual && integer(d, 900, 0) != 16) return MISALIGNED;
  int rank = dims->count, missing = 5 - rank;
  if (rank < 4 || rank > 5) return NOT_SUPPORTED;
  int64_t *given = (int64_t *)dims->values, dense = 1;
  for (int n = rank - 1; n >= 0; n--) {
    if (((int64_t *)strides->values)[n] != dense) return BAD_PARAM;
    dense *= given[n];
  }
  for (int n = 0; n < 5; n++) sizes[n] = n < 2 ? given[n] : n < 2 + missing ? 1 : given[n - missing];
  *number = integer(d, 906, -1);
  return OK;
}
static int read_window(graph *g, descriptor *d) {
  static const int numbers[] = {103, 105, 104, 102};
  int64_t *into[] = {g->strides, g->before, g->after, g->dilations};
  int64_t rank = integer(d, 106, 0);
  if (d->kind != CONVOLUTION || integer(d, 100, -1) != F32 || integer(d, 101, -1) != 1) return BAD_PARAM;
  for (int list = 0; list < 4; list++) {
    attribute *a = found(d, numbers[list]);
    if (!a || a->count != rank || rank < 2 || rank > 3) return BAD_PARAM;
    for (int n = 0; n < 3; n++) into[list][n] = list == 0 || list == 3;
    memcpy(into[list] + 3 - rank, a->values, rank * sizeof(int64_t));
  }
  return OK;
}
// Checks that the convolution from `large` to `small` has these sizes.
static int fits(const graph *g) {
  const int64_t *large = g->sizes[g->transposed ? RESULT : DATA], *w = g->sizes[WEIGHT];
  const int64_t *small = g->sizes[g->transposed ? DATA : RESULT];
  if (large[0] != small[0] || w[0] != small[1] || large[1] % w[1] || w[0] % (large[1] / w[1])) return 0;
  for (int n = 0; n < 3; n++) {
    int64_t extent = (w[n + 2] - 1) * g->dilations[n] + 1;
    int64_t span = large[n + 2] + g->before[n] + g->after[n] - extent;
    if (span < 0 || span / g->strides[n] + 1 != small[n + 2]) return 0;
  }
  return 1;
}
static int read_graph(graph *g, descriptor *d) {
  attribute *list = found(d, 801);
  if (!list) return BAD_PARAM;
  descriptor **ops = (descriptor **)list->values, *first = ops[0];
  int base = first->kind == BACKWARD ? 706 : 700, is_last, status;
  *g = (graph){.transposed = first->kind == BACKWARD};
  if (first->kind != FORWARD && first->kind != BACKWARD) return NOT_SUPPORTED;
  descriptor *tensors[] = {inner(first, g->transposed ? 711 : 704), inner(first, base + 3), inner(first, g->transposed ? 710 : 705)};
  descriptor *window = inner(first, base + 2);
  if (!window || !tensors[0] || !tensors[1] || !tensors[2] || !found(first, base) || !found(first, base + 1)) return BAD_PARAM;
  g->type = integer(tensors[0], 901, -1);
  if (g->type != F32 && g->type != F16) return BAD_TYPE;
  if ((status = read_window(g, window))) return status;
  for (int n = 0; n < 3; n++)
    if ((status = read_tensor(g, tensors[n], g->sizes[n], &g->numbers[n], n == 2 && list->count > 1))) return status;
  if (!fits(g)) return BAD_PARAM;
  descriptor *value = tensors[2];
  for (int n = 1; n < list->count; n++) {
    descriptor *function = inner(ops[n], 750), *operand = inner(ops[n], 752), *y = inner(ops[n], 753);
    int64_t sizes[5], number, ignored[5];
    if (ops[n]->kind != OPERATION || !function || !y || inner(ops[n], 751) != value || integer(function, 1, -1) != F32) return BAD_PARAM;
    is_last = n + 1 == list->count;
    if ((status = read_tensor(g, y, ignored, &g->numbers[RESULT], !is_last))) return status;
    if (memcmp(ignored, g->sizes[RESULT], sizeof ignored)) return BAD_PARAM;
    int mode = integer(function, 0, -1);
    if (mode == RELU && !operand && !g->relu) g->relu = 1;
    else if (mode == ADD && operand && !g->bias && !g->relu) {
      if ((status = read_tensor(g, operand, sizes, &number, 0))) return status;
      int is_residual = !memcmp(sizes, g->sizes[RESULT], sizeof sizes) && !g->residual && n + 1 < list->count;
      if (is_residual) g->residual = 1, g->numbers[RESIDUAL] = number;
      else if (sizes[0] != 1 || sizes[1] != g->sizes[RESULT][1] || sizes[2] * sizes[3] * sizes[4] != 1) return NOT_SUPPORTED;
      else g->bias = 1, g->numbers[BIAS] = number;
    } else return NOT_SUPPORTED;
    value = y;
  }
  return OK;
}

// ---- plans

static char *written(const graph *g) {
  char *text = malloc(64 + GRAPH_WORDS * 24);
  int used = sprintf(text, "{\"cudnnVersion\":%zu,\"graph\":[", cudnnGetVersion());
  for (int n = 0; n < GRAPH_WORDS; n++)
    used += sprintf(text + used, "%s%lld", n ? "," : "", (long long)((const int64_t *)g)[n]);
  sprintf(text + used, "]}");
  return text;
}
static int read_plan(graph *g, const char *text) {
  size_t version;
  int used = 0;
  if (sscanf(text, "{\"cudnnVersion\":%zu,\"graph\":[%n", &version, &used) != 1 || !used) return BAD_PARAM;
  if (version != cudnnGetVersion()) return VERSION_MISMATCH;
  for (int n = 0; n < GRAPH_WORDS; n++) {
    char *end;
    ((int64_t *)g)[n] = strtoll(text + used, &end, 10);
    if (end == text + used || *end != (n + 1 < GRAPH_WORDS ? ',' : ']')) return BAD_PARAM;
    used = end + 1 - text;
  }
  return OK;
}
int cudnnBackendFinalize(descriptor *d) {
  ENTER();
  if (d->magic != DESCRIBED || d->finalized) return BAD_PARAM;
  int status = OK;
  switch (d->kind) {
    case GRAPH: status = read_graph(&d->graph, d); break;
    case DEVICE: status = found(d, 2700) || found(d, 2702) ? OK : BAD_PARAM; break;
    case HEURISTICS:
      if (!inner(d, 201) || !inner(d, 204) || !found(d, 200)) return BAD_PARAM;
      d->graph = inner(d, 201)->graph;
      if ((d->graph.residual || d->graph.relu) && !d->graph.bias) status = NOT_SUPPORTED;
      break;
    case PLAN:
      if (found(d, 405)) {
        handle *h = (handle *)inner(d, 400);
        if (!h || h->magic != LIVE) return BAD_PARAM;
        status = read_plan(&d->graph, found(d, 405)->values);
      } else if (!inner(d, 401) || !inner(d, 407)) status = BAD_PARAM;
      else d->graph = inner(d, 401)->graph, d->json = written(&d->graph);
      break;
    case PACK: status = found(d, 1000) && found(d, 1001) && found(d, 1003) ? OK : BAD_PARAM; break;
  }
  d->finalized = status == OK;
  return status;
}

// ---- answers

static int engines_of(descriptor *d) { return integer(d, 200, -1) == MODE_A && !getenv("BYOC_TEST_NO_ENGINE") ? 3 : 0; }
static int give(descriptor *d, const void *values, int64_t count, int type, int64_t most, int64_t *told, void *into) {
  *told = count;
  memcpy(into, values, (count < most ? count : most) * size_of(type));
  return OK;
}
int cudnnBackendGetAttribute(descriptor *d, int number, int type, int64_t most, int64_t *count, void *into) {
  ENTER();
  int engine = d->graph.engine, none[1] = {0};
  static const char *gpu = "{\"deviceName\":\"Recording GPU\"}";
  switch (number) {
    case 202:
      *count = engines_of(d);
      for (int n = 0; n < *count && n < most; n++) {
        descriptor *configuration = ((descriptor **)into)[n];
        configuration->graph = d->graph;
        configuration->graph.engine = TENSOR_CORES + n;
        configuration->graph.workspace = 4096 * n;
        configuration->finalized = 1;
      }
      return OK;
    case 300: (*(descriptor **)into)->graph = d->graph; *count = 1; return OK;
    case 1301: return give(d, &d->graph.engine, 1, type, most, count, into);
    case 1303: return give(d, none, engine == TENSOR_CORES, type, most, count, into);
    case 1305: return give(d, none, engine == AT_RUN_TIME, type, most, count, into);
    case 402: return give(d, &d->graph.workspace, 1, type, most, count, into);
    case 405: return give(d, d->json, strlen(d->json), type, most, count, into);
    case 2702: return give(d, gpu, strlen(gpu), type, most, count, into);
    default: return BAD_PARAM;
  }
}

// ---- runs

typedef struct { graph graph; char *at[5], *workspace; } job;

static float get(const char *base, int64_t type, int64_t index) {
  return type == F32 ? ((const float *)base)[index] : ((const _Float16 *)base)[index];
}
static void put(char *base, int64_t type, int64_t index, float value) {
  if (type == F32) ((float *)base)[index] = value;
  else ((_Float16 *)base)[index] = value;
}
static int64_t index_of(const int64_t *sizes, int64_t n, int64_t c, const int64_t *at) {
  return (((n * sizes[1] + c) * sizes[2] + at[0]) * sizes[3] + at[1]) * sizes[4] + at[2];
}
// Sums over the taps of one element of the result, from channel `c` of the data.
static float over_taps(const job *j, int64_t n, int64_t c, int64_t w0, int64_t w1, const int64_t *at) {
  const graph *g = &j->graph;
  const int64_t *sizes = g->sizes[DATA], *window = g->sizes[WEIGHT];
  float sum = 0;
  int64_t tap[3], from[3];
  for (tap[0] = 0; tap[0] < window[2]; tap[0]++)
    for (tap[1] = 0; tap[1] < window[3]; tap[1]++)
      for (tap[2] = 0; tap[2] < window[4]; tap[2]++) {
        int inside = 1;
        for (int d = 0; d < 3; d++) {
          int64_t shift = tap[d] * g->dilations[d] - g->before[d];
          from[d] = g->transposed ? at[d] - shift : at[d] * g->strides[d] + shift;
          if (g->transposed) inside &= from[d] % g->strides[d] == 0, from[d] /= g->strides[d];
          inside &= from[d] >= 0 && from[d] < sizes[d + 2];
        }
        if (inside) sum += get(j->at[DATA], g->type, index_of(sizes, n, c, from)) * get(j->at[WEIGHT], g->type, index_of(window, w0, w1, tap));
      }
  return sum;
}
static float element(const job *j, int64_t n, int64_t channel, const int64_t *at) {
  const graph *g = &j->graph;
  const int64_t *window = g->sizes[WEIGHT];
  int64_t groups = g->sizes[g->transposed ? RESULT : DATA][1] / window[1];
  int64_t own = g->transposed ? window[1] : window[0] / groups, others = g->transposed ? window[0] / groups : window[1];
  int64_t group = channel / own;
  float sum = 0;
  for (int64_t c = 0; c < others; c++) {
    int64_t other = group * others + c;
    sum += g->transposed ? over_taps(j, n, other, other, channel % own, at) : over_taps(j, n, other, channel, c, at);
  }
  int64_t index = index_of(g->sizes[RESULT], n, channel, at);
  if (g->residual) sum += get(j->at[RESIDUAL], g->type, index);
  if (g->bias) sum += get(j->at[BIAS], g->type, channel);
  return g->relu && sum < 0 ? 0 : sum;
}
static int convolve(void *data) {
  const job *j = data;
  const graph *g = &j->graph;
  const int64_t *sizes = g->sizes[RESULT];
  int64_t at[3];
  memset(j->workspace, 0xff, g->workspace);
  for (int64_t n = 0; n < sizes[0]; n++)
    for (int64_t c = 0; c < sizes[1]; c++)
      for (at[0] = 0; at[0] < sizes[2]; at[0]++)
        for (at[1] = 0; at[1] < sizes[3]; at[1]++)
          for (at[2] = 0; at[2] < sizes[4]; at[2]++)
            put(j->at[RESULT], g->type, index_of(sizes, n, c, at), element(j, n, c, at));
  return OK;
}
int cudnnBackendExecute(handle *h, descriptor *plan, descriptor *pack) {
  ENTER();
  if (h->magic != LIVE || !h->stream || plan->magic != DESCRIBED || !plan->finalized || !pack->finalized) return BAD_PARAM;
  attribute *numbers = found(pack, 1000), *pointers = found(pack, 1001);
  job made = {.graph = plan->graph, .workspace = (char *)inner(pack, 1003)};
  int needed[] = {1, 1, 1, plan->graph.bias, plan->graph.residual}, given = 0;
  if (numbers->count != pointers->count) return BAD_PARAM;
  for (int role = 0; role < 5; role++) {
    for (int64_t n = 0; needed[role] && n < numbers->count; n++)
      if (((int64_t *)numbers->values)[n] == plan->graph.numbers[role]) made.at[role] = ((char **)pointers->values)[n], given++;
    if (needed[role] && !made.at[role]) return BAD_PARAM;
    if ((uintptr_t)made.at[role] % 16) return MISALIGNED;
  }
  if (given != numbers->count || (plan->graph.workspace && !made.workspace)) return BAD_PARAM;
  return library_enqueue(h->stream, convolve, &made, sizeof made) ? FAILED : OK;
}
