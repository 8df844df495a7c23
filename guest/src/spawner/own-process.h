/*
 * The guest's own processes: the spawner, supervisors, file workers. Those that were asked for something are looked at
 * until they answer. The work cannot stop them, but root inside can, and so can anything of the same user where the
 * guest has no uids of its own: what is stopped is made to go on, and what is stopped again and again is ended.
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

/* Something was asked of one of them: they are looked at until all have answered. */
void rouse_soon(struct guest *guest);
/* Makes a process go on if it was stopped; false when that has been in vain for too long. */
bool rouse(pid_t pid, unsigned *stopped_looks);
static inline bool own_process_rouse(struct own_process *own) { return rouse(own->pid, &own->stopped_looks); }
