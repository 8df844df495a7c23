/* Relays a file worker's answers to the host. A worker is trusted no more than its user. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "files/file-requests.h"

enum { WORKERS_IDLE_MAX = 2, READ_BUDGET = 1048576, COPIED_FRAME_BYTES = 16384 };

/* Whether the answer closes the request. */
static bool closes(uint8_t request, uint8_t answer) {
  bool stays_open = request == FRAME_READ || request == FRAME_TAR_OUT || request == FRAME_WATCH;
  return answer == FRAME_ERROR || answer == FRAME_END || (answer == FRAME_OK && !stays_open);
}

static bool may_come(uint8_t type) {
  return type == FRAME_OK || type == FRAME_ERROR || type == FRAME_ENTRY || type == FRAME_DATA || type == FRAME_END ||
         type == FRAME_CREDIT || type == FRAME_WATCH_EVENT;
}

static void request_closed(struct file_worker *worker, uint8_t answer) {
  struct file_request *request = worker->request;
  struct guest *guest = worker->guest;
  bool takes_data = request->type == FRAME_WRITE || request->type == FRAME_TAR_IN;
  bool clean = request->sent == request->to.length && !(takes_data && answer == FRAME_ERROR) && worker->in_length == 0;
  file_request_end(request);
  size_t idle = 0;
  for (struct file_worker *w = guest->file_requests->workers; w; w = w->next) idle += w->request == NULL && !w->dismissed && w != worker;
  worker->idle_since = guest->loop.now;
  if (!clean || worker->here || (idle >= WORKERS_IDLE_MAX && guest->file_requests->queued == 0))
    file_worker_dismiss(worker);
  else
    source_watch(&guest->loop, &worker->source, EPOLLIN);
  file_requests_assign(guest);
}

/* Relays every complete frame. Returns false if the worker violates the protocol. */
static bool take_frames(struct file_worker *worker) {
  size_t at = 0;
  uint8_t closed_by = 0;
  while (worker->in_length - at >= FRAME_HEADER_BYTES && closed_by == 0) {
    struct frame_header header;
    struct file_request *request = worker->request;
    if (request == NULL || !frame_header_parse(worker->in + at, FROM_GUEST, &header)) return false;
    if (!may_come(header.type) || header.stream != request->stream->id) return false;
    if (worker->in_length - at < FRAME_HEADER_BYTES + (size_t)header.length) break;
    struct iovec part = {worker->in + at, FRAME_HEADER_BYTES + (size_t)header.length};
    struct connection *connection = request->stream->connection;
    if (part.iov_len > COPIED_FRAME_BYTES) {
      connection_send(connection, &part, 1);
    } else {
      frame_begin(&connection->out, header.type, header.stream);
      frame_raw(&connection->out, worker->in + at + FRAME_HEADER_BYTES, header.length);
      frame_end(&connection->out);
      connection_touch(connection);
    }
    /* A connection that broke has cancelled all its streams. */
    if (worker->request != request) return true;
    at += part.iov_len;
    if (closes(request->type, header.type)) closed_by = header.type;
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

static void file_worker_read(struct file_worker *worker) {
  size_t budget = READ_BUDGET;
  while (worker->source.fd >= 0 && budget > 0) {
    if (worker->request && connection_busy(worker->request->stream->connection)) {
      file_worker_pump(worker); /* stops reading until the connection has room */
      return;
    }
    if (!make_room(worker)) {
      file_worker_lost(worker);
      return;
    }
    size_t room = worker->in_capacity - worker->in_length;
    ssize_t got = recv(worker->source.fd, worker->in + worker->in_length, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0 && worker->own.pid == 0) {
      /* Most likely the spawner could not fork the worker; its answer decides what happens next. */
      source_watch(&worker->guest->loop, &worker->source, 0);
      return;
    }
    if (got <= 0) {
      file_worker_lost(worker);
      return;
    }
    worker->in_length += (size_t)got;
    budget -= (size_t)got < budget ? (size_t)got : budget;
    if (!take_frames(worker)) {
      file_worker_signal(worker, SIGKILL);
      file_worker_lost(worker);
      return;
    }
    if ((size_t)got < room) break;
  }
  if (worker->in_length == 0 && worker->in_capacity > BUFFER_KEPT_BYTES && worker->request == NULL) {
    free(worker->in);
    worker->in = NULL;
    worker->in_capacity = 0;
  }
}

void file_worker_ready(struct source *source, uint32_t events) {
  struct file_worker *worker = container_of(source, struct file_worker, source);
  if (events & EPOLLOUT) file_worker_pump(worker);
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) file_worker_read(worker);
}
