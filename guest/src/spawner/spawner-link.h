/*
 * Main's side of the spawner. Where there is none, or it cannot fork, main forks by itself: it is outside the work
 * cgroups and their limits.
 */
#pragma once

#include "connection/guest.h"
#include "spawner/order.h"

/* Told how a fork went: the pid, or -1 and an errno. */
struct forking {
  void (*done)(struct forking *forking, pid_t pid, int error);
};

void spawner_start(struct guest *guest);
/*
 * Passes an order and its descriptor on; `forking` (or NULL) hears of it later. False when there is no spawner to ask.
 */
bool spawner_ask(struct guest *guest, const struct order *order, int fd, struct forking *forking);
/* Forks a supervisor or file worker from main itself. -1 with errno set. */
pid_t spawner_fork_here(struct guest *guest, const struct order *order, int fd);
/* False when nothing is under way at the spawner. `idle_too`: looks at it all the same. */
bool spawner_rouse(struct guest *guest, bool idle_too);
/* A child of main ended: the spawner, a supervisor main forked, or an orphan whose supervisor died before it. */
void spawner_reaped(struct guest *guest, pid_t pid);
