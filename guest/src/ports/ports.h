/* What the rest of the guest asks of ports inside, and what their files share. */
#pragma once

#include "connection/connection.h"

enum {
  /*
   * Connections from inside that are carried to the host, or told that nobody serves them, at once. Further ones wait
   * in the backlog.
   */
  ACCEPTED_MAX = 2048,
  /* Those of them that may have the full window. */
  ACCEPTED_WIDE_MAX = 64,
};

struct listener;

struct ports {
  struct listener *listeners; /* served for the host; they stay once they are open */
  size_t listener_count, claim_count;
  size_t accepted_count; /* connections from inside, carried or refused */
  size_t wide_count;
  bool accepting_paused; /* some listener waits for room */
};

void ports_open(struct guest *guest);

/* port.c, listeners.c, serve.c: false is a protocol error. */
bool request_connect(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_listeners(struct connection *connection, const struct frame_header *header);
bool request_listen(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* With every heartbeat: there may be room for connections again, and answers that do not come are given up on. */
void serve_tick(struct guest *guest);

/* Carries a connection that something inside made. The descriptor is taken over; NULL when memory is out. */
struct stream *port_adopt(struct connection *connection, uint32_t id, int fd, uint16_t number);
void port_cancel(struct stream *stream);
