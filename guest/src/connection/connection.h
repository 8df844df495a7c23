/* Connections of the host: bytes in, frames out, streams in between. */
#pragma once

#include <sys/uio.h>

#include "connection/guest.h"
#include "connection/stream.h"

enum {
  CONNECTIONS_MAX = 16,
  STREAMS_MAX = 4096,
  STREAM_BUCKETS = 512,
  /* With this much output queued, the guest reads no further requests until the host has caught up. */
  OUT_QUEUE_HIGH = 1048576,
};

/* Handles one complete frame. Returns false for a protocol error. */
typedef bool frame_handler(struct connection *connection, const struct frame_header *header, const uint8_t *payload);

struct connection {
  struct guest *guest;
  struct connection *next;
  struct source source;
  frame_handler *handler;
  bool greeted;
  bool closing; /* flush the queue, then close */
  bool dirty;   /* has output to flush at the end of the turn */
  bool dead;
  uint8_t *in;
  size_t in_length, in_capacity;
  struct frame_writer out;
  size_t out_sent;
  struct stream *streams[STREAM_BUCKETS];
  size_t stream_count;
  uint32_t last_accepted; /* the guest's own ids are even */
  struct fence *fence;    /* the work that this connection claimed, and its epoch */
  uint64_t fence_epoch;
  struct stream *fence_stream; /* waits until the requests of earlier holders have ended */
  /* Streams with bytes to send, served in turn. */
  struct stream *send_first, *send_last;
};

/* Takes ownership of the descriptor. */
void connection_accept(struct guest *guest, int fd, frame_handler *handler);
/* Closes the connection and cancels everything on it. Safe at any time; the memory is freed at the end of the turn. */
void connection_close(struct connection *connection);
/* Closes the connection after sending an error on stream 0. */
void connection_close_with(struct connection *connection, enum error_code code, const char *message);
void connection_flush_all(struct guest *guest);
/* Schedules a flush; call it after writing to `out`. */
void connection_touch(struct connection *connection);
/* Sends `count` parts as one frame after the queued bytes, and queues what the socket does not take. */
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
