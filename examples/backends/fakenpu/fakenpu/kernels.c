/* Kernels of the device, which the driver runs on a queue's thread, and the functions that enqueue
 * them. */
#include "fakenpu.h"

#include <math.h>

static int run_dense(void *const *memory, const int64_t *sizes) {
  const float *const data = memory[0], *const weight = memory[1], *const bias = memory[2];
  float *const out = memory[3];
  const int64_t M = sizes[0], N = sizes[1], K = sizes[2], relu = sizes[3];
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j) {
      float sum = bias ? bias[j] : 0.0f;
      for (int64_t k = 0; k < K; ++k) sum += data[i * K + k] * weight[j * K + k];
      out[i * N + j] = relu && sum < 0.0f ? 0.0f : sum;
    }
  return 0;
}

int32_t API(dense)(void *queue, const float *data, const float *weight, const float *bias,
                   float *out, int64_t M, int64_t N, int64_t K, int64_t relu) {
  void *const memory[] = {(void *)data, (void *)weight, (void *)bias, out};
  return API(launch)(queue, run_dense, memory, 4, (int64_t[]){M, N, K, relu}, 4);
}

struct window {
  int64_t KH, KW, SY, SX, DY, DX, PY, PX;
};

/* The row or column of a tap: negative, or the size and more, in the padding. */
static int64_t row_of(const struct window *w, int64_t y, int64_t tap) {
  return y * w->SY + tap * w->DY - w->PY;
}

static int64_t column_of(const struct window *w, int64_t x, int64_t tap) {
  return x * w->SX + tap * w->DX - w->PX;
}

struct conv2d {
  int64_t N, C, H, W, O, OH, OW;
  struct window window;
  int64_t relu;
};

static void add_row(const struct conv2d *p, const float *row, const float *taps, float *sums) {
  for (int64_t tap = 0; tap < p->window.KW; ++tap)
    for (int64_t x = 0; x < p->OW; ++x) {
      const int64_t column = column_of(&p->window, x, tap);
      if (column >= 0 && column < p->W) sums[x] += row[column] * taps[tap];
    }
}

static void conv2d_row(const struct conv2d *p, const float *image, const float *weight, int64_t y,
                       float *sums) {
  const int64_t KH = p->window.KH, KW = p->window.KW;
  for (int64_t c = 0; c < p->C; ++c)
    for (int64_t tap = 0; tap < KH; ++tap) {
      const int64_t row = row_of(&p->window, y, tap);
      if (row >= 0 && row < p->H)
        add_row(p, image + (c * p->H + row) * p->W, weight + (c * KH + tap) * KW, sums);
    }
}

static int run_conv2d(void *const *memory, const int64_t *sizes) {
  const struct conv2d *const p = (const struct conv2d *)sizes;
  const float *const data = memory[0], *const weight = memory[1], *const bias = memory[2];
  const int64_t image = p->C * p->H * p->W, filter = p->C * p->window.KH * p->window.KW;
  for (int64_t n = 0; n < p->N; ++n)
    for (int64_t o = 0; o < p->O; ++o)
      for (int64_t y = 0; y < p->OH; ++y) {
        float *const sums = (float *)memory[3] + ((n * p->O + o) * p->OH + y) * p->OW;
        for (int64_t x = 0; x < p->OW; ++x) sums[x] = bias ? bias[o] : 0.0f;
        conv2d_row(p, data + n * image, weight + o * filter, y, sums);
        for (int64_t x = 0; p->relu && x < p->OW; ++x) sums[x] = sums[x] < 0.0f ? 0.0f : sums[x];
      }
  return 0;
}

int32_t API(conv2d)(void *queue, const float *data, const float *weight, const float *bias,
                    float *out, int64_t N, int64_t C, int64_t H, int64_t W, int64_t O, int64_t OH,
                    int64_t OW, int64_t KH, int64_t KW, int64_t SY, int64_t SX, int64_t DY,
                    int64_t DX, int64_t PY, int64_t PX, int64_t relu) {
  void *const memory[] = {(void *)data, (void *)weight, (void *)bias, out};
  const int64_t sizes[] = {N, C, H, W, O, OH, OW, KH, KW, SY, SX, DY, DX, PY, PX, relu};
  return API(launch)(queue, run_conv2d, memory, 4, sizes, 16);
}

struct pool2d {
  int64_t N, H, W, OH, OW;
  struct window window;
};

static float maximum(const struct pool2d *p, const float *image, int64_t y, int64_t x) {
  float found = -INFINITY;
  for (int64_t i = 0; i < p->window.KH; ++i)
    for (int64_t j = 0; j < p->window.KW; ++j) {
      const int64_t row = row_of(&p->window, y, i), column = column_of(&p->window, x, j);
      if (row < 0 || row >= p->H || column < 0 || column >= p->W) continue;
      const float value = image[row * p->W + column];
      if (!(value <= found)) found = value;
    }
  return found;
}

static int run_max_pool2d(void *const *memory, const int64_t *sizes) {
  const struct pool2d *const p = (const struct pool2d *)sizes;
  const float *const data = memory[0];
  float *out = memory[1];
  for (int64_t n = 0; n < p->N; ++n)
    for (int64_t y = 0; y < p->OH; ++y)
      for (int64_t x = 0; x < p->OW; ++x) *out++ = maximum(p, data + n * p->H * p->W, y, x);
  return 0;
}

int32_t API(max_pool2d)(void *queue, const float *data, float *out, int64_t N, int64_t H, int64_t W,
                        int64_t OH, int64_t OW, int64_t KH, int64_t KW, int64_t SY, int64_t SX,
                        int64_t DY, int64_t DX, int64_t PY, int64_t PX) {
  const int64_t sizes[] = {N, H, W, OH, OW, KH, KW, SY, SX, DY, DX, PY, PX};
  return API(launch)(queue, run_max_pool2d, (void *[]){(void *)data, out}, 2, sizes, 13);
}

static int run_average(void *const *memory, const int64_t *sizes) {
  const float *data = memory[0];
  float *const out = memory[1];
  for (int64_t i = 0; i < sizes[0]; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < sizes[1]; ++j) sum += *data++;
    out[i] = sum / sizes[1];
  }
  return 0;
}

int32_t API(average)(void *queue, const float *data, float *out, int64_t outer, int64_t inner) {
  void *const memory[] = {(void *)data, out};
  return API(launch)(queue, run_average, memory, 2, (int64_t[]){outer, inner}, 2);
}

static int run_bias_add(void *const *memory, const int64_t *sizes) {
  const float *const data = memory[0], *const bias = memory[1];
  float *const out = memory[2];
  const int64_t outer = sizes[0], channels = sizes[1], inner = sizes[2];
  for (int64_t i = 0; i < outer * channels * inner; ++i)
    out[i] = data[i] + bias[i / inner % channels];
  return 0;
}

int32_t API(bias_add)(void *queue, const float *data, const float *bias, float *out, int64_t outer,
                      int64_t channels, int64_t inner) {
  void *const memory[] = {(void *)data, (void *)bias, out};
  return API(launch)(queue, run_bias_add, memory, 3, (int64_t[]){outer, channels, inner}, 3);
}

#define BINARY(name, operator)                                                                   \
  static int run_##name(void *const *memory, const int64_t *sizes) {                             \
    const float *const a = memory[0], *const b = memory[1];                                      \
    float *const out = memory[2];                                                                \
    for (int64_t i = 0; i < sizes[0]; ++i) out[i] = a[i] operator b[i];                          \
    return 0;                                                                                    \
  }                                                                                              \
  int32_t API(name)(void *queue, const float *a, const float *b, float *out, int64_t count) {    \
    return API(launch)(queue, run_##name, (void *[]){(void *)a, (void *)b, out}, 3, &count, 1);  \
  }

BINARY(add, +)
BINARY(multiply, *)

#define UNARY(name, expression)                                                                  \
  static int run_##name(void *const *memory, const int64_t *sizes) {                             \
    const float *const a = memory[0];                                                            \
    float *const out = memory[1];                                                                \
    for (int64_t i = 0; i < sizes[0]; ++i) out[i] = (expression);                                \
    return 0;                                                                                    \
  }                                                                                              \
  int32_t API(name)(void *queue, const float *a, float *out, int64_t count) {                    \
    return API(launch)(queue, run_##name, (void *[]){(void *)a, out}, 2, &count, 1);             \
  }

UNARY(relu, a[i] < 0.0f ? 0.0f : a[i])
UNARY(copy, a[i])
