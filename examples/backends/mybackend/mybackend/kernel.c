#include <stdlib.h>
#include <string.h>

/* data [N, C, H, W], weight [C, KH, KW, O], bias [O] -> out [N, O, OH, OW]
 * window: kernel, strides, dilations, padding at the top left; two numbers each. */
static int conv2d_relu(const float *data, const float *weight, const float *bias, float *out,
                       const long N, const long C, const long H, const long W, const long O,
                       const long OH, const long OW, const long *window) {
  const long KH = window[0], KW = window[1];
  for (long n = 0; n < N; ++n)
    for (long y = 0; y < OH; ++y)
      for (long x = 0; x < OW; ++x) {
        float sum[O];
        memcpy(sum, bias, sizeof sum);
        for (long c = 0; c < C; ++c)
          for (long i = 0; i < KH; ++i)
            for (long j = 0; j < KW; ++j) {
              const long row = y * window[2] + i * window[4] - window[6];
              const long column = x * window[3] + j * window[5] - window[7];
              if (row < 0 || row >= H || column < 0 || column >= W) continue;
              const float value = data[((n * C + c) * H + row) * W + column];
              const float *factors = weight + ((c * KH + i) * KW + j) * O;
              for (long o = 0; o < O; ++o) sum[o] += value * factors[o];
            }
        for (long o = 0; o < O; ++o)
          out[((n * O + o) * OH + y) * OW + x] = sum[o] < 0.0f ? 0.0f : sum[o];
      }
  return 0;
}

