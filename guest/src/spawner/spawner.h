/*
 * The spawner is forked once and moves itself into the work cgroups. It then forks supervisors and file workers on
 * request: they start in the work cgroups, so no command pays for a migration.
 */
#pragma once

#include <stddef.h>

#include "spawner/order.h"

/* These never return. */
__attribute__((noreturn)) void spawner_main(int socket, const int *work_fds, size_t work_fd_count);
__attribute__((noreturn)) void worker_process(int socket, const struct identity *identity, const int *work_fds, size_t work_fd_count);
/* Closes every descriptor from 3 on except these, in a newly forked process. */
void close_all_but(const int *keep, size_t count);
