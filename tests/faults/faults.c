/* Preloaded library that counts events of a process, and makes one of them fail or end it.
 *
 * fault_arm(kind, at) starts to count; `at` is the number of the event that fails, 0 for none.
 * fault_count() ends the count and returns it; fault_seen() returns it meanwhile, by which another
 * thread forks: FORK only counts. Programs that the process starts count from their beginning, by
 * BYOC_HELPER_FAULT="kind at", and write their count to the file BYOC_HELPER_COUNT.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

enum {
  OFF, FULL, READ_ONLY, VANISH, KILL_WRITER, OTHER_VERSION,
  MEMORY, INTERRUPT, TERMINATE, FORK, KILL_HELPER
};

static volatile int kind = OFF;
static volatile long seen, wanted;
static const char *gone_from, *gone_to, *count_file;

void fault_arm(int what, long at, const char *from, const char *to) {
  seen = 0, wanted = at, gone_from = from, gone_to = to, kind = what;
}

long fault_count(void) {
  kind = OFF;
  return seen;
}

long fault_seen(void) { return seen; }

__attribute__((constructor)) static void helper_begins(void) {
  const char *text = getenv("BYOC_HELPER_FAULT");
  int what;
  long at;
  if (!text || sscanf(text, "%d %ld", &what, &at) != 2) return;
  fault_arm(what, at, NULL, NULL);
  count_file = getenv("BYOC_HELPER_COUNT");
}

__attribute__((destructor)) static void helper_ends(void) {
  long count = fault_count();
  FILE *file = count_file ? fopen(count_file, "w") : NULL;
  if (file) fprintf(file, "%ld", count), fclose(file);
}

void _exit(int status) { /* the process that compiles ends so, without destructors */
  helper_ends();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

static int is_wanted(void) { return ++seen == wanted; }

/* Returns the error of an event of files, 0 for none. */
static int file_event(void) {
  int what = kind;
  if (what == OFF || what >= MEMORY) return 0;
  int now = is_wanted();
  if (what == FULL) return wanted && seen >= wanted ? ENOSPC : 0; /* and it stays full */
  if (what == READ_ONLY) return wanted && seen >= wanted ? EROFS : 0;
  if (!now) return 0;
  kind = OFF;
  if (what == KILL_WRITER) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  if (what == OTHER_VERSION) syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP); /* until it ran */
  if (what == VANISH) syscall(SYS_rename, gone_from, gone_to);
  return 0;
}

/* True if an allocation has to fail. */
static int memory_event(void) {
  int what = kind;
  if (what < MEMORY || !is_wanted()) return 0;
  if (what == MEMORY) return 1;
  kind = OFF;
  if (what == KILL_HELPER) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  if (what == INTERRUPT) syscall(SYS_kill, syscall(SYS_getpid), SIGINT);
  if (what == TERMINATE) syscall(SYS_kill, syscall(SYS_getpid), SIGTERM);
  return 0;
}

void *malloc(size_t size) {
  if (memory_event()) return errno = ENOMEM, NULL;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  if (memory_event()) return errno = ENOMEM, NULL;
  return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  if (memory_event()) return errno = ENOMEM, NULL;
  return __libc_realloc(old, size);
}

void *mmap(void *at, size_t size, int rights, int flags, int file, off_t offset) {
  if ((flags & MAP_ANONYMOUS) && memory_event()) return errno = ENOMEM, MAP_FAILED;
  return (void *)syscall(SYS_mmap, at, size, rights, flags, file, offset);
}

void *mmap64(void *at, size_t size, int rights, int flags, int file, off_t offset) {
  return mmap(at, size, rights, flags, file, offset);
}

#define FAIL_OR(call)                          \
  do {                                         \
    int error = file_event();                  \
    if (error) return errno = error, -1;       \
    return (call);                             \
  } while (0)

static int opened(int folder, const char *path, int flags, int mode) {
  if (flags & (O_CREAT | O_WRONLY | O_RDWR)) {
    int error = file_event();
    if (error) return errno = error, -1;
  }
  return syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(after)                            \
  int mode = 0;                                \
  if (flags & O_CREAT) {                       \
    va_list list;                              \
    va_start(list, after);                     \
    mode = va_arg(list, int);                  \
    va_end(list);                              \
  }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags) return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags) return opened(folder, path, flags, mode); }
int rename(const char *from, const char *to) { FAIL_OR(syscall(SYS_rename, from, to)); }
int renameat(int a, const char *from, int b, const char *to) { FAIL_OR(syscall(SYS_renameat2, a, from, b, to, 0)); }
int mkdir(const char *path, mode_t mode) { FAIL_OR(syscall(SYS_mkdir, path, mode)); }
int unlink(const char *path) { FAIL_OR(syscall(SYS_unlink, path)); }
int unlinkat(int folder, const char *path, int flags) { FAIL_OR(syscall(SYS_unlinkat, folder, path, flags)); }
int utimensat(int folder, const char *path, const struct timespec times[2], int flags) {
  FAIL_OR(syscall(SYS_utimensat, folder, path, times, flags));
}
int fsync(int file) { FAIL_OR(syscall(SYS_fsync, file)); }
int ftruncate64(int file, off_t size) { FAIL_OR(syscall(SYS_ftruncate, file, size)); }
ssize_t write(int file, const void *data, size_t size) {
  if (file < 3) return syscall(SYS_write, file, data, size);
  FAIL_OR(syscall(SYS_write, file, data, size));
}
