#include "connection/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "connection/connection.h"

static struct stream **bucket_of(struct connection *connection, uint32_t id) {
  return &connection->streams[(id >> 1) % STREAM_BUCKETS];
}

struct stream *stream_open(struct connection *connection, uint32_t id, const struct stream_kind *kind, void *owner) {
  struct stream *stream = stream_add(connection, id, kind, owner);
  if (stream == NULL) reply_error(connection, id, ERR_BUSY, ENOMEM, "out of memory");
  return stream;
}

struct stream *stream_add(struct connection *connection, uint32_t id, const struct stream_kind *kind, void *owner) {
  struct stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  struct stream **bucket = bucket_of(connection, id);
  *stream = (struct stream){.id = id, .kind = kind, .owner = owner, .connection = connection, .next = *bucket};
  *bucket = stream;
  connection->stream_count++;
  return stream;
}

struct stream *stream_find(struct connection *connection, uint32_t id) {
  struct stream *stream = *bucket_of(connection, id);
  while (stream && stream->id != id) stream = stream->next;
  return stream;
}

void stream_want_send(struct stream *stream) {
  struct connection *connection = stream->connection;
  if (stream->send_queued || stream->closed) return;
  stream->send_queued = true;
  stream->send_next = NULL;
  if (connection->send_last)
    connection->send_last->send_next = stream;
  else
    connection->send_first = stream;
  connection->send_last = stream;
  connection_touch(connection);
}

void stream_close(struct stream *stream) {
  if (stream->closed) return;
  stream->closed = true;
  stream->connection->stream_count--;
}

static void leave_line(struct stream *stream) {
  struct connection *connection = stream->connection;
  struct stream *before = NULL;
  for (struct stream *s = connection->send_first; s; before = s, s = s->send_next) {
    if (s != stream) continue;
    if (before)
      before->send_next = s->send_next;
    else
      connection->send_first = s->send_next;
    if (connection->send_last == s) connection->send_last = before;
    break;
  }
  stream->send_queued = false;
}

void stream_remove(struct stream *stream) {
  struct connection *connection = stream->connection;
  if (stream->send_queued) leave_line(stream);
  if (stream->kind->removed) stream->kind->removed(stream);
  struct stream **link = bucket_of(connection, stream->id);
  while (*link && *link != stream) link = &(*link)->next;
  if (*link) *link = stream->next;
  stream_close(stream);
  loop_free_later(&connection->guest->loop, stream);
}
