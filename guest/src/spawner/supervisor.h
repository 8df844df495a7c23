/*
 * A supervisor starts one command at a time and owns its tree: as a subreaper it becomes the parent of every process
 * that the command leaves behind, even double-forked or in a separate session. It reports the leader's end at once, and
 * the tree's end when nothing remains; then it is free for the next command. Commands cannot signal or trace it: it has
 * another uid.
 */
#pragma once

#include <stddef.h>

/* Never returns. `work_fds`: the cgroups that the leader must be moved into, since this supervisor is not in them. */
__attribute__((noreturn)) void supervisor_main(int socket, const int *work_fds, size_t work_fd_count);
