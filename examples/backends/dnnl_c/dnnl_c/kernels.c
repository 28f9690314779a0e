/* Functions for whole ops on top of oneDNN's C API; the generated code calls them.
 * https://oneapi-src.github.io/oneDNN/v3.1/group_dnnl_api.html */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is used of dnnl.h, version 3. */
typedef struct { int arg; void *memory; } dnnl_exec_arg_t;
int dnnl_engine_create(void **engine, int kind, size_t index);
int dnnl_stream_create(void **stream, void *engine, unsigned flags);
int dnnl_stream_wait(void *stream);
int dnnl_memory_desc_create_with_tag(void **md, int rank, const int64_t *dims, int type, int tag);
int dnnl_memory_desc_destroy(void *md);
int dnnl_memory_create(void **memory, const void *md, void *engine, void *data);
int dnnl_memory_destroy(void *memory);
int dnnl_primitive_attr_create(void **attr);
int dnnl_primitive_attr_destroy(void *attr);
int dnnl_primitive_attr_set_post_ops(void *attr, const void *post_ops);
int dnnl_post_ops_create(void **post_ops);
int dnnl_post_ops_destroy(void *post_ops);
int dnnl_post_ops_append_eltwise(void *post_ops, int algorithm, float alpha, float beta);
int dnnl_primitive_create(void **primitive, const void *pd);
int dnnl_primitive_destroy(void *primitive);
int dnnl_primitive_desc_destroy(void *pd);
int dnnl_primitive_execute(const void *primitive, void *stream, int n, const dnnl_exec_arg_t *args);
int dnnl_convolution_forward_primitive_desc_create(
    void **pd, void *engine, int prop, int algorithm, const void *src, const void *weights,
    const void *bias, const void *dst, const int64_t *strides, const int64_t *dilates,
    const int64_t *padding_begin, const int64_t *padding_end, const void *attr);
int dnnl_inner_product_forward_primitive_desc_create(
    void **pd, void *engine, int prop, const void *src, const void *weights, const void *bias,
    const void *dst, const void *attr);
int dnnl_binary_primitive_desc_create(
    void **pd, void *engine, int algorithm, const void *src0, const void *src1, const void *dst,
    const void *attr);
int dnnl_eltwise_forward_primitive_desc_create(
    void **pd, void *engine, int prop, int algorithm, const void *src, const void *dst,
    float alpha, float beta, const void *attr);

/* Of the OpenMP runtime that libdnnl brings along: the linker need not find it. */
__attribute__((weak)) void GOMP_parallel(
    void (*body)(void *), void *data, unsigned threads, unsigned flags);

enum { F32 = 3, CPU = 1, IN_ORDER = 1, INFERENCE = 96, CONVOLUTION_AUTO = 3, RELU = 0x20 };
enum { SRC = 1, SRC_1 = 2, DST = 17, WEIGHTS = 33, BIAS = 41 };

static void *engine, *stream;
static int engine_status;
static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void create_engine(void) {
  engine_status = dnnl_engine_create(&engine, CPU, 0);
  if (!engine_status) engine_status = dnnl_stream_create(&stream, engine, IN_ORDER);
}

static int use_engine(void) {
  pthread_once(&engine_once, create_engine);
  return engine_status;
}

/* Row-major tensors: dnnl_a is 2, dnnl_ab 3, and so on. */
static int describe(void **md, int rank, const int64_t *dims) {
  return dnnl_memory_desc_create_with_tag(md, rank, dims, F32, rank + 1);
}

static void hold_on_thread(void *signals) { pthread_sigmask(SIG_BLOCK, signals, NULL); }

/* Signals wait, on this thread and OpenMP's: products may have the stack pointer elsewhere, see
 * docs/dev-notes/dnnl.md. Those that an instruction causes cannot wait. */
static sigset_t hold_signals(void) {
  const int caused[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  sigset_t held, before;
  sigfillset(&held);
  for (size_t i = 0; i < sizeof caused / sizeof *caused; ++i) sigdelset(&held, caused[i]);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  GOMP_parallel(hold_on_thread, &held, 0, 0);
  return before;
}

typedef struct { int role; void *md; const float *data; } operand;

/* Runs what `pd` describes and frees it. */
static int execute(void *pd, int count, const operand *operands) {
  dnnl_exec_arg_t args[4] = {{0}};
  void *primitive = NULL;
  int status = dnnl_primitive_create(&primitive, pd);
  for (int i = 0; i < count && !status; ++i) {
    args[i].arg = operands[i].role;
    status = dnnl_memory_create(&args[i].memory, operands[i].md, engine, (void *)operands[i].data);
  }
  sigset_t before = hold_signals();
  if (!status) status = dnnl_primitive_execute(primitive, stream, count, args);
  if (!status) status = dnnl_stream_wait(stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  for (int i = 0; i < count; ++i) dnnl_memory_destroy(args[i].memory);
  dnnl_primitive_destroy(primitive);
  dnnl_primitive_desc_destroy(pd);
  return status;
}

static int relu_after(void **attr) {
  void *chain = NULL;
  int status = dnnl_primitive_attr_create(attr);
  if (!status) status = dnnl_post_ops_create(&chain);
  if (!status) status = dnnl_post_ops_append_eltwise(chain, RELU, 0, 0);
  if (!status) status = dnnl_primitive_attr_set_post_ops(*attr, chain);
  dnnl_post_ops_destroy(chain);
  return status;
}

/* A convolution, or, without a window, an inner product. `bias` may be NULL.
 * window: strides, dilations less one, padding before, padding behind; two numbers each. */
static int product(const float *src, const float *weights, const float *bias, float *dst, int rank,
                   const int64_t *src_dims, const int64_t *weights_dims, const int64_t *dst_dims,
                   const int64_t *window, int with_relu) {
  void *src_md = NULL, *weights_md = NULL, *bias_md = NULL, *dst_md = NULL, *attr = NULL, *pd = NULL;
  int status = use_engine();
  if (!status) status = describe(&src_md, rank, src_dims);
  if (!status) status = describe(&weights_md, rank, weights_dims);
  if (!status) status = describe(&dst_md, rank, dst_dims);
  if (!status && bias) status = describe(&bias_md, 1, weights_dims);
  if (!status && with_relu) status = relu_after(&attr);
  if (!status && window)
    status = dnnl_convolution_forward_primitive_desc_create(
        &pd, engine, INFERENCE, CONVOLUTION_AUTO, src_md, weights_md, bias_md, dst_md, window,
        window + 2, window + 4, window + 6, attr);
  else if (!status)
    status = dnnl_inner_product_forward_primitive_desc_create(
        &pd, engine, INFERENCE, src_md, weights_md, bias_md, dst_md, attr);
  const operand operands[] = {
      {SRC, src_md, src}, {WEIGHTS, weights_md, weights}, {DST, dst_md, dst}, {BIAS, bias_md, bias}};
  if (!status) status = execute(pd, bias ? 4 : 3, operands);
  dnnl_memory_desc_destroy(src_md);
  dnnl_memory_desc_destroy(weights_md);
  dnnl_memory_desc_destroy(bias_md);
  dnnl_memory_desc_destroy(dst_md);
  dnnl_primitive_attr_destroy(attr);
  return status;
}

/* Both operands and the result have `count` elements. */
static int binary(int algorithm, const float *a, const float *b, float *dst, int64_t count) {
  void *md = NULL, *pd = NULL;
  int status = use_engine();
  if (!status) status = describe(&md, 1, &count);
  if (!status) status = dnnl_binary_primitive_desc_create(&pd, engine, algorithm, md, md, md, NULL);
  const operand operands[] = {{SRC, md, a}, {SRC_1, md, b}, {DST, md, dst}};
  if (!status) status = execute(pd, 3, operands);
  dnnl_memory_desc_destroy(md);
  return status;
}

static int eltwise(int algorithm, const float *src, float *dst, int64_t count) {
  void *md = NULL, *pd = NULL;
  int status = use_engine();
  if (!status) status = describe(&md, 1, &count);
  if (!status)
    status = dnnl_eltwise_forward_primitive_desc_create(
        &pd, engine, INFERENCE, algorithm, md, md, 0, 0, NULL);
  const operand operands[] = {{SRC, md, src}, {DST, md, dst}};
  if (!status) status = execute(pd, 2, operands);
  dnnl_memory_desc_destroy(md);
  return status;
}
