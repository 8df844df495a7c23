/* Streams multiplex requests over a connection, which knows each stream only by the operations of its kind. */
#pragma once

#include "wire/frame.h"

struct connection;
struct stream;

struct stream_kind {
  /* Handles a frame other than CANCEL. Returns false for a protocol error. NULL: frames are ignored. */
  bool (*frame)(struct stream *stream, const struct frame_header *header, const uint8_t *payload);
  /* Called when the host cancels the stream or the connection closes. Must remove the stream. */
  void (*cancel)(struct stream *stream);
  /* Called when the connection can take bytes again. NULL: the stream never waits for that. */
  void (*resume)(struct stream *stream);
  /* Sends when it is the stream's turn, after stream_want_send. Returns false if there is more to send. */
  bool (*send)(struct stream *stream);
  /* Called when the stream is removed, to drop every pointer to it. NULL: no pointer exists. */
  void (*removed)(struct stream *stream);
};

struct stream {
  uint32_t id;
  const struct stream_kind *kind;
  void *owner;   /* its type depends on the kind */
  bool closed;   /* the last frame was sent; the stream remains for ACKs in transit */
  bool existing; /* attached to an existing process */
  struct connection *connection;
  struct stream *next;        /* in the connection's bucket */
  struct stream *next_waiter; /* in the owner's list */
  bool send_queued;
  struct stream *send_next;
};

/* Returns NULL (after sending ERROR busy) if memory runs out. */
struct stream *stream_open(struct connection *connection, uint32_t id, const struct stream_kind *kind, void *owner);
/* The same for an id that the guest chose: sends no error. */
struct stream *stream_add(struct connection *connection, uint32_t id, const struct stream_kind *kind, void *owner);
struct stream *stream_find(struct connection *connection, uint32_t id);
void stream_remove(struct stream *stream);
/* Queues the stream for its turn to send. */
void stream_want_send(struct stream *stream);
/* Ends sending on the stream, and allows its id to be reused. */
void stream_close(struct stream *stream);
