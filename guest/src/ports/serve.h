/* What the files about served ports share. */
#pragma once

#include "connection/guest.h"

/* Field 2 of LISTEN. */
enum scope { SCOPE_LOOPBACK, SCOPE_EVERYWHERE, SCOPE_DATAGRAMS };

struct datagrams;

struct claim {
  struct stream *stream;
  struct listener *listener;
  struct claim *older;
};

struct ear {
  struct source source;
  struct listener *listener;
};

struct listener {
  struct guest *guest;
  struct listener *next;
  uint16_t number;
  enum scope scope;
  struct ear ears[2]; /* IPv4 and IPv6 */
  struct claim *newest;
  struct datagrams *datagrams; /* those without an answer; NULL for connections */
};

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
