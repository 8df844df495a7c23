/*
 * What main, the spawner and the supervisors say to each other, over SOCK_SEQPACKET pairs: one struct a message, then
 * bytes, with descriptors beside it. All three are the same program and believe each other; a message of the wrong size
 * is a bug.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/privilege.h"

enum order_kind {
  ORDER_SUPERVISOR, /* to the spawner, with a descriptor: fork a supervisor on it */
  ORDER_WORKER,     /* to the spawner, with a descriptor: fork a file worker on it */
  ORDER_RUN,        /* to a supervisor, with stdio: start this command */
  ORDER_SIGNAL,     /* to a supervisor: `signal` to the leader or the tree */
  ORDER_KILL,       /* to a supervisor: end the whole tree, whatever it does */
};

struct order {
  uint32_t kind;
  int32_t signal;
  bool tree;
  bool pty;
  bool blob_in_memory; /* the request did not fit a message; the last descriptor is a memfd that holds it */
  uint32_t blob_length;
  uint64_t nproc;
  uint64_t nofile_soft, nofile_hard;
  struct identity identity;
};

/* A SPAWN's payload up to this size travels in the message. */
enum { ORDER_BLOB_MAX = 65536, ORDER_FDS_MAX = 4 };

enum report_kind {
  REPORT_READY,   /* from a supervisor: a = its pid */
  REPORT_STARTED, /* a = the leader's pid */
  REPORT_FAILED,  /* a = stage, b = errno; the supervisor is free again */
  REPORT_ENDED,   /* a = wait status of the leader; `empty` when nothing is left of the tree */
  REPORT_EMPTY,   /* nothing is left of the tree; the supervisor is free again */
  REPORT_FORKED,  /* from the spawner, in the order of its orders: a = pid, or -1 and b = errno */
};

struct report {
  uint32_t kind;
  int32_t a, b;
  bool empty;
};

/* Where a start failed. */
enum start_stage { STAGE_FORK, STAGE_SETUP, STAGE_IDENTITY, STAGE_CWD, STAGE_EXEC };

/* Sends one message. False with errno set. */
bool message_send(int socket, const void *head, size_t head_length, const void *body, size_t body_length, const int *fds, size_t fd_count,
                  int flags);
/*
 * Receives one message; the descriptors are close-on-exec and for the caller to close. Gives the length, 0 at the end,
 * -1.
 */
ssize_t message_receive(int socket, void *head, size_t head_length, void *body, size_t body_length, int *fds, size_t *fd_count, int flags);
