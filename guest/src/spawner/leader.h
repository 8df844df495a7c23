/* Starts one command: the leader of a tree. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "spawner/order.h"

struct leader {
  const struct order *order;
  uint8_t *request; /* the payload of a SPAWN; its texts are terminated in place */
  size_t request_length;
  int fds[3];
  const int *work_fds; /* the child writes "0" to them if its supervisor is not in the work cgroups */
  size_t work_fd_count;
};

/*
 * Returns the leader's pid, or -1 with the stage and errno of the failure. Returns when the program runs or has failed
 * to start.
 */
pid_t leader_start(struct leader *leader, int *stage, int *error);
