/*
 * Our own processes that were asked for something are looked at until they answer. The work cannot stop them, but root inside can, and so can anything of the
 * same user where the guest has no uids of its own: what is stopped is made to go on, and what is stopped again and again is ended.
 */
#include <errno.h>
#include <signal.h>

#include "connection/guest.h"
#include "base/proc.h"
#include "files/relay.h"

enum {
  ROUSE_MS = 250,
  /* Ten seconds of being stopped whenever somebody looks is no accident. */
  STOPPED_LOOKS_MAX = 40,
};

static void on_rouse(struct timer *timer) {
  struct guest *guest = container_of(timer, struct guest, rouse);
  bool relays_wait = relay_rouse(guest);
  if (spawner_rouse(guest, false) || relays_wait) timer_set(&guest->loop, timer, guest->loop.now + ROUSE_MS);
}

/* A supervisor that was stopped while its command ran would never tell how that ended, and nobody has asked it anything. */
void rouse_all(struct guest *guest) {
  bool relays_wait = relay_rouse(guest);
  if (spawner_rouse(guest, true) || relays_wait) rouse_soon(guest);
}

void rouse_soon(struct guest *guest) {
  if (guest->rouse.place != 0) return;
  guest->rouse.fire = on_rouse;
  timer_set(&guest->loop, &guest->rouse, guest->loop.now + ROUSE_MS);
}

bool rouse(pid_t pid, unsigned *stopped_looks) {
  struct proc_stat stat;
  if (pid <= 0 || !proc_stat_read(pid, &stat) || stat.state != 'T') {
    *stopped_looks = 0;
    return true;
  }
  kill(pid, SIGCONT);
  return ++*stopped_looks < STOPPED_LOOKS_MAX;
}

bool relay_rouse(struct guest *guest) {
  bool waiting = false;
  for (struct file_worker *w = guest->relays ? guest->relays->workers : NULL, *next; w; w = next) {
    next = w->next;
    if (w->relay == NULL || w->dismissed) continue;
    /* A watch is under way for as long as anybody wants it; the heartbeat looks after those. */
    waiting = waiting || w->relay->type != FRAME_WATCH;
    if (rouse(w->pid, &w->stopped_looks)) continue;
    relay_fail(w->relay, EAGAIN, "something inside keeps stopping the file worker");
    worker_signal(w, SIGKILL);
    worker_dismiss(w);
  }
  return waiting;
}
