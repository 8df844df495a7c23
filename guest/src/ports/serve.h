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
  struct datagrams *datagrams; /* those without an answer; NULL for connections */
};

/* A connection from inside ended. */
void serve_slot_freed(struct guest *guest);
/* There may be room for connections again. */
void serve_resume(struct guest *guest);
/* Whether the host serves this port. */
bool serve_owns(const struct guest *guest, unsigned number);
/* Listens, or waits for room: something will call serve_resume. */
void listener_watch(struct listener *listener, bool accept);

/* serve-datagram.c */
struct datagrams *datagrams_new(void);
/* The address that was asked must be told, and be answered from. False with errno set. */
bool datagrams_prepare(int fd, int family);
bool datagrams_may_come(const struct listener *listener);
void datagrams_ready(struct source *source, uint32_t events);
/* False is a protocol error. */
bool datagrams_answer(struct listener *listener, const uint8_t *payload, size_t length);
void datagrams_expire(struct listener *listener);

/* refusal.c: tells whoever connected that nobody serves. The descriptor is taken over. */
void refuse(struct guest *guest, int fd);
