/* What every file of the guest uses: cleanup attributes, one way to die, complete reads and writes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define GUEST_VERSION "0.1.0"

#define cleanup_fd __attribute__((cleanup(close_fd_cleanup)))
#define cleanup_free __attribute__((cleanup(free_cleanup)))

static inline void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}
static inline void close_fd_cleanup(int *fd) { close_fd(fd); }
static inline void free_cleanup(void *pointer) { free(*(void **)pointer); }
static inline int steal_fd(int *fd) {
  int taken = *fd;
  *fd = -1;
  return taken;
}

/* Print what failed on stderr (die_errno adds errno's text) and end this process with status 125. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2))) void die_errno(const char *format, ...);
/* Allocates zeroed memory or dies: for startup and for short-lived processes, which have no caller to answer. */
void *xalloc(size_t bytes);

/* Blocking, and retried on EINTR. read_full returns the number of bytes read (fewer only at end of file), or -1. */
ssize_t read_full(int fd, void *buffer, size_t length);
bool write_full(int fd, const void *buffer, size_t length);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t now_ms(void);

/* Entry points of the one binary; each is a separate program. */
int init_main(int argc, char **argv);
int sudo_main(int argc, char **argv);
int launch_main(int argc, char **argv);
int launches_main(void);
/*
 * Answers file requests (0x20-0x2A) one after another, each on its frame's stream id, until end of file. The process
 * must already have its user, its cgroup and no capabilities. Between two requests, DATA, END, CREDIT and CANCEL of an
 * earlier stream may still arrive and are skipped: they crossed with the answer.
 */
int worker_main(int in_fd, int out_fd);
