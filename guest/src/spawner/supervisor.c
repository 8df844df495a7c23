#include "spawner/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "spawner/leader.h"
#include "spawner/order.h"
#include "base/privilege.h"
#include "base/proc.h"

enum { STOP_PASSES = 8 };
#define OOM_SCORE "500"

struct state {
  int socket;
  const int *work_fds;
  size_t work_fd_count;
  pid_t self;
  pid_t leader; /* 0 once reaped */
  bool busy;    /* a tree exists, or its end has not been reported yet */
  bool killing;
  int kill_passes;
  uint64_t next_pass_ms;
};

static void on_child(int number) { (void)number; }

static void report(struct state *state, uint32_t kind, int a, int b, bool empty) {
  struct report message = {.kind = kind, .a = a, .b = b, .empty = empty};
  if (!message_send(state->socket, &message, sizeof message, NULL, 0, NULL, 0, 0)) {
    /* Main has ended: no process may remain without it. The loop sees the end of the socket next. */
  }
}

/* Reaps every child that has ended. */
static void reap(struct state *state) {
  bool leader_ended = false, empty = false;
  int leader_status = 0;
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0) {
      if (errno == EINTR) continue;
      empty = true;
      break;
    }
    if (pid == 0) break;
    if (pid != state->leader) continue;
    state->leader = 0;
    leader_ended = true;
    leader_status = status;
  }
  if (!state->busy) return;
  if (empty) state->busy = state->killing = false;
  if (leader_ended)
    report(state, REPORT_ENDED, leader_status, 0, empty);
  else if (empty)
    report(state, REPORT_EMPTY, 0, 0, true);
}

/*
 * Signals every descendant, and its process group too: the kernel serializes group signals and forks, so a child that
 * is forked during the scan cannot escape. All those groups belong to the tree, because each leader starts a session.
 */
static void signal_tree(struct state *state, int number) {
  struct pids pids = {0};
  proc_descendants(state->self, &pids);
  pid_t own_group = getpgrp(), last_group = 0;
  for (size_t i = 0; i < pids.count; i++) {
    pid_t pid = pids.list[i], group = getpgid(pid);
    /* Groups only get signals that stop or kill: a second delivery of any other could be noticed. */
    bool harmless = number == SIGKILL || number == SIGSTOP;
    if (harmless && group > 1 && group != own_group && group != last_group) {
      kill(-group, number);
      last_group = group;
    }
    kill(pid, number);
  }
  pids_free(&pids);
}

/* One round against a tree that may fork as fast as it can: stop everything, then kill what was stopped. */
static void kill_pass(struct state *state) {
  struct pids pids = {0};
  state->next_pass_ms = now_ms() + (state->kill_passes < 4 ? 1 : 10);
  size_t before = 0;
  if (state->kill_passes++ > 0) {
    for (int pass = 0; pass < STOP_PASSES; pass++) {
      signal_tree(state, SIGSTOP);
      proc_descendants(state->self, &pids);
      if (pids.count == before) break;
      before = pids.count;
    }
  }
  signal_tree(state, SIGKILL);
  pids_free(&pids);
}

static void run(struct state *state, struct order *order, uint8_t *blob, int *fds, size_t fd_count) {
  struct leader leader = {
      .order = order,
      .request = blob,
      .request_length = order->blob_length,
      .work_fds = state->work_fds,
      .work_fd_count = state->work_fd_count,
  };
  int stage = STAGE_SETUP, error = EINVAL;
  uint8_t *mapped = NULL;
  if (order->blob_in_memory && fd_count > 0) {
    mapped = mmap(NULL, order->blob_length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[fd_count - 1], 0);
    if (mapped == MAP_FAILED) mapped = NULL;
    leader.request = mapped;
    fd_count--;
  }
  for (size_t i = 0; i < 3; i++) leader.fds[i] = fds[fd_count == 3 ? i : 0];
  pid_t pid = -1;
  if (leader.request != NULL && (fd_count == 3 || fd_count == 1)) {
    state->busy = true;
    state->killing = false;
    state->kill_passes = 0;
    pid = leader_start(&leader, &stage, &error);
  }
  if (mapped) munmap(mapped, order->blob_length);
  if (pid < 0) {
    state->busy = false;
    report(state, REPORT_FAILED, stage, error, true);
    return;
  }
  state->leader = pid;
  report(state, REPORT_STARTED, pid, 0, false);
}

static void obey(struct state *state, uint8_t *blob) {
  struct order order;
  int fds[ORDER_FDS_MAX];
  size_t fd_count = ORDER_FDS_MAX;
  ssize_t got = message_receive(state->socket, &order, sizeof order, blob, ORDER_BLOB_MAX, fds, &fd_count, MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return;
  if (got < (ssize_t)sizeof order) {
    /* Main has ended or no longer needs us. Our processes do not outlive us. */
    struct timespec pause = {.tv_nsec = 2000000};
    for (int pass = 0; pass < 500 && state->busy; pass++) {
      kill_pass(state);
      reap(state);
      if (state->busy) nanosleep(&pause, NULL);
    }
    _exit(0);
  }
  switch (order.kind) {
    case ORDER_RUN:
      run(state, &order, blob, fds, fd_count);
      break;
    case ORDER_SIGNAL:
      if (order.tree)
        signal_tree(state, order.signal);
      else if (state->leader > 0)
        kill(state->leader, order.signal);
      break;
    case ORDER_KILL:
      state->killing = state->busy;
      state->next_pass_ms = 0;
      break;
    default:
      break;
  }
  for (size_t i = 0; i < fd_count; i++) close(fds[i]);
}

/*
 * Commands inherit this score, so the kernel kills them for memory before the guest's own processes. We raise it here
 * and not in each command, where opening a file of /proc would cost a tenth of the whole start. A supervisor and its
 * commands have the same score, so the kernel kills the largest of them.
 */
static void raise_oom_score(void) {
  cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0 && write(fd, OOM_SCORE, sizeof OOM_SCORE - 1) < 0) { /* best effort */
  }
}

void supervisor_main(int socket, const int *work_fds, size_t work_fd_count) {
  struct state state = {.socket = socket, .work_fds = work_fds, .work_fd_count = work_fd_count, .self = getpid()};
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  prctl(PR_SET_NAME, "caisson-super", 0, 0, 0);
  raise_oom_score();
  hide_self();
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGCHLD, &action, NULL);
  sigset_t blocked, open_mask;
  sigfillset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  sigfillset(&open_mask);
  sigdelset(&open_mask, SIGCHLD);

  report(&state, REPORT_READY, state.self, 0, true);
  uint8_t *blob = malloc(ORDER_BLOB_MAX);
  if (blob == NULL) die("out of memory");
  for (;;) {
    struct pollfd poll_fd = {.fd = socket, .events = POLLIN};
    /* While killing, wake up again soon: a process may have forked or be slow to die. */
    struct timespec soon = {.tv_nsec = 1000000};
    int count = ppoll(&poll_fd, 1, state.killing ? &soon : NULL, &open_mask);
    if (count > 0) obey(&state, blob);
    reap(&state);
    if (state.killing && now_ms() >= state.next_pass_ms) {
      kill_pass(&state);
      reap(&state);
    }
  }
}
