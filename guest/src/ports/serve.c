/*
 * Ports inside that the host serves. Each has a listening socket, and each connection to it becomes a stream of the
 * claim's connection. The socket stays open after a claim ends: until the next claim, clients get an answer that says
 * so, and no program inside can take its place.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ports/ports.h"
#include "ports/serve.h"
#include "wire/tags.h"

enum {
  BACKLOG = 4096,
  LISTENERS_SERVED_MAX = 256,
  CLAIMS_MAX = 1024,
  ACCEPTS_PER_TURN = 64,
  ACCEPTED_ID_MAX = 0x7FFFFFFE,
};

/* ---- room ---- */

static bool may_accept(const struct listener *listener) {
  if (listener->guest->ports->accepted_count >= ACCEPTED_MAX) return false;
  if (listener->newest == NULL) return true;
  const struct connection *connection = listener->newest->stream->connection;
  return connection->stream_count < STREAMS_MAX && !connection_busy(connection);
}

static bool is_ready(const struct listener *listener) {
  return listener->datagrams ? datagrams_may_come(listener) : may_accept(listener);
}

void listener_watch(struct listener *listener, bool accept) {
  if (!accept) listener->guest->ports->accepting_paused = true;
  for (int i = 0; i < 2; i++) source_watch(&listener->guest->loop, &listener->sockets[i].source, accept ? EPOLLIN : 0);
}

void serve_resume(struct guest *guest) {
  if (!guest->ports->accepting_paused) return;
  guest->ports->accepting_paused = false;
  for (struct listener *l = guest->ports->listeners; l; l = l->next) listener_watch(l, is_ready(l));
}

void ports_open(struct guest *guest) { guest->ports = xalloc(sizeof *guest->ports); }

void serve_tick(struct guest *guest) {
  for (struct listener *l = guest->ports->listeners; l; l = l->next) {
    if (l->datagrams) datagrams_expire(l);
  }
  serve_resume(guest);
}

void serve_slot_freed(struct guest *guest) {
  guest->ports->accepted_count--;
  serve_resume(guest);
}

bool serve_owns(const struct guest *guest, unsigned number) {
  for (const struct listener *l = guest->ports->listeners; l; l = l->next) {
    if (l->number == number && l->datagrams == NULL) return true;
  }
  return false;
}

/* ---- connections ---- */

static uint32_t next_id(struct connection *connection) {
  do connection->last_accepted = connection->last_accepted >= ACCEPTED_ID_MAX ? 2 : connection->last_accepted + 2;
  while (stream_find(connection, connection->last_accepted) != NULL);
  return connection->last_accepted;
}

/* Adds the address that the client wanted: every address is the sandbox's own. */
static void put_destination(struct frame_writer *out, int fd) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = "";
  if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) return;
  const struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
  const struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
  bool is_v4 = address.ss_family == AF_INET;
  inet_ntop(address.ss_family, is_v4 ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr, text, sizeof text);
  frame_field_text(out, TAG_ACCEPTED_ADDRESS, text);
  frame_field_u64(out, TAG_ACCEPTED_ADDRESS_PORT, ntohs(is_v4 ? v4->sin_port : v6->sin6_port));
}

static void carry(struct listener *listener, int fd) {
  struct guest *guest = listener->guest;
  struct connection *connection = listener->newest->stream->connection;
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct stream *stream = port_adopt(connection, next_id(connection), fd, listener->number);
  if (stream == NULL) return;
  guest->ports->accepted_count++;
  frame_begin(&connection->out, FRAME_ACCEPTED, stream->id);
  frame_field_u64(&connection->out, TAG_ACCEPTED_PORT, listener->number);
  if (listener->scope != SCOPE_LOOPBACK) put_destination(&connection->out, fd);
  /* The host must not see a stream that was not announced. */
  if (!frame_end(&connection->out)) port_cancel(stream);
  connection_touch(connection);
}

static void connection_waits(struct source *source, uint32_t events) {
  (void)events;
  struct listener *listener = container_of(source, struct listening_socket, source)->listener;
  for (int turn = 0; turn < ACCEPTS_PER_TURN; turn++) {
    if (!may_accept(listener)) {
      listener_watch(listener, false);
      return;
    }
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      if (listener->newest)
        carry(listener, fd);
      else
        refuse(listener->guest, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      /* They wait in the backlog until a descriptor is closed; the heartbeat checks too. */
      listener_watch(listener, false);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

/* ---- claims ---- */

/* Returns -1 with errno set on failure. */
static int listen_on(int family, uint16_t number, enum scope scope) {
  int fd = socket(family, (scope == SCOPE_DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int on = 1;
  /* Connections of the port's previous user may still be closing. */
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(number)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(number)};
  if (scope == SCOPE_LOOPBACK) {
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v6.sin6_addr = in6addr_loopback;
  }
  const struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
  if (bind(fd, address, family == AF_INET ? sizeof v4 : sizeof v6) == 0) {
    if (scope == SCOPE_DATAGRAMS ? datagrams_prepare(fd, family) : listen(fd, BACKLOG) == 0) return fd;
  }
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static bool is_without_ipv6(int error) { return error == EAFNOSUPPORT || error == EADDRNOTAVAIL; }

/* Returns NULL with errno set on failure. */
static struct listener *listener_open(struct guest *guest, uint16_t number, enum scope scope) {
  static const int families[2] = {AF_INET, AF_INET6};
  struct listener *listener = calloc(1, sizeof *listener);
  if (listener == NULL) return NULL;
  listener->datagrams = scope == SCOPE_DATAGRAMS ? datagrams_new() : NULL;
  if (scope == SCOPE_DATAGRAMS && listener->datagrams == NULL) {
    free(listener);
    return NULL;
  }
  for (int i = 0; i < 2; i++) {
    struct listening_socket *socket = &listener->sockets[i];
    int fd = listen_on(families[i], number, scope);
    int error = errno;
    if (fd < 0 && !(i == 1 && is_without_ipv6(error))) {
      if (i == 1) source_close(&guest->loop, &listener->sockets[0].source);
      free(listener->datagrams);
      free(listener);
      errno = error;
      return NULL;
    }
    socket->listener = listener;
    source_open(&socket->source, fd, listener->datagrams ? datagrams_ready : connection_waits);
  }
  listener->guest = guest;
  listener->number = number;
  listener->scope = scope;
  listener->next = guest->ports->listeners;
  guest->ports->listeners = listener;
  guest->ports->listener_count++;
  return listener;
}

static enum error_code code_of(int error) {
  switch (error) {
    case EADDRINUSE:
      return ERR_EXISTS;
    case EACCES:
    case EPERM:
      return ERR_DENIED;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
      return ERR_BUSY;
    default:
      return ERR_IO;
  }
}

static struct listener *listener_of(struct connection *connection, uint32_t stream, uint16_t number, enum scope scope) {
  struct guest *guest = connection->guest;
  for (struct listener *l = guest->ports->listeners; l; l = l->next) {
    if (l->number == number && l->scope == scope) return l;
  }
  if (guest->ports->listener_count >= LISTENERS_SERVED_MAX) {
    reply_error(connection, stream, ERR_BUSY, 0, "%d ports are already served", LISTENERS_SERVED_MAX);
    return NULL;
  }
  struct listener *listener = listener_open(guest, number, scope);
  if (listener == NULL) reply_error(connection, stream, code_of(errno), errno, "port %u: %s", number, strerror(errno));
  return listener;
}

static bool claim_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload) {
  struct listener *listener = ((struct claim *)stream->owner)->listener;
  if (header->type != FRAME_DATAGRAM) return true;
  return listener->datagrams && datagrams_answer(listener, payload, header->length);
}

static void claim_cancel(struct stream *stream) {
  struct claim *claim = stream->owner;
  struct listener *listener = claim->listener;
  struct claim **link = &listener->newest;
  while (*link != claim) link = &(*link)->older;
  *link = claim->older;
  listener->guest->ports->claim_count--;
  stream_remove(stream);
  free(claim);
  listener_watch(listener, is_ready(listener));
}

static void claim_resume(struct stream *stream) { serve_resume(stream->connection->guest); }

/* The stream of a LISTEN that was granted. */
static const struct stream_kind claim_stream = {.frame = claim_frame, .cancel = claim_cancel, .resume = claim_resume};

bool request_listen(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  uint64_t number, scope;
  if (!field_find_u64(payload, header->length, TAG_LISTEN_PORT, 0, &number) || number < 1 || number > 65535) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a port must be 1 to 65535");
    return true;
  }
  if (!field_find_u64(payload, header->length, TAG_LISTEN_SCOPE, SCOPE_LOOPBACK, &scope) || scope > SCOPE_DATAGRAMS) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a scope must be 0 to %d", SCOPE_DATAGRAMS);
    return true;
  }
  if (scope != SCOPE_LOOPBACK && !guest->transparent) {
    reply_error(connection, header->stream, ERR_UNSUPPORTED, 0, "this sandbox has only its loopback addresses");
    return true;
  }
  if (guest->ports->claim_count >= CLAIMS_MAX) {
    reply_error(connection, header->stream, ERR_BUSY, 0, "too many claims (limit %d)", CLAIMS_MAX);
    return true;
  }
  struct listener *listener = listener_of(connection, header->stream, (uint16_t)number, (enum scope)scope);
  if (listener == NULL) return true;
  struct claim *claim = calloc(1, sizeof *claim);
  struct stream *stream = claim ? stream_open(connection, header->stream, &claim_stream, claim) : NULL;
  if (stream == NULL) {
    if (claim == NULL) reply_error(connection, header->stream, ERR_BUSY, ENOMEM, "out of memory");
    free(claim);
  } else {
    *claim = (struct claim){.stream = stream, .listener = listener, .older = listener->newest};
    listener->newest = claim;
    guest->ports->claim_count++;
    reply_ok(connection, header->stream);
  }
  listener_watch(listener, is_ready(listener));
  return true;
}
