#include "base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void complain(const char *format, va_list arguments, const char *reason) {
  char line[1024];
  int length = snprintf(line, sizeof line, "caisson-guest: ");
  length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
  if (length > (int)sizeof line - 1) length = sizeof line - 1;
  int tail = snprintf(line + length, sizeof line - (size_t)length, "%s%s\n", reason ? ": " : "", reason ? reason : "");
  length += tail;
  if (length > (int)sizeof line - 1) length = sizeof line - 1;
  write_full(STDERR_FILENO, line, (size_t)length);
}

void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  complain(format, arguments, NULL);
  va_end(arguments);
  _exit(125);
}

void die_errno(const char *format, ...) {
  const char *reason = strerror(errno);
  va_list arguments;
  va_start(arguments, format);
  complain(format, arguments, reason);
  va_end(arguments);
  _exit(125);
}

void *xalloc(size_t bytes) {
  void *memory = calloc(1, bytes ? bytes : 1);
  if (memory == NULL) die("out of memory (%zu bytes)", bytes);
  return memory;
}

ssize_t read_full(int fd, void *buffer, size_t length) {
  size_t done = 0;
  while (done < length) {
    ssize_t got = read(fd, (char *)buffer + done, length - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (size_t)got;
  }
  return (ssize_t)done;
}

bool write_full(int fd, const void *buffer, size_t length) {
  size_t done = 0;
  while (done < length) {
    ssize_t put = write(fd, (const char *)buffer + done, length - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    done += (size_t)put;
  }
  return true;
}

uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
