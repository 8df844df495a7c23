/*
 * The guest's own processes: the spawner, supervisors, file workers. Those with a request pending are checked until
 * they answer. Commands cannot stop them, but root inside can, and so can any process of the same user if the guest has
 * no separate uid. A stopped process is resumed, and one that is stopped again and again is killed.
 */
#pragma once

#include "connection/guest.h"

struct own_process {
  struct own_process *next;
  pid_t pid; /* 0: not known yet */
  unsigned stopped_looks;
};

void own_process_add(struct guest *guest, struct own_process *own);
void own_process_remove(struct guest *guest, struct own_process *own);
bool is_own_process(const struct guest *guest, pid_t pid);

/* Called after a request to one of them: checks them until all have answered. */
void rouse_soon(struct guest *guest);
/* Resumes a process if it was stopped. Returns false if that has not helped for too long. */
bool rouse(pid_t pid, unsigned *stopped_looks);
static inline bool own_process_rouse(struct own_process *own) { return rouse(own->pid, &own->stopped_looks); }
