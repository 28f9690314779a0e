/* Functions of the device and of its kernels. `DEVICE` is the prefix of their names: the same source
 * makes a second device. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef DEVICE
#define DEVICE fakenpu
#endif
#define JOINED_(prefix, name) prefix##_##name
#define JOINED(prefix, name) JOINED_(prefix, name)
#define API(name) JOINED(DEVICE, name)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

/* The contract of a device: 0 is success. */
int32_t API(open)(void **queue);
void API(close)(void *queue);
int32_t API(allocate)(int64_t bytes, void **memory);
void API(free)(void *memory);
int32_t API(copy_in)(void *queue, void *device, const void *host, int64_t bytes);
int32_t API(copy_out)(void *queue, void *host, const void *device, int64_t bytes);
int32_t API(wait)(void *queue);
const char *API(message)(int32_t status);
const char *API(identity)(void);

/* A kernel gets memory in the device's own addresses, and returns 0 or a failure. */
typedef int (*kernel)(void *const *memory, const int64_t *sizes);

/* Enqueues a kernel; both arrays are copied. NULL stays NULL. */
int32_t API(launch)(void *queue, kernel run, void *const *memory, int32_t memories,
                    const int64_t *sizes, int32_t count);
/* Frees memory when all that was enqueued before is done. */
int32_t API(release)(void *queue, void *memory);

/* Kernels of the device: memory first, then sizes. `bias` may be NULL; `relu` is 1 or 0.
 * dense: data [M, K], weight [N, K], bias [N], out [M, N]
 * conv2d: data [N, C, H, W], weight [O, C, KH, KW], bias [O], out [N, O, OH, OW]
 * max_pool2d: data [N, H, W], out [N, OH, OW]
 * average: data [outer, inner], out [outer]
 * bias_add: data and out [outer, channels, inner]
 * S, D, P: strides, dilations, padding at the begin */
int32_t API(dense)(void *queue, const float *data, const float *weight, const float *bias,
                   float *out, int64_t M, int64_t N, int64_t K, int64_t relu);
int32_t API(conv2d)(void *queue, const float *data, const float *weight, const float *bias,
                    float *out, int64_t N, int64_t C, int64_t H, int64_t W, int64_t O, int64_t OH,
                    int64_t OW, int64_t KH, int64_t KW, int64_t SY, int64_t SX, int64_t DY,
                    int64_t DX, int64_t PY, int64_t PX, int64_t relu);
int32_t API(max_pool2d)(void *queue, const float *data, float *out, int64_t N, int64_t H, int64_t W,
                        int64_t OH, int64_t OW, int64_t KH, int64_t KW, int64_t SY, int64_t SX,
                        int64_t DY, int64_t DX, int64_t PY, int64_t PX);
int32_t API(average)(void *queue, const float *data, float *out, int64_t outer, int64_t inner);
int32_t API(bias_add)(void *queue, const float *data, const float *bias, float *out, int64_t outer,
                      int64_t channels, int64_t inner);
int32_t API(add)(void *queue, const float *a, const float *b, float *out, int64_t count);
int32_t API(multiply)(void *queue, const float *a, const float *b, float *out, int64_t count);
int32_t API(relu)(void *queue, const float *a, float *out, int64_t count);
int32_t API(copy)(void *queue, const float *a, float *out, int64_t count);
