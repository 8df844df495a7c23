/* Connections: bytes in, frames out, streams in between. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "connection/connection.h"

enum { SEND_PARTS_MAX = 3, IN_FIRST = 4096, IN_KEEP = 65536, OUT_KEEP = 65536, FRAMES_PER_TURN_BYTES = 1048576 };

static void connection_ready(struct source *source, uint32_t events);

void connection_accept(struct guest *guest, int fd, frame_handler *handler) {
  struct connection *connection = guest->connection_count < CONNECTIONS_MAX ? calloc(1, sizeof *connection) : NULL;
  if (connection == NULL) {
    close(fd);
    return;
  }
  int size = 1048576;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  connection->guest = guest;
  connection->handler = handler;
  source_open(&connection->source, fd, connection_ready);
  connection->next = guest->connections;
  guest->connections = connection;
  guest->connection_count++;
  source_watch(&guest->loop, &connection->source, EPOLLIN);
}

/* ---- closing ---- */

void connection_close(struct connection *connection) {
  if (connection->dead) return;
  struct guest *guest = connection->guest;
  connection->dead = true;
  for (int i = 0; i < STREAM_BUCKETS; i++) {
    while (connection->streams[i]) connection->streams[i]->kind->cancel(connection->streams[i]);
  }
  source_close(&guest->loop, &connection->source);
  free(connection->in);
  connection->in = NULL;
  frame_writer_free(&connection->out);
  connection->out_sent = 0;
  struct connection **link = &guest->connections;
  while (*link != connection) link = &(*link)->next;
  *link = connection->next;
  guest->connection_count--;
  loop_free_later(&guest->loop, connection);
}

/* ---- writing ---- */

void connection_touch(struct connection *connection) { connection->dirty = true; }

void reply_ok(struct connection *connection, uint32_t stream) {
  frame_begin(&connection->out, FRAME_OK, stream);
  frame_end(&connection->out);
  connection_touch(connection);
}

void reply_error(struct connection *connection, uint32_t stream, enum error_code code, int errno_value, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  frame_error(&connection->out, stream, code, errno_value, message);
  connection_touch(connection);
}

/* Returns how many bytes the socket took; closes the connection if it is broken. */
static size_t write_some(struct connection *connection, const struct iovec *parts, int count) {
  struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count};
  for (;;) {
    ssize_t put = sendmsg(connection->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) return (size_t)put;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) connection_close(connection);
    return 0;
  }
}

/* Accounts for `put` bytes that the socket took; returns how many of them came from the queue. */
static size_t queue_sent(struct connection *connection, size_t put) {
  struct frame_writer *out = &connection->out;
  size_t queued = connection_queued(connection);
  size_t sent = put < queued ? put : queued;
  connection->out_sent += sent;
  if (connection->out_sent == out->length) {
    connection->out_sent = out->length = 0;
    if (out->capacity > OUT_KEEP) frame_writer_free(out);
  } else if (connection->out_sent >= OUT_KEEP) {
    /* Without this, a queue that is never quite empty would grow without bound. */
    memmove(out->data, out->data + connection->out_sent, connection_queued(connection));
    out->length -= connection->out_sent;
    connection->out_sent = 0;
  }
  return sent;
}

static void flush_queue(struct connection *connection) {
  struct frame_writer *out = &connection->out;
  if (connection_queued(connection) == 0) return;
  struct iovec part = {out->data + connection->out_sent, connection_queued(connection)};
  size_t put = write_some(connection, &part, 1);
  if (!connection->dead) queue_sent(connection, put);
}

static void append(struct connection *connection, const uint8_t *bytes, size_t length) {
  struct frame_writer *out = &connection->out;
  if (out->length + length > out->capacity) {
    size_t capacity = out->capacity ? out->capacity : 4096;
    while (capacity < out->length + length) capacity *= 2;
    uint8_t *grown = realloc(out->data, capacity);
    if (grown == NULL) {
      connection_close(connection); /* the rest of a frame cannot be skipped */
      return;
    }
    out->data = grown;
    out->capacity = capacity;
  }
  memcpy(out->data + out->length, bytes, length);
  out->length += length;
}

void connection_send(struct connection *connection, const struct iovec *parts, int count) {
  if (connection->dead) return;
  /* Queued bytes go first, in the same call. */
  struct iovec all[1 + SEND_PARTS_MAX] = {{connection->out.data + connection->out_sent, connection_queued(connection)}};
  memcpy(all + 1, parts, (size_t)count * sizeof *parts);
  bool queued = all[0].iov_len > 0;
  size_t put = write_some(connection, queued ? all : all + 1, queued ? count + 1 : count);
  if (connection->dead) return;
  put -= queue_sent(connection, put);
  for (int i = 0; i < count && !connection->dead; i++) {
    if (put >= parts[i].iov_len) {
      put -= parts[i].iov_len;
      continue;
    }
    append(connection, (const uint8_t *)parts[i].iov_base + put, parts[i].iov_len - put);
    put = 0;
  }
  connection_touch(connection);
}

static void set_interest(struct connection *connection) {
  bool more = connection_queued(connection) > 0 || connection->send_first != NULL;
  bool read = !connection_busy(connection) && !connection->closing;
  source_watch(&connection->guest->loop, &connection->source, (read ? EPOLLIN : 0) | (more ? EPOLLOUT : 0));
}

static void resume_streams(struct connection *connection) {
  for (int i = 0; i < STREAM_BUCKETS; i++) {
    for (struct stream *stream = connection->streams[i], *next; stream; stream = next) {
      next = stream->next;
      if (stream->kind->resume) stream->kind->resume(stream);
    }
  }
}

static void connection_flush(struct connection *connection) {
  connection->dirty = false;
  bool was_busy = connection_busy(connection);
  flush_queue(connection);
  /* Senders take turns; one with more to send goes to the back of the line. */
  size_t turns = 16;
  while (!connection->dead && connection->send_first && connection_queued(connection) < OUT_KEEP && turns-- > 0) {
    struct stream *stream = connection->send_first;
    connection->send_first = stream->send_next;
    if (connection->send_first == NULL) connection->send_last = NULL;
    stream->send_queued = false;
    if (!stream->kind->send(stream)) stream_want_send(stream);
  }
  if (!connection->dead) flush_queue(connection);
  if (connection->dead) return;
  if (connection->closing && connection_queued(connection) == 0) {
    connection_close(connection);
    return;
  }
  connection->dirty = false;
  set_interest(connection);
  if (was_busy && !connection_busy(connection)) resume_streams(connection);
}

void connection_close_with(struct connection *connection, enum error_code code, const char *message) {
  if (connection->dead) return;
  reply_error(connection, 0, code, 0, "%s", message);
  flush_queue(connection);
  connection_close(connection);
}

void connection_flush_all(struct guest *guest) {
  for (struct connection *connection = guest->connections, *next; connection; connection = next) {
    next = connection->next;
    if (connection->dirty) connection_flush(connection);
  }
}

/* ---- reading ---- */

/* Handles every complete frame in the buffer. Returns false to close the connection. */
static bool take_frames(struct connection *connection) {
  size_t at = 0;
  while (connection->in_length - at >= FRAME_HEADER_BYTES && !connection->closing) {
    struct frame_header header;
    if (!frame_header_parse(connection->in + at, FROM_HOST, &header)) return false;
    if (connection->in_length - at < FRAME_HEADER_BYTES + (size_t)header.length) break;
    if (!connection->handler(connection, &header, connection->in + at + FRAME_HEADER_BYTES)) return false;
    if (connection->dead) return true;
    at += FRAME_HEADER_BYTES + (size_t)header.length;
  }
  connection->in_length -= at;
  if (at > 0 && connection->in_length > 0) memmove(connection->in, connection->in + at, connection->in_length);
  return true;
}

/* Makes room for the rest of the current frame, and for more if the host sends a lot. */
static bool make_room(struct connection *connection) {
  size_t needed = IN_FIRST;
  if (connection->in_length >= FRAME_HEADER_BYTES) {
    struct frame_header header;
    if (!frame_header_parse(connection->in, FROM_HOST, &header)) return false;
    needed = FRAME_HEADER_BYTES + (size_t)header.length;
  }
  if (connection->in_length == connection->in_capacity && needed < 2 * connection->in_capacity) needed = 2 * connection->in_capacity;
  if (needed > FRAME_HEADER_BYTES + (size_t)FRAME_PAYLOAD_MAX) needed = FRAME_HEADER_BYTES + (size_t)FRAME_PAYLOAD_MAX;
  if (needed <= connection->in_capacity) return true;
  uint8_t *grown = realloc(connection->in, needed);
  if (grown == NULL) return false;
  connection->in = grown;
  connection->in_capacity = needed;
  return true;
}

static void connection_read(struct connection *connection) {
  size_t budget = FRAMES_PER_TURN_BYTES;
  while (!connection->dead && !connection->closing && budget > 0 && !connection_busy(connection)) {
    if (!make_room(connection)) {
      connection_close(connection);
      return;
    }
    size_t room = connection->in_capacity - connection->in_length;
    ssize_t got = recv(connection->source.fd, connection->in + connection->in_length, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      connection_close(connection);
      return;
    }
    connection->in_length += (size_t)got;
    if (!take_frames(connection)) {
      connection_close(connection);
      return;
    }
    budget -= (size_t)got < budget ? (size_t)got : budget;
    if ((size_t)got < room) break;
  }
  if (!connection->dead && connection->in_length == 0 && connection->in_capacity > IN_KEEP) {
    free(connection->in);
    connection->in = NULL;
    connection->in_capacity = 0;
  }
}

static void connection_ready(struct source *source, uint32_t events) {
  struct connection *connection = container_of(source, struct connection, source);
  if (events & EPOLLOUT) connection_touch(connection);
  if (events & EPOLLIN)
    connection_read(connection);
  else if (events & (EPOLLHUP | EPOLLERR))
    connection_close(connection);
  if (!connection->dead) connection_touch(connection);
}
