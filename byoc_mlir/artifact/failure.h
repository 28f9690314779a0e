/* What the last call of a thread that failed says. C_NAME is the including file's. */

#include <stdarg.h>
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))
#define AT_LEAST_ONE(count) ((count) > 0 ? (count) : 1)

static _Thread_local char message[1024];

static int fail(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return code;
}

EXPORTED const char *C_NAME(error)(void) { return message; }
