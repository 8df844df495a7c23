#include "spawner/spawner-link.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "spawner/own-process.h"
#include "spawner/spawner.h"
#include "spawner/supervisor.h"

enum { RESTART_PAUSE_MS = 1000 };

/* Orders that the spawner has not answered yet, oldest first. */
struct pending {
  struct pending *next;
  struct forking *forking;
};

struct spawner {
  struct guest *guest;
  struct source source;
  struct own_process own;
  struct pending *first, **last;
  uint64_t started_at;
};

pid_t spawner_fork_here(struct guest *guest, const struct order *order, int fd) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  int keep[WORK_CGROUPS_MAX + 1];
  memcpy(keep, guest->work_fds, guest->work_fd_count * sizeof(int));
  keep[guest->work_fd_count] = fd;
  close_all_but(keep, guest->work_fd_count + 1);
  if (order->kind == ORDER_SUPERVISOR) supervisor_main(fd, guest->work_fds, guest->work_fd_count);
  worker_process(fd, &order->identity, guest->work_fds, guest->work_fd_count);
}

static void spawner_lost(struct guest *guest) {
  struct spawner *spawner = guest->spawner;
  source_close(&guest->loop, &spawner->source);
  struct pending *pending = spawner->first;
  spawner->first = NULL;
  spawner->last = &spawner->first;
  while (pending) {
    struct pending *next = pending->next;
    /* The child's pid would stay unknown. */
    if (pending->forking) pending->forking->done(pending->forking, -1, ECHILD);
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
  if (pending->forking) pending->forking->done(pending->forking, report.a, report.b);
  free(pending);
}

void spawner_start(struct guest *guest) {
  struct spawner *spawner = guest->spawner;
  if (spawner == NULL) {
    spawner = guest->spawner = xalloc(sizeof *spawner);
    spawner->guest = guest;
    spawner->source.fd = -1;
    own_process_add(guest, &spawner->own);
    spawner->last = &spawner->first;
  }
  /* A spawner that dies at once every time must not turn main into a fork loop. */
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
  spawner->own.pid = pid;
  source_open(&spawner->source, pair[0], spawner_ready);
  source_watch(&guest->loop, &spawner->source, EPOLLIN);
}

bool spawner_ask(struct guest *guest, const struct order *order, int fd, struct forking *forking) {
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
  pending->forking = forking;
  *spawner->last = pending;
  spawner->last = &pending->next;
  return true;
}

bool spawner_rouse(struct guest *guest, bool idle_too) {
  struct spawner *spawner = guest->spawner;
  bool waiting = spawner->first != NULL;
  /* Resuming it has not helped for too long: kill it, and its pending requests fail. */
  if ((waiting || idle_too) && !own_process_rouse(&spawner->own)) kill(spawner->own.pid, SIGKILL);
  return waiting;
}

void spawner_reaped(struct guest *guest, pid_t pid) {
  if (pid == guest->spawner->own.pid) guest->spawner->own.pid = 0;
}
