/* The processes that serve file requests: starts, feeds, checks and dismisses them. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "files/file-requests.h"
#include "files/files.h"

enum { IDLE_KEEP_MS = 30000, DISMISS_GRACE_MS = 1000 };

static void worker_forked(struct forking *forking, pid_t pid, int error);

void file_worker_free(struct file_worker *worker) {
  struct guest *guest = worker->guest;
  struct file_worker **link = &guest->file_requests->workers;
  while (*link != worker) link = &(*link)->next;
  *link = worker->next;
  guest->file_requests->worker_count--;
  timer_clear(&guest->loop, &worker->kill_timer);
  source_close(&guest->loop, &worker->source);
  source_close(&guest->loop, &worker->exit);
  own_process_remove(guest, &worker->own);
  free(worker->in);
  loop_free_later(&guest->loop, worker);
  if (worker->dismissed) fence_check(guest);
}

void file_worker_signal(struct file_worker *worker, int number) {
  /* Uses the pidfd if there is one: the pid may long belong to another process. */
  if (worker->exit.fd >= 0)
    syscall(SYS_pidfd_send_signal, worker->exit.fd, number, NULL, 0);
  else if (worker->own.pid > 0)
    kill(worker->own.pid, number);
}

static void on_grace_over(struct timer *timer) {
  struct file_worker *worker = container_of(timer, struct file_worker, kill_timer);
  file_worker_signal(worker, SIGKILL);
  file_worker_free(worker);
  file_requests_assign(worker->guest);
}

static void on_exit_seen(struct source *source, uint32_t events) {
  (void)events;
  struct file_worker *worker = container_of(source, struct file_worker, exit);
  file_worker_free(worker);
  file_requests_assign(worker->guest);
}

void file_worker_dismiss(struct file_worker *worker) {
  if (worker->dismissed) return;
  worker->dismissed = true;
  worker->request = NULL;
  source_close(&worker->guest->loop, &worker->source);
  if (worker->own.pid == 0) return; /* still being forked: worker_forked continues */
  file_worker_signal(worker, SIGTERM);
  source_watch(&worker->guest->loop, &worker->exit, EPOLLIN);
  worker->kill_timer.fire = on_grace_over;
  timer_set(&worker->guest->loop, &worker->kill_timer, worker->guest->loop.now + DISMISS_GRACE_MS);
}

bool file_worker_fork(struct file_worker *worker) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return false;
  int size = STREAM_WINDOW;
  setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  source_open(&worker->source, pair[0], file_worker_ready);
  worker->own.pid = 0;
  rouse_soon(worker->guest);
  struct order order = {.kind = ORDER_WORKER, .identity = worker->identity};
  cleanup_fd int theirs = pair[1];
  worker->forking.done = worker_forked;
  if (!worker->here && spawner_ask(worker->guest, &order, theirs, &worker->forking)) return true;
  pid_t pid = spawner_fork_here(worker->guest, &order, theirs);
  worker_forked(&worker->forking, pid, pid < 0 ? errno : 0);
  return true;
}

struct file_worker *file_worker_new(struct guest *guest, const struct identity *identity) {
  struct file_worker *worker = calloc(1, sizeof *worker);
  if (worker == NULL) return NULL;
  *worker = (struct file_worker){.guest = guest, .next = guest->file_requests->workers, .identity = *identity, .exit.fd = -1, .source.fd = -1};
  guest->file_requests->workers = worker;
  guest->file_requests->worker_count++;
  own_process_add(guest, &worker->own);
  return worker;
}

static void worker_forked(struct forking *forking, pid_t pid, int error) {
  struct file_worker *worker = container_of(forking, struct file_worker, forking);
  struct guest *guest = worker->guest;
  if (pid > 0) {
    worker->own.pid = pid;
    source_open(&worker->exit, (int)syscall(SYS_pidfd_open, pid, 0), on_exit_seen);
    if (worker->dismissed) {
      worker->dismissed = false;
      file_worker_dismiss(worker);
    } else if (worker->source.fd >= 0) {
      file_worker_pump(worker);
    }
    return;
  }
  /*
   * The work cgroups are full, or the spawner died: the main process forks the worker, and sends the request from its
   * beginning.
   */
  if (!worker->dismissed && !worker->here && worker->request) {
    source_close(&guest->loop, &worker->source);
    worker->here = true;
    worker->request->sent = 0;
    if (file_worker_fork(worker)) return;
  }
  struct file_request *request = worker->request;
  worker->own.pid = -1;
  if (request) file_request_fail(request, error, "cannot start a file worker");
  file_worker_free(worker);
}

void file_worker_lost(struct file_worker *worker) {
  struct guest *guest = worker->guest;
  if (worker->request) file_request_fail(worker->request, EIO, "the file worker ended before it answered");
  if (worker->own.pid == 0)
    file_worker_dismiss(worker); /* its pid is not known yet */
  else
    file_worker_free(worker);
  file_requests_assign(guest);
}

void file_worker_pump(struct file_worker *worker) {
  struct file_request *request = worker->request;
  struct loop *loop = &worker->guest->loop;
  bool more = false;
  if (request) {
    while (request->sent < request->to.length) {
      ssize_t put = send(worker->source.fd, request->to.data + request->sent, request->to.length - request->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno != EAGAIN) {
        /* It may have answered before it ended: reading will tell. */
        request->sent = request->to.length;
        break;
      }
      if (put < 0) break;
      request->sent += (size_t)put;
    }
    more = request->sent < request->to.length;
    if (!more && worker->own.pid > 0) {
      request->sent = request->to.length = 0;
      if (request->to.capacity > BUFFER_KEPT_BYTES) frame_writer_free(&request->to);
    }
  }
  bool read = request == NULL || !connection_busy(request->stream->connection);
  source_watch(loop, &worker->source, (read ? EPOLLIN : 0) | (more ? EPOLLOUT : 0));
}

void file_workers_trim_idle(struct guest *guest) {
  if (guest->file_requests == NULL) return;
  rouse_soon(guest);
  for (struct file_worker *w = guest->file_requests->workers, *next; w; w = next) {
    next = w->next;
    if (w->request == NULL && !w->dismissed && w->own.pid > 0 && guest->loop.now - w->idle_since > IDLE_KEEP_MS) file_worker_dismiss(w);
  }
}

bool file_workers_rouse(struct guest *guest) {
  bool waiting = false;
  for (struct file_worker *w = guest->file_requests ? guest->file_requests->workers : NULL, *next; w; w = next) {
    next = w->next;
    if (w->request == NULL || w->dismissed) continue;
    /* A watch stays open until the host cancels it; the heartbeat checks its worker. */
    waiting = waiting || w->request->type != FRAME_WATCH;
    if (own_process_rouse(&w->own)) continue;
    file_request_fail(w->request, EAGAIN, "a process in the sandbox keeps stopping the file worker");
    file_worker_signal(w, SIGKILL);
    file_worker_dismiss(w);
  }
  return waiting;
}
