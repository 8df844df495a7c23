/* Streams: what the frames of a connection are about. A connection knows them only by what their kind can do. */
#pragma once

#include "wire/frame.h"

struct connection;
struct stream;

struct stream_kind {
  /* A frame for it, other than CANCEL. False is a protocol error. NULL: none means anything to it. */
  bool (*frame)(struct stream *stream, const struct frame_header *header, const uint8_t *payload);
  /* The host no longer wants it, or its connection closed. Must remove it. */
  void (*cancel)(struct stream *stream);
  /* The connection can take bytes again. NULL: it did not wait for that. */
  void (*resume)(struct stream *stream);
  /* Its turn, after stream_want_send. False when it has more to say. */
  bool (*send)(struct stream *stream);
  /* It is being removed, by whomever: nothing may point to it any more. NULL: nothing does. */
  void (*removed)(struct stream *stream);
};

struct stream {
  uint32_t id;
  const struct stream_kind *kind;
  void *owner;   /* the kind knows what it is */
  bool closed;   /* its last frame went out; it stays for ACKs that are on their way */
  bool existing; /* it attached to what was there */
  struct connection *connection;
  struct stream *next;        /* in the connection's bucket */
  struct stream *next_waiter; /* in its owner's list */
  bool send_queued;
  struct stream *send_next;
};

/* NULL (and ERROR busy sent) when memory is out. */
struct stream *stream_open(struct connection *connection, uint32_t id, const struct stream_kind *kind, void *owner);
/* The same for an id of the guest's own: nobody is told. */
struct stream *stream_add(struct connection *connection, uint32_t id, const struct stream_kind *kind, void *owner);
struct stream *stream_find(struct connection *connection, uint32_t id);
void stream_remove(struct stream *stream);
/* It has something to send, and gets its turn. */
void stream_want_send(struct stream *stream);
/* Nothing more is sent on it, and its id may be used again. */
void stream_close(struct stream *stream);
