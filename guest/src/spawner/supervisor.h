/*
 * A supervisor starts one command at a time and owns its tree: it is a subreaper, so whatever the command leaves
 * behind, double-forked or in a session of its own, becomes its child. It tells main of the leader's end at once, and
 * of the tree's end when nothing is left; then it is free for the next command. Commands cannot signal or trace it: it
 * has another uid.
 */
#pragma once

#include <stddef.h>

/* Never returns. `work_fds`: the leader must be moved into these cgroups, since this supervisor is not in them. */
__attribute__((noreturn)) void supervisor_main(int socket, const int *work_fds, size_t work_fd_count);
