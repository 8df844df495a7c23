/* What READ and WRITE share, and the parts of WRITE. */
#pragma once

#include "files/worker.h"

#include <limits.h>

/* 0, or why it is not a regular file. */
int not_regular(const struct stat *status);
void answer_not_regular(struct worker *worker, int error, const char *verb, const char *path);
/* -1 with errno set. */
int open_regular(const char *path, int flags, struct stat *status);

enum how { REPLACE = 0, APPEND = 1, CREATE = 2 };

/* Where a write ends up: the folder, the name in it and what is there now. */
struct target {
  char path[PATH_MAX];
  int folder_fd;
  const char *base;
  bool exists;
  struct stat status;
};

/* A file that is not there yet for anybody else. `name` is empty when it has none at all. */
struct draft {
  int fd;
  char name[TEMPORARY_NAME_BYTES];
};

/* worker-draft.c: 0 or an errno. */
int draft_open(struct draft *draft, int folder_fd, mode_t mode);
void draft_drop(struct draft *draft, int folder_fd);
/* Puts it in its place, whole; afterwards there is no draft any more, whether that succeeded or not. */
int draft_publish(struct draft *draft, const struct target *target, enum how how);
int write_all(int fd, const uint8_t *bytes, size_t length, uint64_t *written);
