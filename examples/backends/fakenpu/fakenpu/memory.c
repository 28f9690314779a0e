/* A device that exists in this process only, to test a compiler for devices: its memory, counters,
 * log of events, and faults; `queues.c` follows in the same translation unit.
 *
 * The addresses that `allocate` returns lie in a mapping without any access, so that host code which
 * touches them crashes. The bytes are in another mapping, which only the driver knows. Memory that
 * is new or freed is full of NaNs. */
#include "fakenpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CAPACITY = 1 << 30, ALIGNMENT = 64, ARGUMENTS = 64, EVENTS = 1 << 16 };
enum { POISON = 0xFF };

enum status { SUCCESS, OUT_OF_MEMORY, COPY_FAILED, LAUNCH_FAILED, KERNEL_FAILED, COMPLETION_LOST,
              DEVICE_LOST, BAD_ADDRESS, FORKED, NO_QUEUE, NO_DEVICE };

static const char *const messages[] = {
    "success",
    "the device is out of memory",
    "a copy failed",
    "a kernel could not be launched",
    "a kernel failed",
    "the device did not report that it is done",
    "the device has disappeared",
    "an address is not in allocated device memory",
    "the device was opened before a fork; open it in this process",
    "a queue could not be created",
    "there is no such device, because FAKENPU_ABSENT is set",
};

const char *API(message)(int32_t status) {
  const int32_t count = sizeof messages / sizeof *messages;
  return status >= 0 && status < count ? messages[status] : "unknown status";
}

/* An environment variable makes a machine without the device. */
static int is_absent(void) { return getenv("FAKENPU_ABSENT") != NULL; }

static char identity[64] = TEXT(DEVICE) ", driver 1.0";

const char *API(identity)(void) { return is_absent() ? "" : identity; }

/* Places where faults can be injected; `inject` numbers them. */
enum fault { FAULT_OPEN, FAULT_ALLOCATE, FAULT_COPY, FAULT_LAUNCH, FAULT_KERNEL, FAULT_COMPLETION,
             FAULT_DEVICE, FAULTS };

enum event_kind { COPY_IN, COPY_OUT, LAUNCH, RELEASE, WAIT };

struct block {
  struct block *next;
  int64_t offset, bytes;
};

struct counters {
  int64_t copies_in, bytes_in, copies_out, bytes_out, waits, launches, allocations, live_bytes,
      live_allocations, live_queues, live_tasks;
};

struct event {
  int64_t kind, queue, enqueued, begin, end; /* nanoseconds of CLOCK_MONOTONIC */
};

static struct {
  pthread_mutex_t lock;
  char *addresses; /* of the mapping without access */
  char *bytes;
  struct block *blocks; /* allocated memory, by offset */
  pid_t owner;
  int64_t queues, countdown[FAULTS];
  int lost;
  struct counters counters;
  struct event events[EVENTS];
  int64_t event_count;
} device = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void note(enum event_kind kind, int64_t queue, int64_t enqueued, int64_t begin) {
  pthread_mutex_lock(&device.lock);
  if (device.event_count < EVENTS)
    device.events[device.event_count++] = (struct event){kind, queue, enqueued, begin, now()};
  pthread_mutex_unlock(&device.lock);
}

/* Returns true if the fault hits this event. The caller holds the lock. */
static int hits(enum fault fault) {
  return device.countdown[fault] > 0 && --device.countdown[fault] == 0;
}

static int reserve(void) {
  if (device.bytes) return 1;
  char *const addresses =
      mmap(NULL, CAPACITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char *const bytes = mmap(NULL, CAPACITY, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED || bytes == MAP_FAILED) return 0;
  device.addresses = addresses;
  device.bytes = bytes;
  device.owner = getpid();
  return 1;
}

/* Returns why no call can succeed. The caller holds the lock. */
static enum status unusable(void) {
  if (is_absent()) return NO_DEVICE;
  if (!reserve()) return OUT_OF_MEMORY;
  if (device.owner != getpid()) return FORKED;
  if (hits(FAULT_DEVICE)) device.lost = 1;
  return device.lost ? DEVICE_LOST : SUCCESS;
}

/* Returns the driver's address of `bytes` bytes of allocated device memory, or NULL. The caller
 * holds the lock. */
static void *translate(const void *address, int64_t bytes) {
  const int64_t offset = (const char *)address - device.addresses;
  for (struct block *block = device.blocks; block; block = block->next)
    if (offset >= block->offset && offset + bytes <= block->offset + block->bytes)
      return device.bytes + offset;
  return NULL;
}

static void *translated(const void *address, int64_t bytes) {
  pthread_mutex_lock(&device.lock);
  void *const found = translate(address, bytes);
  pthread_mutex_unlock(&device.lock);
  return found;
}

static struct block **first_gap(int64_t bytes, int64_t *offset) {
  struct block **link = &device.blocks;
  *offset = 0;
  for (; *link && (*link)->offset - *offset < bytes; link = &(*link)->next)
    *offset = (*link)->offset + (*link)->bytes;
  return link;
}

static enum status allocate(int64_t bytes, void **memory) {
  const enum status reason = unusable();
  if (reason) return reason;
  if (hits(FAULT_ALLOCATE) || bytes < 0 || bytes > CAPACITY) return OUT_OF_MEMORY;
  bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT; /* one byte more at least: no address is shared */
  int64_t offset;
  struct block **const link = first_gap(bytes, &offset);
  struct block *const block = offset + bytes <= CAPACITY ? malloc(sizeof *block) : NULL;
  if (!block) return OUT_OF_MEMORY;
  *block = (struct block){*link, offset, bytes};
  *link = block;
  memset(device.bytes + offset, POISON, bytes);
  device.counters.allocations++;
  device.counters.live_allocations++;
  device.counters.live_bytes += bytes;
  *memory = device.addresses + offset;
  return SUCCESS;
}

int32_t API(allocate)(int64_t bytes, void **memory) {
  pthread_mutex_lock(&device.lock);
  const enum status status = allocate(bytes, memory);
  pthread_mutex_unlock(&device.lock);
  return status;
}

/* Memory can be freed when the device is lost, too. */
void API(free)(void *memory) {
  pthread_mutex_lock(&device.lock);
  const int64_t offset = (char *)memory - device.addresses;
  struct block **link = &device.blocks;
  while (*link && (*link)->offset != offset) link = &(*link)->next;
  struct block *const block = *link;
  if (block) {
    *link = block->next;
    memset(device.bytes + offset, POISON, block->bytes);
    device.counters.live_allocations--;
    device.counters.live_bytes -= block->bytes;
    free(block);
  }
  pthread_mutex_unlock(&device.lock);
}

/* Control of the device, for tests */

void API(counters)(int64_t *out) {
  pthread_mutex_lock(&device.lock);
  memcpy(out, &device.counters, sizeof device.counters);
  pthread_mutex_unlock(&device.lock);
}

/* Writes the events since the last call, and returns their number. */
int64_t API(events)(struct event *out, int64_t capacity) {
  pthread_mutex_lock(&device.lock);
  const int64_t count = device.event_count < capacity ? device.event_count : capacity;
  memcpy(out, device.events, count * sizeof *out);
  device.event_count = 0;
  pthread_mutex_unlock(&device.lock);
  return count;
}

/* The event of this number from now on fails, 1 being the next; 0 cancels. A device that is lost
 * comes back with 0. */
void API(inject)(int32_t fault, int64_t countdown) {
  pthread_mutex_lock(&device.lock);
  device.countdown[fault] = countdown;
  if (fault == FAULT_DEVICE) device.lost = 0;
  pthread_mutex_unlock(&device.lock);
}

/* Makes it another device, or one with another driver. */
void API(identify)(const char *text) { strncpy(identity, text, sizeof identity - 1); }
