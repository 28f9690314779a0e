/* What a C program calls of a model in stages: its programs, called in order, some for each iteration
 * of a loop.
 *
 * stages.h is generated for each model; it defines what is written in capitals here. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "part.h"

#define GREATEST_SIZE INT32_MAX
#define ALIGNMENT 64

/* An input of a program: a value, or an array [0, n] that says the element n of one. */
typedef struct {
  int value, element, item_bytes;
} source;

/* A size of an input: that of a symbol of the program, or a number. */
typedef struct {
  int input, axis, symbol;
  int64_t size;
} axis;

/* Of a value only the first entries count, as many as another one says. */
typedef struct {
  int value, axis, count;
} trim;

typedef struct stage stage;

/* Values of a loop and of its body; -1 is one that is not there. */
typedef struct {
  int trip_count, condition, number, active, goes_on;
  int state_count, row_count, body_count;
  const int *initial, *states, *updates, *last, *rows, *stacked;
  const stage *body;
} loop;

/* A program, a loop, or neither: then it trims what others gave. */
struct stage {
  const char *name;
  const part *program;
  const loop *loop;
  int input_count, output_count, axis_count, trim_count, hidden;
  const source *inputs;
  const int *outputs;
  const axis *axes;
  const trim *trims;
};

typedef struct {
  const unsigned char *begin;
  int value;
  const int64_t *shape;
} constant;

#include "stages.h"
#include "failure.h"

/* `users` are those of the memory, at its begin; NULL where it is not ours. */
typedef struct {
  char *data;
  int64_t *users;
  int64_t shape[MOST_RANK];
} tensor;


static int part_failure(int code, const stage *one) {
  return fail(code, "%s: %s", one->name, one->program->error());
}

/* -- values -- */

static void release(tensor *one) {
  if (one->users != NULL && --*one->users == 0)
    free(one->users);
  one->users = NULL;
  one->data = NULL;
}

/* `target` becomes another user of what `one` is. */
static void share(tensor *target, const tensor *one) {
  tensor shared = *one;
  if (shared.users != NULL)
    ++*shared.users;
  release(target);
  *target = shared;
}

static int64_t elements(const int64_t *shape, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; i++)
    if (__builtin_mul_overflow(count, shape[i], &count))
      return INT64_MAX;
  return count;
}

static int64_t byte_count(const tensor *one, int value) {
  int64_t bytes;
  if (__builtin_mul_overflow(elements(one->shape, ranks[value]), item_bytes[value], &bytes))
    return INT64_MAX;
  return bytes;
}

/* New memory of so many bytes, also where it is none. */
static int allocate(tensor *one, int64_t bytes) {
  void *memory = NULL;
  if (bytes > INT64_MAX - 2 * ALIGNMENT ||
      posix_memalign(&memory, ALIGNMENT, (size_t)bytes + 2 * ALIGNMENT) != 0)
    return fail(ERROR_MEMORY, "out of memory: a tensor needs %lld bytes", (long long)bytes);
  release(one);
  one->users = memory;
  *one->users = 1;
  one->data = (char *)memory + ALIGNMENT;
  return OK;
}

static int64_t integer_at(const char *data, int bytes, int place) {
  int32_t narrow;
  int64_t wide;
  if (bytes == 8) {
    memcpy(&wide, data + 8 * place, 8);
    return wide;
  }
  memcpy(&narrow, data + 4 * place, 4);
  return narrow;
}

/* -- stages -- */

/* Sets the shape and the memory of each input, and the sizes of the program's symbols. */
static int take_inputs(const stage *one, const tensor *values, const void **inputs,
                       int64_t *sizes) {
  int64_t shapes[AT_LEAST_ONE(MOST_INPUTS)][MOST_RANK];
  for (int i = 0; i < SIZE_COUNT; i++)
    sizes[i] = -1;
  for (int i = 0; i < one->input_count; i++) {
    const source *from = &one->inputs[i];
    const tensor *value = &values[from->value];
    inputs[i] = value->data;
    memcpy(shapes[i], value->shape, sizeof shapes[i]);
    if (from->element >= 0) {
      shapes[i][0] = 0;
      shapes[i][1] = integer_at(value->data, from->item_bytes, from->element);
      if (shapes[i][1] < 0)
        return fail(ERROR_VALUE, "%s: a size is %lld, accepted are 0 and more", one->name,
                    (long long)shapes[i][1]);
    }
  }
  for (int i = 0; i < one->axis_count; i++) {
    const axis *next = &one->axes[i];
    int64_t found = shapes[next->input][next->axis], wanted = next->size;
    if (next->symbol >= 0) {
      wanted = sizes[next->symbol];
      if (wanted < 0)
        wanted = sizes[next->symbol] = found;
    }
    if (found != wanted)
      return fail(ERROR_SHAPE, "%s: dimension %d of input %d is %lld, accepted is %lld", one->name,
                  next->axis, next->input, (long long)found, (long long)wanted);
  }
  return OK;
}

static int call(const stage *one, tensor *values) {
  const void *inputs[MOST_INPUTS + 1];
  void *outputs[AT_LEAST_ONE(MOST_OUTPUTS)];
  int64_t sizes[AT_LEAST_ONE(SIZE_COUNT)];
  int64_t shapes[AT_LEAST_ONE(MOST_OUTPUTS)][MOST_RANK];
  int64_t *rows[AT_LEAST_ONE(MOST_OUTPUTS)];
  tensor made[AT_LEAST_ONE(MOST_OUTPUTS)] = {{0}};
  int status = take_inputs(one, values, inputs + one->hidden, sizes);
  if (status != OK)
    return status;
  inputs[0] = one->hidden ? sizes : inputs[0];
  for (int i = 0; i < one->output_count; i++)
    rows[i] = shapes[i];
  status = one->program->shapes(sizes, rows);
  if (status != OK)
    return part_failure(status, one);
  for (int i = 0; i < one->output_count && status == OK; i++) {
    memcpy(made[i].shape, shapes[i], sizeof shapes[i]);
    status = allocate(&made[i], byte_count(&made[i], one->outputs[i]));
    outputs[i] = made[i].data;
  }
  if (status == OK) {
    status = one->program->run(sizes, inputs, outputs);
    if (status != OK)
      part_failure(status, one);
  }
  for (int i = 0; i < one->output_count; i++) {
    if (status == OK)
      share(&values[one->outputs[i]], &made[i]);
    release(&made[i]);
  }
  return status;
}

/* Cuts off what does not count; the memory is that of an output, which nobody else has. */
static int cut(const stage *one, const trim *done, tensor *values) {
  tensor *value = &values[done->value];
  int rank = ranks[done->value], along = done->axis < 0 ? done->axis + rank : done->axis;
  int64_t kept = integer_at(values[done->count].data, item_bytes[done->count], 0);
  int64_t before = value->shape[along], outer = elements(value->shape, along);
  int64_t inner = elements(value->shape + along + 1, rank - along - 1) * item_bytes[done->value];
  if (kept < 0 || kept > before)
    return fail(ERROR_VALUE, "%s: %lld of %lld entries count", one->name, (long long)kept,
                (long long)before);
  for (int64_t i = 1; i < outer; i++)
    memmove(value->data + i * kept * inner, value->data + i * before * inner,
            (size_t)(kept * inner));
  value->shape[along] = kept;
  return OK;
}

static int iterate(const stage *one, tensor *values);

static int run_stages(const stage *stages, int count, tensor *values) {
  int status = OK;
  for (int i = 0; i < count && status == OK; i++) {
    const stage *one = &stages[i];
    if (one->program != NULL)
      status = call(one, values);
    else if (one->loop != NULL)
      status = iterate(one, values);
    for (int j = 0; j < one->trim_count && status == OK; j++)
      status = cut(one, &one->trims[j], values);
  }
  return status;
}

/* Puts what an iteration has collected behind what others have, in memory for more of them. */
static int collect(const stage *one, int row_value, int stacked_value, int64_t number,
                   int64_t *capacity, tensor *values) {
  const tensor *row = &values[row_value];
  tensor *stacked = &values[stacked_value];
  int64_t bytes = byte_count(row, row_value);
  size_t shape_bytes = sizeof(int64_t) * (size_t)ranks[row_value];
  if (number > 0 && memcmp(stacked->shape + 1, row->shape, shape_bytes) != 0)
    return fail(ERROR_SHAPE, "%s: the rows of two iterations have different shapes", one->name);
  if (number == *capacity) {
    tensor more = {0};
    int64_t wanted = number > 0 ? 2 * number : 1;
    int status = bytes > 0 && wanted > INT64_MAX / bytes
                     ? fail(ERROR_MEMORY, "out of memory: %lld rows", (long long)wanted)
                     : allocate(&more, wanted * bytes);
    if (status != OK)
      return status;
    if (number > 0)
      memcpy(more.data, stacked->data, (size_t)(number * bytes));
    memcpy(more.shape + 1, row->shape, shape_bytes);
    release(stacked);
    *stacked = more;
    *capacity = wanted;
  }
  memcpy(stacked->data + number * bytes, row->data, (size_t)bytes);
  stacked->shape[0] = number + 1;
  return OK;
}

static int iteration(const stage *one, int64_t number, int64_t *capacities, tensor *values) {
  const loop *l = one->loop;
  tensor next[MOST_STATES] = {{0}};
  int status = run_stages(l->body, l->body_count, values);
  if (status != OK)
    return status;
  for (int i = 0; i < l->state_count; i++)
    share(&next[i], &values[l->updates[i]]);
  for (int i = 0; i < l->row_count && status == OK; i++)
    if (l->stacked[i] >= 0)
      status = collect(one, l->rows[i], l->stacked[i], number, &capacities[i], values);
  for (int i = 0; i < l->state_count; i++) {
    share(&values[l->states[i]], &next[i]);
    release(&next[i]);
  }
  return status;
}

static int iterate(const stage *one, tensor *values) {
  const loop *l = one->loop;
  int64_t most = l->trip_count < 0 ? INT64_MAX : integer_at(values[l->trip_count].data, 8, 0);
  int64_t number = 0, capacities[MOST_ROWS] = {0};
  char active = l->condition < 0 ? 1 : *values[l->condition].data;
  tensor number_value = {.data = (char *)&number}, active_value = {.data = &active};
  int status = OK;
  for (int i = 0; i < l->state_count; i++)
    share(&values[l->states[i]], &values[l->initial[i]]);
  for (; status == OK && active && number < most; number++) {
    share(&values[l->number], &number_value);
    share(&values[l->active], &active_value);
    status = iteration(one, number, capacities, values);
    if (status == OK)
      active = *values[l->goes_on].data;
  }
  for (int i = 0; i < l->state_count && status == OK; i++)
    if (l->last[i] >= 0)
      share(&values[l->last[i]], &values[l->states[i]]);
  for (int i = 0; i < l->row_count && status == OK; i++)
    if (l->stacked[i] >= 0 && number == 0)
      status = fail(ERROR_VALUE, "%s: no iteration ran, so that the shape of what it collects is"
                    " not known", one->name);
  return status;
}

/* -- what is called from outside -- */

EXPORTED int C_NAME(init)(int threads) {
  for (int i = 0; i < PART_COUNT; i++) {
    int status = parts[i]->init(threads);
    if (status != OK) {
      fail(status, "%s", parts[i]->error());
      while (i-- > 0)
        parts[i]->shutdown();
      return status;
    }
  }
  return OK;
}

EXPORTED void C_NAME(shutdown)(void) {
  for (int i = 0; i < PART_COUNT; i++)
    parts[i]->shutdown();
}

EXPORTED void C_NAME(free)(void *output) {
  tensor one = {0};
  if (output == NULL)
    return;
  one.users = (int64_t *)((char *)output - ALIGNMENT);
  release(&one);
}

/* An output in memory of the caller's own: that of the value, if nobody else has it. */
static int own(tensor *made, const tensor *value, int number) {
  int status;
  if (value->users != NULL && *value->users == 1) {
    share(made, value);
    return OK;
  }
  memcpy(made->shape, value->shape, sizeof made->shape);
  status = allocate(made, byte_count(value, number));
  if (status == OK)
    memcpy(made->data, value->data, (size_t)byte_count(value, number));
  return status;
}

static int give(const tensor *values, void *const *outputs, int64_t *const *shapes) {
  tensor made[AT_LEAST_ONE(OUTPUT_COUNT)] = {{0}};
  int status = OK;
  for (int i = 0; i < OUTPUT_COUNT && status == OK; i++)
    status = own(&made[i], &values[output_values[i]], output_values[i]);
  for (int i = 0; i < OUTPUT_COUNT; i++) {
    if (status != OK) {
      release(&made[i]);
      continue;
    }
    memcpy(outputs[i], &made[i].data, sizeof made[i].data);
    if (shapes[i] != NULL)
      memcpy(shapes[i], made[i].shape, sizeof(int64_t) * (size_t)ranks[output_values[i]]);
  }
  return status;
}

EXPORTED int C_NAME(run)(RUN_PARAMETERS) {
  const int64_t sizes[] = {SIZES};
  const void *const inputs[] = {RUN_INPUTS};
  void *const outputs[] = {RUN_OUTPUTS};
  int64_t *const shapes[] = {RUN_SHAPES};
  tensor *values;
  int status;
  for (int i = 0; i < OUTPUT_COUNT; i++)
    if (outputs[i] == NULL)
      return fail(ERROR_USAGE, "output %d is a null pointer", i);
  for (int i = 0; i < INPUT_COUNT; i++)
    if (inputs[i] == NULL)
      return fail(ERROR_USAGE, "input %d is a null pointer", i);
  for (int i = 0; i < MODEL_SIZE_COUNT; i++)
    if (sizes[i] < 0 || sizes[i] > GREATEST_SIZE)
      return fail(ERROR_SHAPE, "%s is %lld, accepted are 0 to %lld", size_names[i],
                  (long long)sizes[i], (long long)GREATEST_SIZE);
  values = calloc(VALUE_COUNT, sizeof *values);
  if (values == NULL)
    return fail(ERROR_MEMORY, "out of memory");
  for (int i = 0; i < INPUT_COUNT; i++) {
    values[i].data = (char *)inputs[i];
    for (int j = 0; j < ranks[i]; j++)
      values[i].shape[j] = input_sizes[i][j] < 0 ? sizes[-1 - input_sizes[i][j]] : input_sizes[i][j];
  }
  for (int i = 0; i < CONSTANT_COUNT; i++) {
    tensor *value = &values[constants[i].value];
    value->data = (char *)constants[i].begin;
    memcpy(value->shape, constants[i].shape, sizeof(int64_t) * (size_t)ranks[constants[i].value]);
  }
  status = run_stages(STAGES, STAGE_COUNT, values);
  if (status == OK)
    status = give(values, outputs, shapes);
  for (int i = 0; i < VALUE_COUNT; i++)
    release(&values[i]);
  free(values);
  return status;
}
