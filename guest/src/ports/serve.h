/* What the files about served ports share. */
#pragma once

#include "connection/connection.h"

/* Field 2 of LISTEN. */
enum scope { SCOPE_LOOPBACK, SCOPE_EVERYWHERE, SCOPE_DATAGRAMS };

struct datagrams;

struct claim {
  struct stream *stream;
  struct listener *listener;
  struct claim *older;
};

struct listening_socket {
  struct source source;
  struct listener *listener;
};

struct listener {
  struct guest *guest;
  struct listener *next;
  uint16_t number;
  enum scope scope;
  struct listening_socket sockets[2]; /* IPv4 and IPv6 */
  struct claim *newest;
  struct datagrams *datagrams; /* unanswered datagrams; NULL for connections */
};

/* Called when a connection from inside has ended. */
void serve_slot_freed(struct guest *guest);
/* Resumes accepting if there is room again. */
void serve_resume(struct guest *guest);
/* Whether the host serves this port. */
bool serve_owns(const struct guest *guest, unsigned number);
/* Starts accepting, or stops it until serve_resume finds room. */
void listener_watch(struct listener *listener, bool accept);

/* serve-datagram.c */
struct datagrams *datagrams_new(void);
/*
 * Makes a socket report the address that was asked, and lets it answer from there. Returns false with errno set on
 * failure.
 */
bool datagrams_prepare(int fd, int family);
bool datagrams_may_come(const struct listener *listener);
void datagrams_ready(struct source *source, uint32_t events);
/* Returns false for a protocol error. */
bool datagrams_answer(struct listener *listener, const uint8_t *payload, size_t length);
void datagrams_expire(struct listener *listener);

/* refusal.c: tells the client that no process serves the port. Takes ownership of the descriptor. */
void refuse(struct guest *guest, int fd);
