#include "spawner/own-process.h"

#include <signal.h>

#include "base/proc.h"

enum {
  ROUSE_MS = 250,
  /* A process that stays stopped for ten seconds was stopped on purpose. */
  STOPPED_LOOKS_MAX = 40,
};

void own_process_add(struct guest *guest, struct own_process *own) {
  own->next = guest->own_processes;
  guest->own_processes = own;
}

void own_process_remove(struct guest *guest, struct own_process *own) {
  struct own_process **link = &guest->own_processes;
  while (*link && *link != own) link = &(*link)->next;
  if (*link) *link = own->next;
}

bool is_own_process(const struct guest *guest, pid_t pid) {
  for (const struct own_process *own = guest->own_processes; own; own = own->next) {
    if (own->pid == pid) return true;
  }
  return false;
}

void rouse_soon(struct guest *guest) {
  if (guest->rouse.place == 0) timer_set(&guest->loop, &guest->rouse, guest->loop.now + ROUSE_MS);
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
