/*
 * The spawner is forked once, moves itself into the work cgroups, and from then on forks supervisors and file workers
 * on request: they are born in the work cgroups, so no command pays for a migration.
 */
#pragma once

#include <stddef.h>

#include "spawner/order.h"

/* Never return. */
__attribute__((noreturn)) void spawner_main(int socket, const int *work_fds, size_t work_fd_count);
__attribute__((noreturn)) void worker_process(int socket, const struct identity *identity, const int *work_fds, size_t work_fd_count);
/* Closes every descriptor from 3 on but these, in a process that was just forked. */
void close_all_but(const int *keep, size_t count);
