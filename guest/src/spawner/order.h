/*
 * Messages between main, the spawner and the supervisors, over SOCK_SEQPACKET pairs: one struct per message, then
 * bytes, with descriptors attached. All three are the same program and trust each other; a message of the wrong size is
 * a bug.
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
  ORDER_SIGNAL,     /* to a supervisor: send `signal` to the leader or the tree */
  ORDER_KILL,       /* to a supervisor: end the whole tree, whatever it does */
};

struct order {
  uint32_t kind;
  int32_t signal;
  bool tree;
  bool pty;
  bool blob_in_memory; /* the request did not fit the message; the last descriptor is a memfd that contains it */
  uint32_t blob_length;
  uint64_t nproc;
  uint64_t nofile_soft, nofile_hard;
  struct identity identity;
};

/* The payload of a SPAWN travels in the message up to this size. */
enum { ORDER_BLOB_MAX = 65536, ORDER_FDS_MAX = 4, MESSAGE_FDS_MAX = 64 };

enum report_kind {
  REPORT_READY,   /* from a supervisor: a = its pid */
  REPORT_STARTED, /* a = the leader's pid */
  REPORT_FAILED,  /* a = stage, b = errno; the supervisor is free again */
  REPORT_ENDED,   /* a = the leader's wait status; `empty` if nothing remains of the tree */
  REPORT_EMPTY,   /* nothing remains of the tree; the supervisor is free again */
  REPORT_FORKED,  /* from the spawner, in the order of the requests: a = pid, or -1 and b = errno */
};

struct report {
  uint32_t kind;
  int32_t a, b;
  bool empty;
};

/* The step at which a start failed. */
enum start_stage { STAGE_FORK, STAGE_SETUP, STAGE_IDENTITY, STAGE_CWD, STAGE_EXEC };

/* Sends one message. Returns false with errno set on failure. */
bool message_send(int socket, const void *head, size_t head_length, const void *body, size_t body_length, const int *fds, size_t fd_count,
                  int flags);
/*
 * Receives one message; the descriptors are close-on-exec, and the caller closes them. Returns the length, 0 at the
 * end, or -1.
 */
ssize_t message_receive(int socket, void *head, size_t head_length, void *body, size_t body_length, int *fds, size_t *fd_count, int flags);
