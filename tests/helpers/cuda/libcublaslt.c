// A recording libcublasLt.so.13 for tests. Descriptors are in the caller's memory; matmuls are
// computed naively when the stream of the recording driver is synchronised.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

enum { OK = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { F32 = 0, F16 = 2, BF16 = 14, COMPUTE_F32 = 68, COMPUTE_TF32 = 77 };
enum { NO_EPILOGUE = 1, RELU = 2, BIAS = 4, GELU = 32 };
#define ENTER() int fault = library_enter(__func__); if (fault) return fault

// Functions of the recording driver, which is loaded before.
int library_enter(const char *name);
int library_enqueue(void *stream, int (*run)(void *), const void *data, size_t bytes);
static int handles, tf32_calls;

int count_handles(void) { return handles; }
int count_tf32(void) { return tf32_calls; }

typedef struct { int magic, type; uint64_t rows, columns; int64_t ld; int count; int64_t stride; } layout;
typedef struct { int magic, compute, transposes[2], epilogue; const void *bias; } operation;
typedef struct { int magic; uint64_t workspace; int alignments[4]; } preference;
typedef struct { uint64_t mark, workspace, rest[6]; } algorithm;
typedef struct { algorithm chosen; size_t workspace; int state; float waves; int reserved[4]; } found;
enum { LAYOUT = 0x1a, OPERATION = 0x2b, PREFERENCE = 0x3c, ALGORITHM = 0x4d };

const char *cublasLtGetStatusString(int status) {
  switch (status) {
    case OK: return "success";
    case ALLOC_FAILED: return "cuBLAS: resource allocation failed";
    case INVALID_VALUE: return "cuBLAS: an unsupported value or parameter was passed";
    case NOT_SUPPORTED: return "cuBLAS: the requested functionality is not supported";
    default: return "cuBLAS: another failure";
  }
}
size_t cublasLtGetVersion(void) { return 130100; }
int cublasLtCreate(void **handle) { ENTER(); *handle = (void *)32; handles++; return OK; }
int cublasLtDestroy(void *handle) {
  ENTER();
  if (handle != (void *)32 || !handles) abort();
  handles--;
  return OK;
}
int cublasLtMatrixLayoutInit_internal(layout *made, size_t size, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  ENTER();
  if (size < 14 * 8) return ALLOC_FAILED;
  *made = (layout){LAYOUT, type, rows, columns, ld, 1, 0};
  return OK;
}
int cublasLtMatrixLayoutSetAttribute(layout *of, int attribute, const void *value, size_t size) {
  ENTER();
  if (of->magic != LAYOUT) return INVALID_VALUE;
  if (attribute == 5 && size == 4) memcpy(&of->count, value, size);
  else if (attribute == 6 && size == 8) memcpy(&of->stride, value, size);
  else return INVALID_VALUE;
  return OK;
}
int cublasLtMatmulDescInit_internal(operation *made, size_t size, int compute, int scale) {
  ENTER();
  if (size < 32 * 8) return ALLOC_FAILED;
  if (scale != F32) return INVALID_VALUE;
  *made = (operation){OPERATION, compute, {0, 0}, NO_EPILOGUE, 0};
  return OK;
}
int cublasLtMatmulDescSetAttribute(operation *of, int attribute, const void *value, size_t size) {
  ENTER();
  if (of->magic != OPERATION) return INVALID_VALUE;
  if (attribute == 3 && size == 4) memcpy(&of->transposes[0], value, size);
  else if (attribute == 4 && size == 4) memcpy(&of->transposes[1], value, size);
  else if (attribute == 7 && size == 4) memcpy(&of->epilogue, value, size);
  else if (attribute == 8 && size == 8) memcpy(&of->bias, value, size);
  else return INVALID_VALUE;
  return OK;
}
int cublasLtMatmulPreferenceInit_internal(preference *made, size_t size) {
  ENTER();
  if (size < 12 * 8) return ALLOC_FAILED;
  *made = (preference){PREFERENCE, 0, {256, 256, 256, 256}};
  return OK;
}
int cublasLtMatmulPreferenceSetAttribute(preference *of, int attribute, const void *value, size_t size) {
  ENTER();
  if (of->magic != PREFERENCE) return INVALID_VALUE;
  if (attribute == 1 && size == 8) memcpy(&of->workspace, value, size);
  else if (attribute >= 5 && attribute <= 8 && size == 4) memcpy(&of->alignments[attribute - 5], value, size);
  else return INVALID_VALUE;
  return OK;
}
// True if shapes and types fit each other: D[m, n] = op(A)[m, k] op(B)[k, n].
static int fits(const operation *o, const layout *a, const layout *b, const layout *d) {
  if (o->magic != OPERATION || a->magic != LAYOUT || b->magic != LAYOUT || d->magic != LAYOUT) return 0;
  uint64_t m = o->transposes[0] ? a->columns : a->rows, k = o->transposes[0] ? a->rows : a->columns;
  uint64_t kb = o->transposes[1] ? b->columns : b->rows, n = o->transposes[1] ? b->rows : b->columns;
  int halves = a->type == F16 || a->type == BF16;
  int types = a->type == b->type && (d->type == a->type || (halves && d->type == F32));
  int computes = o->compute == COMPUTE_F32 || (o->compute == COMPUTE_TF32 && a->type == F32);
  int counts = a->count == b->count && a->count == d->count;
  return m == d->rows && n == d->columns && k == kb && types && computes && counts && !(o->epilogue != NO_EPILOGUE && d->count > 1);
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, operation *o, layout *a, layout *b, layout *c, layout *d,
                                   preference *p, int wanted, found *into, int *count) {
  ENTER();
  *count = 0;
  if (handle != (void *)32 || p->magic != PREFERENCE || wanted < 1 || !fits(o, a, b, d) || c != d) return INVALID_VALUE;
  for (int n = 0; n < 4; n++) if (p->alignments[n] != 16) return INVALID_VALUE;
  if ((o->epilogue & BIAS) && ((uintptr_t)o->bias % 16 || !o->bias)) return INVALID_VALUE;
  if (getenv("BYOC_TEST_NO_ALGORITHM")) return OK;
  memset(into, 0, sizeof *into);
  into->chosen.mark = ALGORITHM;
  into->chosen.workspace = into->workspace = p->workspace;
  *count = 1;
  return OK;
}

typedef struct {
  operation o; layout a, b, d;
  const char *at_a, *at_b;
  char *at_d, *workspace;
  size_t bytes;
} job;
static float widened(const char *base, int type, uint64_t index) {
  if (type == F32) return ((const float *)base)[index];
  if (type == F16) return ((const _Float16 *)base)[index];
  uint32_t bits = (uint32_t)((const uint16_t *)base)[index] << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
static void put(char *base, int type, uint64_t index, float value) {
  if (type == F32) { ((float *)base)[index] = value; return; }
  if (type == F16) { ((_Float16 *)base)[index] = value; return; }
  uint32_t bits;
  memcpy(&bits, &value, 4);
  ((uint16_t *)base)[index] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static float as_tf32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&value, &bits, 4);
  return value;
}
static float after(int epilogue, float x) {
  if (epilogue & RELU) return x > 0 ? x : 0;
  if (epilogue & GELU) return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
  return x;
}
static int multiply(void *data) {
  job *j = data;
  uint64_t m = j->d.rows, n = j->d.columns, k = j->o.transposes[0] ? j->a.rows : j->a.columns;
  int rounds = j->o.compute == COMPUTE_TF32;
  memset(j->workspace, 0xff, j->bytes);  // the workspace is the matmul's own
  float *left = malloc(m * k * 4), *right = malloc(k * n * 4);
  for (int entry = 0; entry < j->d.count; entry++) {
    for (uint64_t row = 0; row < m; row++)
      for (uint64_t step = 0; step < k; step++)
        left[row * k + step] = widened(j->at_a, j->a.type, entry * j->a.stride + (j->o.transposes[0] ? step + row * j->a.ld : row + step * j->a.ld));
    for (uint64_t column = 0; column < n; column++)
      for (uint64_t step = 0; step < k; step++)
        right[column * k + step] = widened(j->at_b, j->b.type, entry * j->b.stride + (j->o.transposes[1] ? column + step * j->b.ld : step + column * j->b.ld));
    for (uint64_t i = 0; rounds && i < m * k; i++) left[i] = as_tf32(left[i]);
    for (uint64_t i = 0; rounds && i < k * n; i++) right[i] = as_tf32(right[i]);
    for (uint64_t column = 0; column < n; column++)
      for (uint64_t row = 0; row < m; row++) {
        float sum = 0;
        for (uint64_t step = 0; step < k; step++) sum += left[row * k + step] * right[column * k + step];
        if (j->o.epilogue & BIAS) sum += widened(j->o.bias, j->d.type, row);
        put(j->at_d, j->d.type, entry * j->d.stride + row + column * j->d.ld, after(j->o.epilogue, sum));
      }
  }
  free(left);
  free(right);
  return OK;
}
int cublasLtMatmul(void *handle, operation *o, const float *alpha, const char *a, layout *at_a, const char *b,
                   layout *at_b, const float *beta, const char *c, layout *at_c, char *d, layout *at_d,
                   const algorithm *chosen, char *workspace, size_t bytes, void *stream) {
  ENTER();
  if (handle != (void *)32 || chosen->mark != ALGORITHM || bytes < chosen->workspace) return INVALID_VALUE;
  if (*alpha != 1 || *beta != 0 || c != d || at_c != at_d || !fits(o, at_a, at_b, at_d)) return INVALID_VALUE;
  if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)d | (uintptr_t)workspace) % 16) return INVALID_VALUE;
  tf32_calls += o->compute == COMPUTE_TF32;
  job made = {*o, *at_a, *at_b, *at_d, a, b, d, workspace, bytes};
  return library_enqueue(stream, multiply, &made, sizeof made);
}
