/* Connections of the host: bytes in, frames out, streams in between. */
#pragma once

#include <sys/uio.h>

#include "connection/guest.h"
#include "connection/stream.h"

enum {
  CONNECTIONS_MAX = 16,
  STREAMS_MAX = 4096,
  STREAM_BUCKETS = 512,
  /* A connection that reads this slowly is asked nothing more until it has caught up. */
  OUT_QUEUE_HIGH = 1048576,
};

/* One complete frame. False is a protocol error. */
typedef bool frame_handler(struct connection *connection, const struct frame_header *header, const uint8_t *payload);

struct connection {
  struct guest *guest;
  struct connection *next;
  struct source source;
  frame_handler *handler;
  bool greeted;
  bool closing; /* flush what is queued, then close */
  bool dirty;   /* has something to flush at the end of the turn */
  bool dead;
  uint8_t *in;
  size_t in_length, in_capacity;
  struct frame_writer out;
  size_t out_sent;
  struct stream *streams[STREAM_BUCKETS];
  size_t stream_count;
  uint32_t last_accepted; /* the guest's own ids are even */
  struct fence *fence;    /* whose owner this is, and in which place */
  uint64_t fence_epoch;
  struct stream *fence_stream; /* waits for what earlier owners had under way to end */
  /* Streams with bytes to send, served in turn. */
  struct stream *send_first, *send_last;
};

/* The descriptor is taken over. */
void connection_accept(struct guest *guest, int fd, frame_handler *handler);
/* Closes this connection and cancels everything on it. Safe at any time; memory goes at the end of the turn. */
void connection_close(struct connection *connection);
/* The same, with a last word on stream 0. */
void connection_close_with(struct connection *connection, enum error_code code, const char *message);
void connection_flush_all(struct guest *guest);
/* Something was put into `out`. */
void connection_touch(struct connection *connection);
/* Writes `count` parts as one frame's bytes after what is queued; what the socket does not take is queued. */
void connection_send(struct connection *connection, const struct iovec *parts, int count);
static inline size_t connection_queued(const struct connection *connection) {
  return connection->out.length - connection->out_sent;
}
static inline bool connection_busy(const struct connection *connection) {
  return connection_queued(connection) >= OUT_QUEUE_HIGH;
}

void reply_ok(struct connection *connection, uint32_t stream);
__attribute__((format(printf, 5, 6))) void reply_error(struct connection *connection, uint32_t stream, enum error_code code,
                                                       int errno_value, const char *format, ...);
