/* Starting one command: the leader of a tree. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "spawner/order.h"

struct leader {
  const struct order *order;
  uint8_t *request; /* a SPAWN's payload; its texts are terminated in place */
  size_t request_length;
  int fds[3];
  const int *work_fds; /* written "0" by the child when its supervisor is not in the work cgroups */
  size_t work_fd_count;
};

/*
 * Gives the leader's pid, or -1 with the stage and errno of what failed. Returns once the program runs or has failed
 * to.
 */
pid_t leader_start(struct leader *leader, int *stage, int *error);
