/*
 * File requests: each is handed to a worker process that runs as the request's user, and its frames are carried both ways.
 * A worker serves one request at a time and is kept warm for the next; when all are busy another is forked, up to a bound.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "connection/guest.h"
#include "files/relay.h"

enum {
  WORKERS_MAX = 64,
  WORKERS_IDLE_MAX = 2,
  QUEUED_MAX = 1024,
  IDLE_KEEP_MS = 30000,
  DISMISS_GRACE_MS = 1000,
  /* The host may have a window of DATA under way, and frames that need no credit. */
  TO_WORKER_MAX = STREAM_WINDOW + 2 * FRAME_PAYLOAD_MAX,
  READ_STEP = 65536,
  READ_BUDGET = 1048576,
};

static void worker_ready(struct source *source, uint32_t events);
static void assign_queued(struct guest *guest);

static struct relays *relays_of(struct guest *guest) {
  if (guest->relays == NULL) guest->relays = xalloc(sizeof *guest->relays);
  return guest->relays;
}

/* ---- workers ---- */

static void worker_free(struct file_worker *worker) {
  struct guest *guest = worker->guest;
  struct file_worker **link = &guest->relays->workers;
  while (*link != worker) link = &(*link)->next;
  *link = worker->next;
  guest->relays->worker_count--;
  timer_clear(&guest->loop, &worker->kill_timer);
  source_close(&guest->loop, &worker->source);
  source_close(&guest->loop, &worker->exit);
  free(worker->in);
  loop_free_later(&guest->loop, worker);
  if (worker->dismissed) fence_check(guest);
}

void worker_signal(struct file_worker *worker, int number) {
  /* By descriptor where the kernel can: the number may long be another process's. */
  if (worker->exit.fd >= 0)
    syscall(SYS_pidfd_send_signal, worker->exit.fd, number, NULL, 0);
  else if (worker->pid > 0)
    kill(worker->pid, number);
}

static void on_grace_over(struct timer *timer) {
  struct file_worker *worker = container_of(timer, struct file_worker, kill_timer);
  worker_signal(worker, SIGKILL);
  worker_free(worker);
  assign_queued(worker->guest);
}

static void on_exit_seen(struct source *source, uint32_t events) {
  (void)events;
  struct file_worker *worker = container_of(source, struct file_worker, exit);
  worker_free(worker);
  assign_queued(worker->guest);
}

/* Lets it clean up what is half done, for a moment; then it is killed. */
void worker_dismiss(struct file_worker *worker) {
  if (worker->dismissed) return;
  worker->dismissed = true;
  worker->relay = NULL;
  source_close(&worker->guest->loop, &worker->source);
  if (worker->pid == 0) return; /* on its way: relay_spawned goes on */
  worker_signal(worker, SIGTERM);
  source_watch(&worker->guest->loop, &worker->exit, EPOLLIN);
  worker->kill_timer.fire = on_grace_over;
  timer_set(&worker->guest->loop, &worker->kill_timer, worker->guest->loop.now + DISMISS_GRACE_MS);
}

static bool worker_fork(struct file_worker *worker) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return false;
  int size = STREAM_WINDOW;
  setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  source_open(&worker->source, pair[0], worker_ready);
  worker->pid = 0;
  rouse_soon(worker->guest);
  spawner_worker(worker->guest, worker, &worker->identity, pair[1], worker->here);
  return true;
}

static struct file_worker *worker_new(struct guest *guest, const struct identity *identity) {
  struct file_worker *worker = calloc(1, sizeof *worker);
  if (worker == NULL) return NULL;
  *worker = (struct file_worker){.guest = guest, .next = guest->relays->workers, .identity = *identity, .exit.fd = -1, .source.fd = -1};
  guest->relays->workers = worker;
  guest->relays->worker_count++;
  return worker;
}

static void relay_end(struct relay *relay) {
  if (relay->worker) relay->worker->relay = NULL;
  relay->stream->relay = NULL;
  stream_remove(relay->stream);
  frame_writer_free(&relay->to);
  loop_free_later(&relay->stream->connection->guest->loop, relay);
}

void relay_fail(struct relay *relay, int error, const char *message) {
  struct stream *stream = relay->stream;
  reply_error(stream->connection, stream->id, error == EAGAIN || error == ENOMEM ? ERR_BUSY : ERR_IO, error, "%s", message);
  relay_end(relay);
}

static void worker_lost(struct file_worker *worker) {
  struct guest *guest = worker->guest;
  if (worker->relay) relay_fail(worker->relay, EIO, "the file worker ended before it answered");
  if (worker->pid == 0)
    worker_dismiss(worker); /* its pid is still to come */
  else
    worker_free(worker);
  assign_queued(guest);
}

/* Gives the worker what its socket takes. */
static void worker_pump(struct file_worker *worker) {
  struct relay *relay = worker->relay;
  struct loop *loop = &worker->guest->loop;
  bool more = false;
  if (relay) {
    while (relay->sent < relay->to.length) {
      ssize_t put = send(worker->source.fd, relay->to.data + relay->sent, relay->to.length - relay->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno != EAGAIN) {
        /* Perhaps it answered before it ended: reading tells. */
        relay->sent = relay->to.length;
        break;
      }
      if (put < 0) break;
      relay->sent += (size_t)put;
    }
    more = relay->sent < relay->to.length;
    if (!more && worker->pid > 0) {
      relay->sent = relay->to.length = 0;
      if (relay->to.capacity > READ_STEP) frame_writer_free(&relay->to);
    }
  }
  bool read = relay == NULL || !connection_busy(relay->stream->connection);
  source_watch(loop, &worker->source, (read ? EPOLLIN : 0) | (more ? EPOLLOUT : 0));
}

static void relay_give(struct relay *relay, struct file_worker *worker) {
  relay->worker = worker;
  worker->relay = relay;
  rouse_soon(worker->guest);
  worker_pump(worker);
}

static bool same_identity(const struct identity *a, const struct identity *b) {
  return a->uid == b->uid && a->gid == b->gid && a->change == b->change && a->keep_caps == b->keep_caps;
}

/* False when every worker is busy and there may be no more of them. */
static bool relay_assign(struct guest *guest, struct relay *relay) {
  struct relays *relays = relays_of(guest);
  struct file_worker *spare = NULL;
  for (struct file_worker *w = relays->workers; w; w = w->next) {
    if (w->relay || w->dismissed || w->source.fd < 0) continue;
    spare = w;
    if (!same_identity(&w->identity, &relay->identity)) continue;
    relay_give(relay, w);
    return true;
  }
  if (relays->worker_count >= WORKERS_MAX) {
    if (spare) worker_dismiss(spare); /* another user's: its place is needed */
    return false;
  }
  struct file_worker *worker = worker_new(guest, &relay->identity);
  if (worker == NULL) {
    relay_fail(relay, ENOMEM, "out of memory");
    return true;
  }
  relay->worker = worker;
  worker->relay = relay;
  if (!worker_fork(worker)) {
    int error = errno;
    worker->relay = NULL;
    relay->worker = NULL;
    worker_free(worker);
    relay_fail(relay, error, "no descriptors left for a file worker");
    return true;
  }
  if (worker->relay && worker->source.fd >= 0) worker_pump(worker);
  return true;
}

static void assign_queued(struct guest *guest) {
  struct relays *relays = guest->relays;
  while (relays->first) {
    struct relay *relay = relays->first;
    relays->first = relay->next;
    if (relays->first == NULL) relays->last = NULL;
    relays->queued--;
    if (relay_assign(guest, relay)) continue;
    relay->next = relays->first;
    relays->first = relay;
    if (relays->last == NULL) relays->last = relay;
    relays->queued++;
    return;
  }
}

void relay_spawned(struct file_worker *worker, pid_t pid, int error) {
  struct guest *guest = worker->guest;
  if (pid > 0) {
    worker->pid = pid;
    source_open(&worker->exit, (int)syscall(SYS_pidfd_open, pid, 0), on_exit_seen);
    if (worker->dismissed) {
      worker->dismissed = false;
      worker_dismiss(worker);
    } else if (worker->source.fd >= 0) {
      worker_pump(worker);
    }
    return;
  }
  /* The work cgroups are full, or the spawner died: main forks it, and the request is sent from its beginning. */
  if (!worker->dismissed && !worker->here && worker->relay) {
    source_close(&guest->loop, &worker->source);
    worker->here = true;
    worker->relay->sent = 0;
    if (worker_fork(worker)) return;
  }
  struct relay *relay = worker->relay;
  worker->pid = -1;
  if (relay) relay_fail(relay, error, "no room for a file worker");
  worker_free(worker);
}

bool relay_owns(const struct guest *guest, pid_t pid) {
  for (const struct file_worker *w = guest->relays ? guest->relays->workers : NULL; w; w = w->next) {
    if (w->pid == pid) return true;
  }
  return false;
}

/* ---- frames from the worker ---- */

/* The answer that closes a request. */
static bool closes(uint8_t request, uint8_t answer) {
  bool stays_open = request == FRAME_READ || request == FRAME_TAR_OUT || request == FRAME_WATCH;
  return answer == FRAME_ERROR || answer == FRAME_END || (answer == FRAME_OK && !stays_open);
}

static bool may_come(uint8_t type) {
  return type == FRAME_OK || type == FRAME_ERROR || type == FRAME_ENTRY || type == FRAME_DATA || type == FRAME_END ||
         type == FRAME_CREDIT || type == FRAME_WATCH_EVENT;
}

static void request_closed(struct file_worker *worker, uint8_t answer) {
  struct relay *relay = worker->relay;
  struct guest *guest = worker->guest;
  bool takes_data = relay->type == FRAME_WRITE || relay->type == FRAME_TAR_IN;
  bool clean = relay->sent == relay->to.length && !(takes_data && answer == FRAME_ERROR) && worker->in_length == 0;
  relay_end(relay);
  size_t idle = 0;
  for (struct file_worker *w = guest->relays->workers; w; w = w->next) idle += w->relay == NULL && !w->dismissed && w != worker;
  worker->idle_since = guest->loop.now;
  if (!clean || worker->here || (idle >= WORKERS_IDLE_MAX && guest->relays->queued == 0))
    worker_dismiss(worker);
  else
    source_watch(&guest->loop, &worker->source, EPOLLIN);
  assign_queued(guest);
}

/* Carries every whole frame on. False when the worker does not keep to the protocol: it is not trusted more than its user is. */
static bool take_frames(struct file_worker *worker) {
  size_t at = 0;
  uint8_t closed_by = 0;
  while (worker->in_length - at >= FRAME_HEADER_BYTES && closed_by == 0) {
    struct frame_header header;
    struct relay *relay = worker->relay;
    if (relay == NULL || !frame_header_parse(worker->in + at, FROM_GUEST, &header)) return false;
    if (!may_come(header.type) || header.stream != relay->stream->id) return false;
    if (worker->in_length - at < FRAME_HEADER_BYTES + (size_t)header.length) break;
    struct iovec part = {worker->in + at, FRAME_HEADER_BYTES + (size_t)header.length};
    struct connection *connection = relay->stream->connection;
    if (part.iov_len > READ_STEP / 4) {
      connection_send(connection, &part, 1);
    } else {
      frame_begin(&connection->out, header.type, header.stream);
      frame_raw(&connection->out, worker->in + at + FRAME_HEADER_BYTES, header.length);
      frame_end(&connection->out);
      connection_touch(connection);
    }
    /* A broken connection has cancelled all its streams by now. */
    if (worker->relay != relay) return true;
    at += part.iov_len;
    if (closes(relay->type, header.type)) closed_by = header.type;
  }
  worker->in_length -= at;
  if (at > 0 && worker->in_length > 0) memmove(worker->in, worker->in + at, worker->in_length);
  if (closed_by) request_closed(worker, closed_by);
  return true;
}

static bool make_room(struct file_worker *worker) {
  size_t needed = worker->in_capacity ? worker->in_capacity : 4096;
  if (worker->in_length == worker->in_capacity) needed *= 2;
  if (needed > FRAME_HEADER_BYTES + (size_t)FRAME_PAYLOAD_MAX) needed = FRAME_HEADER_BYTES + (size_t)FRAME_PAYLOAD_MAX;
  if (needed <= worker->in_capacity) return true;
  uint8_t *grown = realloc(worker->in, needed);
  if (grown == NULL) return false;
  worker->in = grown;
  worker->in_capacity = needed;
  return true;
}

static void worker_read(struct file_worker *worker) {
  size_t budget = READ_BUDGET;
  while (worker->source.fd >= 0 && budget > 0) {
    if (worker->relay && connection_busy(worker->relay->stream->connection)) {
      worker_pump(worker); /* stops reading until relay_resume */
      return;
    }
    if (!make_room(worker)) {
      worker_lost(worker);
      return;
    }
    size_t room = worker->in_capacity - worker->in_length;
    ssize_t got = recv(worker->source.fd, worker->in + worker->in_length, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0 && worker->pid == 0) {
      /* The spawner could not fork it, most likely; its answer decides what is next. */
      source_watch(&worker->guest->loop, &worker->source, 0);
      return;
    }
    if (got <= 0) {
      worker_lost(worker);
      return;
    }
    worker->in_length += (size_t)got;
    budget -= (size_t)got < budget ? (size_t)got : budget;
    if (!take_frames(worker)) {
      worker_signal(worker, SIGKILL);
      worker_lost(worker);
      return;
    }
    if ((size_t)got < room) break;
  }
  if (worker->in_length == 0 && worker->in_capacity > READ_STEP && worker->relay == NULL) {
    free(worker->in);
    worker->in = NULL;
    worker->in_capacity = 0;
  }
}

static void worker_ready(struct source *source, uint32_t events) {
  struct file_worker *worker = container_of(source, struct file_worker, source);
  if (events & EPOLLOUT) worker_pump(worker);
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) worker_read(worker);
}

/* ---- frames from the host ---- */

static void relay_append(struct relay *relay, const struct frame_header *header, const uint8_t *payload) {
  frame_begin(&relay->to, header->type, header->stream);
  frame_raw(&relay->to, payload, header->length);
  frame_end(&relay->to);
}

bool request_file(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  struct relays *relays = relays_of(guest);
  struct field field;
  struct identity identity;
  const char *why;
  cleanup_free char *user = field_find(payload, header->length, 5, &field) ? field_text(&field) : NULL;
  if (!identity_of(guest, user, &identity, &why)) {
    reply_error(connection, header->stream, ERR_DENIED, 0, "%s", why);
    return true;
  }
  if (guest->shutting_down || relays->queued >= QUEUED_MAX) {
    reply_error(connection, header->stream, ERR_BUSY, 0, guest->shutting_down ? "shutting down" : "too many file requests wait (%d)", QUEUED_MAX);
    return true;
  }
  struct stream *stream = stream_open(connection, header->stream, STREAM_FILE);
  struct relay *relay = stream ? calloc(1, sizeof *relay) : NULL;
  if (relay == NULL) {
    if (stream) {
      reply_error(connection, header->stream, ERR_BUSY, ENOMEM, "out of memory");
      stream_remove(stream);
    }
    return true;
  }
  *relay = (struct relay){.stream = stream, .identity = identity, .type = header->type};
  stream->relay = relay;
  relay_append(relay, header, payload);
  if (relays->first == NULL && relay_assign(guest, relay)) return true;
  if (relays->last)
    relays->last->next = relay;
  else
    relays->first = relay;
  relays->last = relay;
  relays->queued++;
  return true;
}

bool relay_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload) {
  struct relay *relay = stream->relay;
  if (header->type == FRAME_CANCEL) {
    relay_cancel(stream);
    return true;
  }
  if (header->type != FRAME_DATA && header->type != FRAME_END && header->type != FRAME_CREDIT) return true;
  if (relay->to.length - relay->sent > TO_WORKER_MAX) return false;
  struct file_worker *worker = relay->worker;
  if (worker && worker->pid > 0 && relay->to.length == 0) {
    /* Nothing waits before it: hand it over without a copy, and keep only what did not fit. */
    uint8_t head[FRAME_HEADER_BYTES];
    frame_header_encode(head, header->type, header->stream, header->length);
    struct iovec parts[2] = {{head, sizeof head}, {(void *)payload, header->length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = header->length > 0 ? 2 : 1};
    ssize_t put = sendmsg(worker->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put == (ssize_t)(sizeof head + header->length)) return true;
    relay_append(relay, header, payload);
    relay->sent = put > 0 ? (size_t)put : 0;
  } else {
    if (relay->sent > READ_STEP && worker && worker->pid > 0) {
      /* Without this, a queue that is never quite empty would grow for ever. */
      memmove(relay->to.data, relay->to.data + relay->sent, relay->to.length - relay->sent);
      relay->to.length -= relay->sent;
      relay->sent = 0;
    }
    relay_append(relay, header, payload);
  }
  if (worker && worker->source.fd >= 0) worker_pump(worker);
  return true;
}

void relay_cancel(struct stream *stream) {
  struct relay *relay = stream->relay;
  struct guest *guest = stream->connection->guest;
  struct relays *relays = guest->relays;
  struct file_worker *worker = relay->worker;
  if (worker == NULL) {
    struct relay *before = NULL;
    for (struct relay *r = relays->first; r; before = r, r = r->next) {
      if (r != relay) continue;
      if (before)
        before->next = r->next;
      else
        relays->first = r->next;
      if (relays->last == r) relays->last = before;
      relays->queued--;
      break;
    }
  }
  relay_end(relay);
  if (worker) worker_dismiss(worker);
}

void relay_resume(struct connection *connection) {
  for (int i = 0; i < STREAM_BUCKETS; i++) {
    for (struct stream *stream = connection->streams[i]; stream; stream = stream->next) {
      if (stream->kind == STREAM_FILE && stream->relay->worker) worker_pump(stream->relay->worker);
      if (stream->kind == STREAM_PORT) port_resume(stream);
    }
  }
}

void relay_trim_idle(struct guest *guest) {
  if (guest->relays == NULL) return;
  rouse_soon(guest);
  for (struct file_worker *w = guest->relays->workers, *next; w; w = next) {
    next = w->next;
    if (w->relay == NULL && !w->dismissed && w->pid > 0 && guest->loop.now - w->idle_since > IDLE_KEEP_MS) worker_dismiss(w);
  }
}
