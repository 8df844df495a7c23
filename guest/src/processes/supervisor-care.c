/* Resumes stopped supervisors, and kills the processes that dead ones leave behind. */
#include <signal.h>

#include "base/proc.h"
#include "processes/process.h"
#include "processes/processes.h"
#include "processes/supervisors.h"

enum { ORPHAN_PAUSE_MS = 20, ORPHAN_LOOKS = 25 };

/*
 * The kernel makes a dead supervisor's processes our children. No other supervisor takes over such a tree, so we kill
 * it. A dying process closes its sockets before its children are reparented, so this takes several rounds; each orphan
 * that dies may leave more.
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

/* Whether a supervisor has work to do for us: while it or its command starts, and when the command must end. */
static bool is_asked(const struct supervisor *supervisor) {
  const struct process *process = supervisor->process;
  return !supervisor->ready || (process && (process->state == PROCESS_STARTING || process->we_killed));
}

/*
 * Between taking its user's uid and executing its program, a leader can be stopped by other processes of that uid. Its
 * supervisor, whose memory it borrows, waits for it and receives nothing. A leader that must end, or stays stopped, is
 * killed; its supervisor then continues as after any other end.
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
