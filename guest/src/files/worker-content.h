/* What READ and WRITE share, and the parts of WRITE. */
#pragma once

#include "files/worker.h"

#include <limits.h>

/* Returns 0 for a regular file, or the errno to report. */
int not_regular(const struct stat *status);
void answer_not_regular(struct worker *worker, int error, const char *verb, const char *path);
/* Returns -1 with errno set on failure. */
int open_regular(const char *path, int flags, struct stat *status);

enum how { REPLACE = 0, APPEND = 1, CREATE = 2 };

/* The destination of a write: the folder, the name in it, and what exists there. */
struct target {
  char path[PATH_MAX];
  int folder_fd;
  const char *base;
  bool exists;
  struct stat status;
};

/* A file that is not in its place yet. `name` is empty if it has none. */
struct draft {
  int fd;
  char name[TEMPORARY_NAME_BYTES];
};

/* worker-draft.c: returns 0 or an errno. */
int draft_open(struct draft *draft, int folder_fd, mode_t mode);
void draft_drop(struct draft *draft, int folder_fd);
/* Moves the whole file into place. The draft no longer exists afterwards, even on failure. */
int draft_publish(struct draft *draft, const struct target *target, enum how how);
int write_all(int fd, const uint8_t *bytes, size_t length, uint64_t *written);
