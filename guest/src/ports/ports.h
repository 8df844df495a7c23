/* The interface of ports to the rest of the guest, and what their files share. */
#pragma once

#include "connection/connection.h"

enum {
  /*
   * The maximum number of simultaneous connections from inside, including those refused because no server claims the
   * port. Further connections wait in the backlog.
   */
  ACCEPTED_MAX = 2048,
  /* How many of them may have the full window. */
  ACCEPTED_WIDE_MAX = 64,
};

struct listener;

struct ports {
  struct listener *listeners; /* served for the host; they stay open */
  size_t listener_count, claim_count;
  size_t accepted_count; /* connections from inside, carried or refused */
  size_t wide_count;
  bool accepting_paused; /* a listener is waiting for room */
};

void ports_open(struct guest *guest);

/* port.c, listeners.c, serve.c. These return false for a protocol error. */
bool request_connect(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_listeners(struct connection *connection, const struct frame_header *header);
bool request_listen(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* Called with every heartbeat: resumes accepting if there is room, and gives up on overdue answers. */
void serve_tick(struct guest *guest);

/*
 * Carries a connection that a program inside opened. Takes ownership of the descriptor. Returns NULL if memory runs
 * out.
 */
struct stream *port_adopt(struct connection *connection, uint32_t id, int fd, uint16_t number);
void port_cancel(struct stream *stream);
