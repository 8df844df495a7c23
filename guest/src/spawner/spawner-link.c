/* Main's side of the spawner and the supervisors: who runs what, and what happens when one of them fails. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "connection/guest.h"
#include "base/proc.h"
#include "spawner/spawner.h"
#include "processes/supervisor.h"

enum { IDLE_MAX = 2, COMING_MAX = 8, RESTART_PAUSE_MS = 1000, ORPHAN_PAUSE_MS = 20, ORPHAN_LOOKS = 25 };

/* What the spawner was asked for and has not answered yet, in order. */
struct pending {
  struct pending *next;
  struct supervisor *supervisor;
  struct file_worker *worker;
};

struct spawner {
  struct guest *guest;
  struct source source;
  pid_t pid;
  unsigned stopped_looks;
  struct pending *first, **last;
  uint64_t started_at;
};

static void assign_waiting(struct guest *guest);
static void supervisor_ready(struct source *source, uint32_t events);

/* ---- forking in main ---- */

static pid_t fork_here(struct guest *guest, enum order_kind kind, const struct identity *identity, int fd) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  int keep[WORK_CGROUPS_MAX + 1];
  memcpy(keep, guest->work_fds, guest->work_fd_count * sizeof(int));
  keep[guest->work_fd_count] = fd;
  close_all_but(keep, guest->work_fd_count + 1);
  if (kind == ORDER_SUPERVISOR) supervisor_main(fd, guest->work_fds, guest->work_fd_count);
  worker_process(fd, identity, guest->work_fds, guest->work_fd_count);
}

/* ---- the spawner ---- */

static void spawner_lost(struct guest *guest) {
  struct spawner *spawner = guest->spawner;
  source_close(&guest->loop, &spawner->source);
  struct pending *pending = spawner->first;
  spawner->first = NULL;
  spawner->last = &spawner->first;
  while (pending) {
    struct pending *next = pending->next;
    /* A supervisor's own socket tells whether it lives; a worker's pid would stay unknown, so it is given up. */
    if (pending->worker) relay_spawned(pending->worker, -1, ECHILD);
    free(pending);
    pending = next;
  }
}

static void spawner_ready(struct source *source, uint32_t events) {
  (void)events;
  struct spawner *spawner = container_of(source, struct spawner, source);
  struct guest *guest = spawner->guest;
  struct report report;
  ssize_t got = message_receive(source->fd, &report, sizeof report, NULL, 0, NULL, NULL, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got < (ssize_t)sizeof report) {
    spawner_lost(guest);
    return;
  }
  struct pending *pending = spawner->first;
  if (pending == NULL) return;
  spawner->first = pending->next;
  if (spawner->first == NULL) spawner->last = &spawner->first;
  /* A supervisor reports by itself; when its fork failed, its socket ends. */
  if (pending->worker) relay_spawned(pending->worker, report.a, report.b);
  free(pending);
}

void spawner_start(struct guest *guest) {
  struct spawner *spawner = guest->spawner;
  if (spawner == NULL) {
    spawner = guest->spawner = xalloc(sizeof *spawner);
    spawner->guest = guest;
    spawner->source.fd = -1;
    spawner->last = &spawner->first;
  }
  /* One that dies at once, every time, must not turn main into a fork loop. */
  if (spawner->started_at != 0 && now_ms() - spawner->started_at < RESTART_PAUSE_MS) return;
  spawner->started_at = now_ms();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return;
  pid_t pid = fork();
  if (pid == 0) {
    int keep[WORK_CGROUPS_MAX + 1];
    memcpy(keep, guest->work_fds, guest->work_fd_count * sizeof(int));
    keep[guest->work_fd_count] = pair[1];
    close_all_but(keep, guest->work_fd_count + 1);
    spawner_main(pair[1], guest->work_fds, guest->work_fd_count);
  }
  close(pair[1]);
  if (pid < 0) {
    close(pair[0]);
    return;
  }
  spawner->pid = pid;
  source_open(&spawner->source, pair[0], spawner_ready);
  source_watch(&guest->loop, &spawner->source, EPOLLIN);
}

/* False when there is no spawner to ask; then main does it. */
static bool ask_spawner(struct guest *guest, const struct order *order, int fd, struct supervisor *supervisor, struct file_worker *worker) {
  struct spawner *spawner = guest->spawner;
  if (spawner->source.fd < 0) spawner_start(guest);
  if (spawner->source.fd < 0) return false;
  struct pending *pending = calloc(1, sizeof *pending);
  if (pending == NULL) return false;
  if (!message_send(spawner->source.fd, order, sizeof *order, NULL, 0, &fd, 1, MSG_DONTWAIT)) {
    free(pending);
    return false;
  }
  rouse_soon(guest);
  *pending = (struct pending){.supervisor = supervisor, .worker = worker};
  *spawner->last = pending;
  spawner->last = &pending->next;
  return true;
}

void spawner_worker(struct guest *guest, struct file_worker *worker, const struct identity *identity, int fd, bool here) {
  struct order order = {.kind = ORDER_WORKER, .identity = *identity};
  if (!here && ask_spawner(guest, &order, fd, NULL, worker)) {
    close(fd);
    return;
  }
  pid_t pid = fork_here(guest, ORDER_WORKER, identity, fd);
  int error = errno;
  close(fd);
  relay_spawned(worker, pid, pid < 0 ? error : 0);
}

/* ---- supervisors ---- */

static void supervisor_drop(struct supervisor *supervisor) {
  struct guest *guest = supervisor->guest;
  if (supervisor->idle) guest->idle_count--;
  if (!supervisor->ready) guest->coming_count--;
  source_close(&guest->loop, &supervisor->source);
  if (supervisor->next) supervisor->next->previous = supervisor->previous;
  if (supervisor->previous)
    supervisor->previous->next = supervisor->next;
  else
    guest->supervisors = supervisor->next;
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
  *supervisor = (struct supervisor){.guest = guest, .next = guest->supervisors};
  source_open(&supervisor->source, pair[0], supervisor_ready);
  if (guest->supervisors) guest->supervisors->previous = supervisor;
  guest->supervisors = supervisor;
  guest->coming_count++;
  struct order order = {.kind = ORDER_SUPERVISOR};
  if (here || !ask_spawner(guest, &order, theirs, supervisor, NULL)) {
    supervisor->in_guest = true;
    supervisor->pid = fork_here(guest, ORDER_SUPERVISOR, NULL, theirs);
    if (supervisor->pid < 0) {
      int error = errno;
      supervisor_drop(supervisor);
      errno = error;
      return false;
    }
  }
  source_watch(&guest->loop, &supervisor->source, EPOLLIN);
  return true;
}

bool spawner_owns(const struct guest *guest, pid_t pid) {
  if ((guest->spawner && guest->spawner->pid == pid) || relay_owns(guest, pid)) return true;
  for (const struct supervisor *s = guest->supervisors; s; s = s->next) {
    if (s->pid == pid) return true;
  }
  return false;
}

/*
 * Only after a supervisor died: what it owned becomes ours, and has no one who answers for it. A dying process closes its
 * sockets before its children are handed on, so it takes several looks; and each orphan that dies may hand on more.
 */
static void orphans_kill(struct timer *timer) {
  struct guest *guest = container_of(timer, struct guest, orphan_timer);
  struct pids children = {0};
  proc_children(getpid(), &children);
  guest->orphan_looks--;
  for (size_t i = 0; i < children.count; i++) {
    if (spawner_owns(guest, children.list[i])) continue;
    kill(children.list[i], SIGKILL);
    guest->orphan_looks = ORPHAN_LOOKS;
  }
  pids_free(&children);
  if (guest->orphan_looks > 0) timer_set(&guest->loop, timer, now_ms() + ORPHAN_PAUSE_MS);
}

static void wait_in_line(struct process *process, bool in_front) {
  struct guest *guest = process->guest;
  process->waiting = true;
  process->waiting_next = in_front ? guest->waiting_first : NULL;
  if (in_front || guest->waiting_first == NULL) {
    guest->waiting_first = process;
    if (guest->waiting_last == NULL) guest->waiting_last = process;
  } else {
    guest->waiting_last->waiting_next = process;
    guest->waiting_last = process;
  }
}

void spawner_cancel(struct process *process) {
  if (!process->waiting) return;
  struct guest *guest = process->guest;
  struct process *before = NULL;
  for (struct process *p = guest->waiting_first; p; before = p, p = p->waiting_next) {
    if (p != process) continue;
    if (before)
      before->waiting_next = p->waiting_next;
    else
      guest->waiting_first = p->waiting_next;
    if (guest->waiting_last == p) guest->waiting_last = before;
    break;
  }
  process->waiting = false;
}

/* Hands the command over. False when this supervisor cannot be reached. */
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
  if (guest->waiting_first == NULL && (spent || guest->idle_count >= IDLE_MAX)) {
    supervisor_drop(supervisor);
    return;
  }
  supervisor->idle = true;
  guest->idle_count++;
  assign_waiting(guest);
}

static struct supervisor *idle_for(struct guest *guest, const struct process *process) {
  for (struct supervisor *s = guest->supervisors; s; s = s->next) {
    if (s->idle && (s->in_guest || !process->needs_here)) return s;
  }
  return NULL;
}

/* Brings together those who wait and those who are free, and orders more where it takes more. */
static void assign_waiting(struct guest *guest) {
  size_t waiting = 0;
  for (struct process *p = guest->waiting_first, *next; p; p = next) {
    next = p->waiting_next;
    struct supervisor *supervisor = idle_for(guest, p);
    if (supervisor == NULL) {
      waiting++;
      continue;
    }
    supervisor->idle = false;
    guest->idle_count--;
    spawner_cancel(p);
    if (supervisor_give(supervisor, p)) continue;
    /* It is dying; its socket says so soon. */
    wait_in_line(p, true);
    next = p;
    source_close(&guest->loop, &supervisor->source);
    supervisor_drop(supervisor);
  }
  size_t wanted = waiting > 0 ? waiting : guest->idle_count == 0 ? 1 : 0;
  if (wanted > COMING_MAX) wanted = COMING_MAX;
  if (guest->shutting_down) wanted = 0;
  bool here = guest->waiting_first && guest->waiting_first->needs_here;
  while (guest->coming_count < wanted) {
    if (supervisor_request(guest, here)) continue;
    if (waiting > 0 && guest->coming_count == 0) {
      struct process *first = guest->waiting_first;
      spawner_cancel(first);
      process_failed(first, STAGE_FORK, errno);
    }
    break;
  }
}

static int memory_of(const uint8_t *bytes, size_t length) {
  cleanup_fd int fd = memfd_create("request", MFD_CLOEXEC);
  if (fd < 0 || !write_full(fd, bytes, length)) return -1;
  return steal_fd(&fd);
}

void spawner_run(struct process *process) {
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

bool supervisor_send(struct supervisor *supervisor, const struct order *order) {
  return message_send(supervisor->source.fd, order, sizeof *order, NULL, 0, NULL, 0, MSG_DONTWAIT);
}

/* A supervisor has something to do for us while its command starts, and once the command is to end. */
static bool is_asked(const struct supervisor *supervisor) {
  const struct process *process = supervisor->process;
  return !supervisor->ready || (process && (process->state == PROCESS_STARTING || process->we_killed));
}

/*
 * From when it has its user's uid until it executes its program a leader can be stopped by others of that uid, and its supervisor, whose memory it borrows, waits
 * for it and hears nothing. One that is to end, or cannot be helped, is killed: its supervisor then goes on as with any other that ended.
 */
static void rouse_leader(struct supervisor *supervisor) {
  struct pids children = {0};
  proc_children(supervisor->pid, &children);
  for (size_t i = 0; i < children.count; i++) {
    bool helped = rouse(children.list[i], &supervisor->leader_stopped_looks);
    if (!helped || supervisor->process->why != KIND_NONE) kill(children.list[i], SIGKILL);
  }
  pids_free(&children);
}

bool spawner_rouse(struct guest *guest, bool idle_too) {
  struct spawner *spawner = guest->spawner;
  bool waiting = spawner->first != NULL;
  /* In vain for too long: what they have under way is lost with them, and is told so. */
  if ((waiting || idle_too) && !rouse(spawner->pid, &spawner->stopped_looks)) kill(spawner->pid, SIGKILL);
  for (struct supervisor *s = guest->supervisors; s; s = s->next) {
    if (is_asked(s)) waiting = true;
    else if (!idle_too) continue;
    if (!rouse(s->pid, &s->stopped_looks)) kill(s->pid, SIGKILL);
    if (s->process && s->process->state == PROCESS_STARTING) rouse_leader(s);
  }
  return waiting;
}

/* `unread`: it died before it took its order, so nothing of it was done. */
static void supervisor_lost(struct supervisor *supervisor, bool unread) {
  struct guest *guest = supervisor->guest;
  struct process *process = supervisor->process;
  bool came = supervisor->ready;
  supervisor_drop(supervisor);
  shutdown_check(guest);
  if (!came) {
    /* The spawner could not fork: at the limit of the work cgroups. Main is outside them. */
    if (guest->waiting_first) guest->waiting_first->needs_here = true;
    if (guest->waiting_first) assign_waiting(guest);
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
    guest->orphan_looks = ORPHAN_LOOKS;
    orphans_kill(&guest->orphan_timer);
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
      supervisor->guest->coming_count--;
      supervisor->pid = report->a;
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
      /* The end of the tree goes first: what the leader's end sets off can then let everything go at once. */
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
      /* The kernel says reset, not end, when the other side closed with something unread. */
      supervisor_lost(supervisor, got < 0 && errno == ECONNRESET);
      return;
    }
    supervisor_reports(supervisor, &report);
  }
}

bool supervisor_any_busy(const struct guest *guest) {
  for (const struct supervisor *s = guest->supervisors; s; s = s->next) {
    if (s->process) return true;
  }
  return false;
}

void spawner_trim_idle(struct guest *guest) {
  for (struct supervisor *s = guest->supervisors, *next; s && guest->idle_count > 1; s = next) {
    next = s->next;
    if (s->idle) supervisor_drop(s);
  }
}

void spawner_reaped(struct guest *guest, pid_t pid, int status) {
  (void)status;
  if (pid == guest->spawner->pid) guest->spawner->pid = 0;
}

void spawner_prepare(struct guest *guest) {
  guest->orphan_timer.fire = orphans_kill;
  assign_waiting(guest);
}
