/*
 * Main's side of the spawner. If there is no spawner, or it cannot fork, main forks directly: it is outside the work
 * cgroups and their limits.
 */
#pragma once

#include "connection/guest.h"
#include "spawner/order.h"

/* Receives the result of a fork: the pid, or -1 and an errno. */
struct forking {
  void (*done)(struct forking *forking, pid_t pid, int error);
};

void spawner_start(struct guest *guest);
/*
 * Passes on an order and its descriptor; `forking` (or NULL) receives the result later. Returns false if there is no
 * spawner to ask.
 */
bool spawner_ask(struct guest *guest, const struct order *order, int fd, struct forking *forking);
/* Forks a supervisor or file worker from main itself. Returns -1 with errno set on failure. */
pid_t spawner_fork_here(struct guest *guest, const struct order *order, int fd);
/* Resumes a stopped spawner. Returns false if it has no request pending. With `idle_too`, checks it even then. */
bool spawner_rouse(struct guest *guest, bool idle_too);
/*
 * Handles the end of a child of main: the spawner, a supervisor that main forked, or an orphan whose supervisor died
 * first.
 */
void spawner_reaped(struct guest *guest, pid_t pid);
