#include "files/file-requests.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "files/files.h"
#include "spawner/identity.h"
#include "wire/tags.h"

enum {
  QUEUED_MAX = 1024,
  /* The host may have sent a full window of DATA, and frames that need no credit. */
  TO_WORKER_MAX = STREAM_WINDOW + 2 * FRAME_PAYLOAD_MAX,
};

static struct file_requests *file_requests_of(struct guest *guest) {
  if (guest->file_requests == NULL) guest->file_requests = xalloc(sizeof *guest->file_requests);
  return guest->file_requests;
}

void file_request_end(struct file_request *request) {
  if (request->worker) request->worker->request = NULL;
  stream_remove(request->stream);
  frame_writer_free(&request->to);
  loop_free_later(&request->stream->connection->guest->loop, request);
}

void file_request_fail(struct file_request *request, int error, const char *message) {
  struct stream *stream = request->stream;
  reply_error(stream->connection, stream->id, error == EAGAIN || error == ENOMEM ? ERR_BUSY : ERR_IO, error, "%s", message);
  file_request_end(request);
}

static void file_request_give(struct file_request *request, struct file_worker *worker) {
  request->worker = worker;
  worker->request = request;
  rouse_soon(worker->guest);
  file_worker_pump(worker);
}

static bool same_identity(const struct identity *a, const struct identity *b) {
  return a->uid == b->uid && a->gid == b->gid && a->change == b->change && a->keep_caps == b->keep_caps;
}

/* Returns false if every worker is busy and no more are allowed. */
static bool file_request_assign(struct guest *guest, struct file_request *request) {
  struct file_requests *requests = file_requests_of(guest);
  struct file_worker *spare = NULL;
  for (struct file_worker *w = requests->workers; w; w = w->next) {
    if (w->request || w->dismissed || w->source.fd < 0) continue;
    spare = w;
    if (!same_identity(&w->identity, &request->identity)) continue;
    file_request_give(request, w);
    return true;
  }
  if (requests->worker_count >= WORKERS_MAX) {
    if (spare) file_worker_dismiss(spare); /* it serves another user, and its place is needed */
    return false;
  }
  struct file_worker *worker = file_worker_new(guest, &request->identity);
  if (worker == NULL) {
    file_request_fail(request, ENOMEM, "out of memory");
    return true;
  }
  request->worker = worker;
  worker->request = request;
  if (!file_worker_fork(worker)) {
    int error = errno;
    worker->request = NULL;
    request->worker = NULL;
    file_worker_free(worker);
    file_request_fail(request, error, "no descriptors left for a file worker");
    return true;
  }
  if (worker->request && worker->source.fd >= 0) file_worker_pump(worker);
  return true;
}

void file_requests_assign(struct guest *guest) {
  struct file_requests *requests = guest->file_requests;
  while (requests->first) {
    struct file_request *request = requests->first;
    requests->first = request->next;
    if (requests->first == NULL) requests->last = NULL;
    requests->queued--;
    if (file_request_assign(guest, request)) continue;
    request->next = requests->first;
    requests->first = request;
    if (requests->last == NULL) requests->last = request;
    requests->queued++;
    return;
  }
}

static void file_request_append(struct file_request *request, const struct frame_header *header, const uint8_t *payload) {
  frame_begin(&request->to, header->type, header->stream);
  frame_raw(&request->to, payload, header->length);
  frame_end(&request->to);
}

static bool file_request_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload) {
  struct file_request *request = stream->owner;
  if (header->type != FRAME_DATA && header->type != FRAME_END && header->type != FRAME_CREDIT) return true;
  if (request->to.length - request->sent > TO_WORKER_MAX) return false;
  struct file_worker *worker = request->worker;
  if (worker && worker->own.pid > 0 && request->to.length == 0) {
    /* Nothing is queued before it: send it without a copy, and queue it only if it did not fit. */
    uint8_t head[FRAME_HEADER_BYTES];
    frame_header_encode(head, header->type, header->stream, header->length);
    struct iovec parts[2] = {{head, sizeof head}, {(void *)payload, header->length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = header->length > 0 ? 2 : 1};
    ssize_t put = sendmsg(worker->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put == (ssize_t)(sizeof head + header->length)) return true;
    file_request_append(request, header, payload);
    request->sent = put > 0 ? (size_t)put : 0;
  } else {
    if (request->sent > BUFFER_KEPT_BYTES && worker && worker->own.pid > 0) {
      /* Without this, a queue that is never quite empty would grow without bound. */
      memmove(request->to.data, request->to.data + request->sent, request->to.length - request->sent);
      request->to.length -= request->sent;
      request->sent = 0;
    }
    file_request_append(request, header, payload);
  }
  if (worker && worker->source.fd >= 0) file_worker_pump(worker);
  return true;
}

static void file_request_cancel(struct stream *stream) {
  struct file_request *request = stream->owner;
  struct guest *guest = stream->connection->guest;
  struct file_requests *requests = guest->file_requests;
  struct file_worker *worker = request->worker;
  if (worker == NULL) {
    struct file_request *before = NULL;
    for (struct file_request *r = requests->first; r; before = r, r = r->next) {
      if (r != request) continue;
      if (before)
        before->next = r->next;
      else
        requests->first = r->next;
      if (requests->last == r) requests->last = before;
      requests->queued--;
      break;
    }
  }
  file_request_end(request);
  if (worker) file_worker_dismiss(worker);
}

static void resume(struct stream *stream) {
  struct file_request *request = stream->owner;
  if (request->worker) file_worker_pump(request->worker);
}

static const struct stream_kind file_stream = {.frame = file_request_frame, .cancel = file_request_cancel, .resume = resume};

bool request_file(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  struct file_requests *requests = file_requests_of(guest);
  struct field field;
  struct identity identity;
  const char *why;
  cleanup_free char *user = field_find(payload, header->length, TAG_USER, &field) ? field_text(&field) : NULL;
  if (!identity_of(guest, user, &identity, &why)) {
    reply_error(connection, header->stream, ERR_DENIED, 0, "%s", why);
    return true;
  }
  if (guest->shutting_down || requests->queued >= QUEUED_MAX) {
    reply_error(connection, header->stream, ERR_BUSY, 0, guest->shutting_down ? "shutting down" : "too many file requests are waiting (limit %d)", QUEUED_MAX);
    return true;
  }
  struct stream *stream = stream_open(connection, header->stream, &file_stream, NULL);
  struct file_request *request = stream ? calloc(1, sizeof *request) : NULL;
  if (request == NULL) {
    if (stream) {
      reply_error(connection, header->stream, ERR_BUSY, ENOMEM, "out of memory");
      stream_remove(stream);
    }
    return true;
  }
  *request = (struct file_request){.stream = stream, .identity = identity, .type = header->type};
  stream->owner = request;
  file_request_append(request, header, payload);
  if (requests->first == NULL && file_request_assign(guest, request)) return true;
  if (requests->last)
    requests->last->next = request;
  else
    requests->first = request;
  requests->last = request;
  requests->queued++;
  return true;
}
