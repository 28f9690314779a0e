/* Queues of the device: each has a thread that copies and runs kernels in order.
 *
 * The destination of a copy that is not done is full of NaNs. Delays make work take longer. Lazy
 * queues start nothing before the host waits, so that a missing wait always shows. */
#include <errno.h>

struct task {
  struct task *next;
  enum event_kind kind;
  enum status injected;
  void *destination;
  const void *source;
  int64_t bytes, enqueued;
  kernel run;
  int32_t memories;
  void *memory[ARGUMENTS];
  int64_t sizes[ARGUMENTS];
};

struct queue {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  struct task *first, *last;
  int64_t number, waiting;
  int closing, stalled;
  enum status failed; /* the first failure since the last wait */
};

static volatile int lazy;
static volatile double kernel_milliseconds, copy_milliseconds;

static void count_tasks(int64_t change) {
  pthread_mutex_lock(&device.lock);
  device.counters.live_tasks += change;
  pthread_mutex_unlock(&device.lock);
}

static void pause_for(double milliseconds) {
  const int64_t nanoseconds = (int64_t)(milliseconds * 1e6);
  struct timespec rest = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  while (nanoseconds && nanosleep(&rest, &rest) && errno == EINTR) {}
}

/* The thread of a queue */

static enum status move_bytes(const struct task *task) {
  pause_for(copy_milliseconds);
  const int in = task->kind == COPY_IN;
  void *const memory = translated(in ? task->destination : task->source, task->bytes);
  if (!memory) return BAD_ADDRESS;
  memcpy(in ? memory : task->destination, in ? task->source : memory, task->bytes);
  return SUCCESS;
}

static enum status run_kernel(const struct task *task) {
  void *memory[ARGUMENTS];
  pause_for(kernel_milliseconds);
  for (int32_t i = 0; i < task->memories; ++i) {
    memory[i] = task->memory[i] ? translated(task->memory[i], 1) : NULL;
    if (task->memory[i] && !memory[i]) return BAD_ADDRESS;
  }
  return task->run(memory, task->sizes) ? KERNEL_FAILED : SUCCESS;
}

/* Runs a task; after a failure, only what frees memory. */
static enum status run_task(const struct task *task, enum status failed) {
  if (task->kind == RELEASE) {
    API(free)(task->destination);
    return failed;
  }
  if (failed) return failed;
  if (device.lost) return DEVICE_LOST;
  if (task->injected) return task->injected;
  return task->kind == LAUNCH ? run_kernel(task) : move_bytes(task);
}

static int may_run(const struct queue *queue) {
  return queue->first && !queue->stalled && (!lazy || queue->waiting || queue->closing);
}

static void *run_queue(void *argument) {
  struct queue *const queue = argument;
  pthread_mutex_lock(&queue->lock);
  while (1) {
    while (!may_run(queue) && !queue->closing) pthread_cond_wait(&queue->work, &queue->lock);
    if (!may_run(queue)) break;
    struct task *const task = queue->first;
    const enum status failed = queue->failed;
    pthread_mutex_unlock(&queue->lock);
    const int64_t begin = now();
    const enum status status = run_task(task, failed);
    note(task->kind, queue->number, task->enqueued, begin);
    count_tasks(-1);
    pthread_mutex_lock(&queue->lock);
    queue->failed = status;
    queue->stalled = status == COMPLETION_LOST && !failed && !queue->closing;
    queue->first = task->next;
    free(task);
    if (!queue->first || queue->stalled) pthread_cond_broadcast(&queue->done);
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

/* Calls of the host */

static enum status start_thread(struct queue *queue) {
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->work, NULL);
  pthread_cond_init(&queue->done, NULL);
  return pthread_create(&queue->thread, NULL, run_queue, queue) ? NO_QUEUE : SUCCESS;
}

int32_t API(open)(void **queue) {
  pthread_mutex_lock(&device.lock);
  enum status status = unusable();
  if (!status && hits(FAULT_OPEN)) status = NO_QUEUE;
  struct queue *const made = status ? NULL : calloc(1, sizeof *made);
  if (!status) status = made ? start_thread(made) : NO_QUEUE;
  if (!status) {
    made->number = ++device.queues;
    device.counters.live_queues++;
    *queue = made;
  } else {
    free(made);
  }
  pthread_mutex_unlock(&device.lock);
  return status;
}

/* Runs what is left, then ends the thread. A fork has no thread to end. */
void API(close)(void *handle) {
  struct queue *const queue = handle;
  if (!queue || device.owner != getpid()) return;
  pthread_mutex_lock(&queue->lock);
  queue->closing = 1;
  queue->stalled = 0;
  pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  pthread_mutex_destroy(&queue->lock);
  pthread_cond_destroy(&queue->work);
  pthread_cond_destroy(&queue->done);
  free(queue);
  pthread_mutex_lock(&device.lock);
  device.counters.live_queues--;
  pthread_mutex_unlock(&device.lock);
}

static enum status append(struct queue *queue, struct task task) {
  struct task *const made = malloc(sizeof *made);
  if (!made) return OUT_OF_MEMORY;
  *made = task;
  made->enqueued = now();
  count_tasks(1);
  pthread_mutex_lock(&queue->lock);
  if (queue->first)
    queue->last->next = made;
  else
    queue->first = made;
  queue->last = made;
  pthread_cond_signal(&queue->work);
  pthread_mutex_unlock(&queue->lock);
  return SUCCESS;
}

static enum status copy(struct queue *queue, struct task task, int64_t *copies, int64_t *bytes) {
  pthread_mutex_lock(&device.lock);
  const enum status reason = unusable();
  if (!reason && hits(FAULT_COPY)) task.injected = COPY_FAILED;
  if (!reason && hits(FAULT_COMPLETION)) task.injected = COMPLETION_LOST;
  if (!reason) {
    ++*copies;
    *bytes += task.bytes;
  }
  pthread_mutex_unlock(&device.lock);
  return reason ? reason : append(queue, task);
}

int32_t API(copy_in)(void *queue, void *destination, const void *host, int64_t bytes) {
  const struct task task = {
      .kind = COPY_IN, .destination = destination, .source = host, .bytes = bytes};
  return copy(queue, task, &device.counters.copies_in, &device.counters.bytes_in);
}

/* True if a copy to the device that is not done reads the memory. */
static int is_read(const struct queue *queue, const char *host, int64_t bytes) {
  for (const struct task *task = queue->first; task; task = task->next) {
    const char *const source = task->source;
    if (task->kind == COPY_IN && source < host + bytes && host < source + task->bytes) return 1;
  }
  return 0;
}

static void poison(struct queue *queue, void *host, int64_t bytes) {
  pthread_mutex_lock(&queue->lock);
  if (!is_read(queue, host, bytes)) memset(host, POISON, bytes);
  pthread_mutex_unlock(&queue->lock);
}

int32_t API(copy_out)(void *queue, void *host, const void *source, int64_t bytes) {
  poison(queue, host, bytes);
  const struct task task = {
      .kind = COPY_OUT, .destination = host, .source = source, .bytes = bytes};
  return copy(queue, task, &device.counters.copies_out, &device.counters.bytes_out);
}

int32_t API(launch)(void *queue, kernel run, void *const *memory, int32_t memories,
                    const int64_t *sizes, int32_t count) {
  if (memories > ARGUMENTS || count > ARGUMENTS) return LAUNCH_FAILED;
  struct task task = {.kind = LAUNCH, .run = run, .memories = memories};
  memcpy(task.memory, memory, memories * sizeof *memory);
  memcpy(task.sizes, sizes, count * sizeof *sizes);
  pthread_mutex_lock(&device.lock);
  enum status status = unusable();
  if (!status && hits(FAULT_LAUNCH)) status = LAUNCH_FAILED;
  if (!status && hits(FAULT_KERNEL)) task.injected = KERNEL_FAILED;
  if (!status) device.counters.launches++;
  pthread_mutex_unlock(&device.lock);
  return status ? status : append(queue, task);
}

int32_t API(release)(void *queue, void *memory) {
  return append(queue, (struct task){.kind = RELEASE, .destination = memory});
}

/* Returns when the queue is empty. A completion that is lost ends it too: the rest runs, and the
 * status says what happened. */
int32_t API(wait)(void *handle) {
  struct queue *const queue = handle;
  const int64_t begin = now();
  pthread_mutex_lock(&device.lock);
  const enum status reason = unusable();
  device.counters.waits++;
  pthread_mutex_unlock(&device.lock);
  if (reason == FORKED) return reason;
  pthread_mutex_lock(&queue->lock);
  queue->waiting++;
  pthread_cond_signal(&queue->work);
  while (queue->first) {
    if (queue->stalled) { /* a real driver notices after a time */
      queue->stalled = 0;
      pthread_cond_signal(&queue->work);
    }
    pthread_cond_wait(&queue->done, &queue->lock);
  }
  queue->waiting--;
  queue->stalled = 0;
  const enum status failed = queue->failed;
  queue->failed = SUCCESS;
  pthread_mutex_unlock(&queue->lock);
  note(WAIT, queue->number, begin, begin);
  return reason ? reason : failed;
}

/* Control of queues, for tests */

void API(delay)(double of_kernel, double of_copy) {
  kernel_milliseconds = of_kernel;
  copy_milliseconds = of_copy;
}

void API(lazy)(int32_t on) { lazy = on; }
