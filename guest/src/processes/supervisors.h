/*
 * Main's record of the supervisors: the command that each one runs, and what happens if one fails. See
 * spawner/supervisor.h.
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
  bool ready;    /* has reported REPORT_READY */
  bool in_guest; /* forked by main itself: stays outside the work cgroups, serves only one command */
  bool idle;
  unsigned leader_stopped_looks;
  struct process *process;
};

/* Requests the first supervisor before there is a command. */
void supervisors_prepare(struct guest *guest);
/* Finds a supervisor for the process; process_started or process_failed follows, perhaps at once. */
void supervisors_run(struct process *process);
/* Stops waiting for a supervisor. */
void supervisors_cancel(struct process *process);
bool supervisor_send(struct supervisor *supervisor, const struct order *order);

/* supervisor-care.c */
/* Whether any supervisor has a command. */
bool supervisors_busy(const struct guest *guest);
/* Kills the processes of a dead supervisor, which become ours. */
void orphans_look_for(struct guest *guest);
