#include "processes/supervisors.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "processes/process.h"
#include "processes/processes.h"
#include "processes/shutdown.h"
#include "spawner/order.h"
#include "spawner/spawner-link.h"

enum { IDLE_MAX = 2, COMING_MAX = 8 };

static void assign_waiting(struct guest *guest);
static void supervisor_ready(struct source *source, uint32_t events);

static void supervisor_drop(struct supervisor *supervisor) {
  struct guest *guest = supervisor->guest;
  if (supervisor->idle) guest->processes->idle_count--;
  if (!supervisor->ready) guest->processes->coming_count--;
  source_close(&guest->loop, &supervisor->source);
  own_process_remove(guest, &supervisor->own);
  if (supervisor->next) supervisor->next->previous = supervisor->previous;
  if (supervisor->previous)
    supervisor->previous->next = supervisor->next;
  else
    guest->processes->supervisors = supervisor->next;
  loop_free_later(&guest->loop, supervisor);
}

static bool supervisor_request(struct guest *guest, bool here) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return false;
  struct supervisor *supervisor = calloc(1, sizeof *supervisor);
  cleanup_fd int theirs = pair[1];
  if (supervisor == NULL) {
    close(pair[0]);
    return false;
  }
  *supervisor = (struct supervisor){.guest = guest, .next = guest->processes->supervisors};
  source_open(&supervisor->source, pair[0], supervisor_ready);
  if (guest->processes->supervisors) guest->processes->supervisors->previous = supervisor;
  guest->processes->supervisors = supervisor;
  guest->processes->coming_count++;
  own_process_add(guest, &supervisor->own);
  struct order order = {.kind = ORDER_SUPERVISOR};
  /* The supervisor reports on its own; if its fork failed, its socket closes. */
  if (here || !spawner_ask(guest, &order, theirs, NULL)) {
    supervisor->in_guest = true;
    supervisor->own.pid = spawner_fork_here(guest, &order, theirs);
    if (supervisor->own.pid < 0) {
      int error = errno;
      supervisor_drop(supervisor);
      errno = error;
      return false;
    }
  }
  source_watch(&guest->loop, &supervisor->source, EPOLLIN);
  return true;
}

static void wait_in_line(struct process *process, bool in_front) {
  struct guest *guest = process->guest;
  process->waiting = true;
  process->waiting_next = in_front ? guest->processes->waiting_first : NULL;
  if (in_front || guest->processes->waiting_first == NULL) {
    guest->processes->waiting_first = process;
    if (guest->processes->waiting_last == NULL) guest->processes->waiting_last = process;
  } else {
    guest->processes->waiting_last->waiting_next = process;
    guest->processes->waiting_last = process;
  }
}

void supervisors_cancel(struct process *process) {
  if (!process->waiting) return;
  struct guest *guest = process->guest;
  struct process *before = NULL;
  for (struct process *p = guest->processes->waiting_first; p; before = p, p = p->waiting_next) {
    if (p != process) continue;
    if (before)
      before->waiting_next = p->waiting_next;
    else
      guest->processes->waiting_first = p->waiting_next;
    if (guest->processes->waiting_last == p) guest->processes->waiting_last = before;
    break;
  }
  process->waiting = false;
}

/* Hands the command over. Returns false if the supervisor cannot be reached. */
static bool supervisor_give(struct supervisor *supervisor, struct process *process) {
  struct guest *guest = supervisor->guest;
  struct order order = {
      .kind = ORDER_RUN,
      .pty = process->pty,
      .blob_length = (uint32_t)process->request_length,
      .blob_in_memory = process->request_length > ORDER_BLOB_MAX,
      .nproc = process->identity.keep_caps ? 0 : guest->nproc,
      .nofile_soft = guest->nofile_soft,
      .nofile_hard = guest->nofile_hard,
      .identity = process->identity,
  };
  int fds[ORDER_FDS_MAX];
  size_t fd_count = 0;
  for (int i = 0; i < 3; i++) {
    if (process->child_fds[i] >= 0) fds[fd_count++] = process->child_fds[i];
  }
  if (order.blob_in_memory) fds[fd_count++] = process->request_fd;
  size_t inline_length = order.blob_in_memory ? 0 : process->request_length;
  if (!message_send(supervisor->source.fd, &order, sizeof order, process->request, inline_length, fds, fd_count, MSG_DONTWAIT))
    return false;
  supervisor->process = process;
  process->supervisor = supervisor;
  rouse_soon(guest);
  return true;
}

static void supervisor_is_free(struct supervisor *supervisor) {
  struct guest *guest = supervisor->guest;
  if (supervisor->process) supervisor->process->supervisor = NULL;
  supervisor->process = NULL;
  shutdown_check(guest);
  bool spent = supervisor->in_guest && guest->work_fd_count > 0;
  if (guest->processes->waiting_first == NULL && (spent || guest->processes->idle_count >= IDLE_MAX)) {
    supervisor_drop(supervisor);
    return;
  }
  supervisor->idle = true;
  guest->processes->idle_count++;
  assign_waiting(guest);
}

static struct supervisor *idle_for(struct guest *guest, const struct process *process) {
  for (struct supervisor *s = guest->processes->supervisors; s; s = s->next) {
    if (s->idle && (s->in_guest || !process->needs_here)) return s;
  }
  return NULL;
}

/* Assigns waiting commands to free supervisors, and requests more supervisors if needed. */
static void assign_waiting(struct guest *guest) {
  size_t waiting = 0;
  for (struct process *p = guest->processes->waiting_first, *next; p; p = next) {
    next = p->waiting_next;
    struct supervisor *supervisor = idle_for(guest, p);
    if (supervisor == NULL) {
      waiting++;
      continue;
    }
    supervisor->idle = false;
    guest->processes->idle_count--;
    supervisors_cancel(p);
    if (supervisor_give(supervisor, p)) continue;
    /* It is dying; its socket will close soon. */
    wait_in_line(p, true);
    next = p;
    source_close(&guest->loop, &supervisor->source);
    supervisor_drop(supervisor);
  }
  size_t wanted = waiting > 0 ? waiting : guest->processes->idle_count == 0 ? 1 : 0;
  if (wanted > COMING_MAX) wanted = COMING_MAX;
  if (guest->shutting_down) wanted = 0;
  bool here = guest->processes->waiting_first && guest->processes->waiting_first->needs_here;
  while (guest->processes->coming_count < wanted) {
    if (supervisor_request(guest, here)) continue;
    if (waiting > 0 && guest->processes->coming_count == 0) {
      struct process *first = guest->processes->waiting_first;
      supervisors_cancel(first);
      process_failed(first, STAGE_FORK, errno);
    }
    break;
  }
}

bool supervisor_send(struct supervisor *supervisor, const struct order *order) {
  return message_send(supervisor->source.fd, order, sizeof *order, NULL, 0, NULL, 0, MSG_DONTWAIT);
}

/* `unread`: it died before it read its order, so nothing was done. */
static void supervisor_lost(struct supervisor *supervisor, bool unread) {
  struct guest *guest = supervisor->guest;
  struct process *process = supervisor->process;
  bool came = supervisor->ready;
  supervisor_drop(supervisor);
  shutdown_check(guest);
  if (!came) {
    /* The spawner could not fork: the work cgroups are at their limit. Main is outside them. */
    if (guest->processes->waiting_first) guest->processes->waiting_first->needs_here = true;
    if (guest->processes->waiting_first) assign_waiting(guest);
    return;
  }
  if (process) {
    process->supervisor = NULL;
    if (unread && process->state == PROCESS_STARTING) {
      wait_in_line(process, true);
      assign_waiting(guest);
      return;
    }
    if (process->pid > 0 && !process->leader_ended) kill(process->pid, SIGKILL);
    orphans_look_for(guest);
    if (process->state == PROCESS_STARTING) {
      process_failed(process, STAGE_SETUP, EOWNERDEAD);
    } else {
      if (!process->leader_ended) process_leader_ended(process, SIGKILL);
      process_tree_empty(process);
    }
  }
  assign_waiting(guest);
}

static void supervisor_reports(struct supervisor *supervisor, const struct report *report) {
  struct process *process = supervisor->process;
  switch (report->kind) {
    case REPORT_READY:
      supervisor->ready = true;
      supervisor->guest->processes->coming_count--;
      supervisor->own.pid = report->a;
      supervisor_is_free(supervisor);
      break;
    case REPORT_STARTED:
      if (process) process_started(process, report->a);
      break;
    case REPORT_FAILED: {
      bool full = report->a == STAGE_FORK && (report->b == EAGAIN || report->b == ENOMEM) && !supervisor->in_guest;
      if (process && full) {
        process->supervisor = NULL;
        supervisor->process = NULL;
        process->needs_here = true;
        wait_in_line(process, true);
      } else if (process) {
        process_failed(process, report->a, report->b);
      }
      supervisor_is_free(supervisor);
      break;
    }
    case REPORT_ENDED:
      /* The end of the tree goes first: the leader's end can then release everything at once. */
      if (process && report->empty) process->tree_empty = true;
      if (process) process_leader_ended(process, report->a);
      if (!report->empty) break;
      if (supervisor->process) process_tree_empty(supervisor->process);
      supervisor_is_free(supervisor);
      break;
    case REPORT_EMPTY:
      if (process) process_tree_empty(process);
      supervisor_is_free(supervisor);
      break;
    default:
      break;
  }
}

static void supervisor_ready(struct source *source, uint32_t events) {
  (void)events;
  struct supervisor *supervisor = container_of(source, struct supervisor, source);
  while (source->fd >= 0) {
    struct report report;
    ssize_t got = message_receive(source->fd, &report, sizeof report, NULL, 0, NULL, NULL, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got < (ssize_t)sizeof report) {
      /* The kernel reports a reset, not an end, if the other side closed with unread data. */
      supervisor_lost(supervisor, got < 0 && errno == ECONNRESET);
      return;
    }
    supervisor_reports(supervisor, &report);
  }
}

void supervisors_trim_idle(struct guest *guest) {
  for (struct supervisor *s = guest->processes->supervisors, *next; s && guest->processes->idle_count > 1; s = next) {
    next = s->next;
    if (s->idle) supervisor_drop(s);
  }
}

void supervisors_prepare(struct guest *guest) { assign_waiting(guest); }

static int memory_of(const uint8_t *bytes, size_t length) {
  cleanup_fd int fd = memfd_create("request", MFD_CLOEXEC);
  if (fd < 0 || !write_full(fd, bytes, length)) return -1;
  return steal_fd(&fd);
}

void supervisors_run(struct process *process) {
  if (process->request_length > ORDER_BLOB_MAX) {
    process->request_fd = memory_of(process->request, process->request_length);
    if (process->request_fd < 0) {
      process_failed(process, STAGE_SETUP, errno);
      return;
    }
  }
  wait_in_line(process, false);
  assign_waiting(process->guest);
}
