/*
 * Main's record of the supervisors: who runs what, and what happens when one of them fails. See spawner/supervisor.h.
 */
#pragma once

#include "connection/guest.h"
#include "spawner/order.h"
#include "spawner/own-process.h"

struct process;

struct supervisor {
  struct guest *guest;
  struct supervisor *next, *previous;
  struct source source;
  struct own_process own;
  bool ready;    /* said hello */
  bool in_guest; /* forked by main itself: stays outside the work cgroups, serves one command only */
  bool idle;
  unsigned leader_stopped_looks;
  struct process *process;
};

/* Has the first supervisor made before anyone asks. */
void supervisors_prepare(struct guest *guest);
/* Finds the process a supervisor; process_started or process_failed follows, perhaps at once. */
void supervisors_run(struct process *process);
/* It no longer waits for one. */
void supervisors_cancel(struct process *process);
bool supervisor_send(struct supervisor *supervisor, const struct order *order);

/* supervisor-care.c */
/* Whether any of them has a command. */
bool supervisors_busy(const struct guest *guest);
/* A supervisor died: what it owned becomes ours, and is killed. */
void orphans_look_for(struct guest *guest);
