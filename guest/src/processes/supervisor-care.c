/* Looks after supervisors: those that were stopped, and what is left of those that died. */
#include <signal.h>

#include "base/proc.h"
#include "processes/process.h"
#include "processes/processes.h"
#include "processes/supervisors.h"

enum { ORPHAN_PAUSE_MS = 20, ORPHAN_LOOKS = 25 };

/*
 * What a dead supervisor owned becomes ours, and has no one who answers for it. A dying process closes its sockets
 * before its children are handed on, so it takes several looks; and each orphan that dies may hand on more.
 */
static void on_orphans_due(struct timer *timer) {
  struct guest *guest = container_of(timer, struct processes, orphan_timer)->guest;
  struct pids children = {0};
  proc_children(getpid(), &children);
  guest->processes->orphan_looks--;
  for (size_t i = 0; i < children.count; i++) {
    if (is_own_process(guest, children.list[i])) continue;
    kill(children.list[i], SIGKILL);
    guest->processes->orphan_looks = ORPHAN_LOOKS;
  }
  pids_free(&children);
  if (guest->processes->orphan_looks > 0) timer_set(&guest->loop, timer, now_ms() + ORPHAN_PAUSE_MS);
}

void orphans_look_for(struct guest *guest) {
  guest->processes->orphan_looks = ORPHAN_LOOKS;
  guest->processes->orphan_timer.fire = on_orphans_due;
  on_orphans_due(&guest->processes->orphan_timer);
}

bool supervisors_busy(const struct guest *guest) {
  for (const struct supervisor *s = guest->processes->supervisors; s; s = s->next) {
    if (s->process) return true;
  }
  return false;
}

/* A supervisor has something to do for us while its command starts, and once the command is to end. */
static bool is_asked(const struct supervisor *supervisor) {
  const struct process *process = supervisor->process;
  return !supervisor->ready || (process && (process->state == PROCESS_STARTING || process->we_killed));
}

/*
 * From when it has its user's uid until it executes its program a leader can be stopped by others of that uid, and its
 * supervisor, whose memory it borrows, waits for it and hears nothing. One that is to end, or cannot be helped, is
 * killed: its supervisor then goes on as with any other that ended.
 */
static void rouse_leader(struct supervisor *supervisor) {
  struct pids children = {0};
  proc_children(supervisor->own.pid, &children);
  for (size_t i = 0; i < children.count; i++) {
    bool helped = rouse(children.list[i], &supervisor->leader_stopped_looks);
    if (!helped || supervisor->process->why != KIND_NONE) kill(children.list[i], SIGKILL);
  }
  pids_free(&children);
}

bool supervisors_rouse(struct guest *guest, bool idle_too) {
  bool waiting = false;
  for (struct supervisor *s = guest->processes->supervisors; s; s = s->next) {
    if (is_asked(s)) waiting = true;
    else if (!idle_too) continue;
    if (!own_process_rouse(&s->own)) kill(s->own.pid, SIGKILL);
    if (s->process && s->process->state == PROCESS_STARTING) rouse_leader(s);
  }
  return waiting;
}
