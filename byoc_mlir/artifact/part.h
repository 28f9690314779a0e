/* One program of a model in stages, as glue.c offers it and stages.c calls it. */

typedef struct {
  int (*init)(int threads);
  void (*shutdown)(void);
  const char *(*error)(void);
  /* Writes the shapes of all outputs. */
  int (*shapes)(const int64_t *sizes, int64_t *const *shapes);
  /* Inputs of a program that takes sizes begin with these. */
  int (*run)(const int64_t *sizes, const void *const *inputs, void *const *outputs);
} part;
