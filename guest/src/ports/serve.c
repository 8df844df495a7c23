/*
 * Ports inside that the host serves: a listening socket for each, and each connection to it carried as a stream of the claim's connection.
 * A socket stays open once it is: while nobody claims it, whoever connects is told so, and no program inside can take its place.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ports/serve.h"

enum {
  BACKLOG = 4096,
  ACCEPTS_PER_TURN = 64,
  /* How long, and for how many bytes, somebody who is refused may still talk before the connection is closed on them. */
  REFUSAL_MS = 1000,
  REFUSAL_BYTES = 1048576,
  ACCEPTED_ID_MAX = 0x7FFFFFFE,
};

#define REFUSAL_BODY "No process on the host serves this sandbox's network now.\n"
#define TEXT(number) #number
#define NUMBER_TEXT(number) TEXT(number)
#define REFUSAL_BODY_BYTES 58
static const char refusal_text[] =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "content-type: text/plain\r\n"
    "content-length: " NUMBER_TEXT(REFUSAL_BODY_BYTES) "\r\n"
    "connection: close\r\n"
    "\r\n" REFUSAL_BODY;
_Static_assert(sizeof REFUSAL_BODY - 1 == REFUSAL_BODY_BYTES, "content-length");

/* Somebody who connected while nobody served. */
struct refusal {
  struct guest *guest;
  struct source source;
  struct timer timer;
  size_t taken;
};

/* ---- room ---- */

static bool may_accept(const struct listener *listener) {
  if (listener->guest->accepted_count >= ACCEPTED_MAX) return false;
  if (listener->newest == NULL) return true;
  const struct connection *connection = listener->newest->stream->connection;
  return connection->stream_count < STREAMS_MAX && !connection_busy(connection);
}

static bool is_ready(const struct listener *listener) {
  return listener->datagrams ? datagrams_may_come(listener) : may_accept(listener);
}

void listener_watch(struct listener *listener, bool accept) {
  if (!accept) listener->guest->accepting_paused = true;
  for (int i = 0; i < 2; i++) source_watch(&listener->guest->loop, &listener->ears[i].source, accept ? EPOLLIN : 0);
}

void serve_resume(struct guest *guest) {
  if (!guest->accepting_paused) return;
  guest->accepting_paused = false;
  for (struct listener *l = guest->listeners; l; l = l->next) listener_watch(l, is_ready(l));
}

void serve_tick(struct guest *guest) {
  for (struct listener *l = guest->listeners; l; l = l->next) {
    if (l->datagrams) datagrams_expire(l);
  }
  serve_resume(guest);
}

void serve_slot_freed(struct guest *guest) {
  guest->accepted_count--;
  serve_resume(guest);
}

bool serve_owns(const struct guest *guest, unsigned number) {
  for (const struct listener *l = guest->listeners; l; l = l->next) {
    if (l->number == number && l->datagrams == NULL) return true;
  }
  return false;
}

/* ---- nobody serves ---- */

static void refusal_end(struct refusal *refusal) {
  struct guest *guest = refusal->guest;
  timer_clear(&guest->loop, &refusal->timer);
  source_close(&guest->loop, &refusal->source);
  loop_free_later(&guest->loop, refusal);
  serve_slot_freed(guest);
}

static void refusal_expired(struct timer *timer) { refusal_end(container_of(timer, struct refusal, timer)); }

static void refusal_ready(struct source *source, uint32_t events) {
  (void)events;
  struct refusal *refusal = container_of(source, struct refusal, source);
  uint8_t ignored[16384];
  ssize_t got = recv(source->fd, ignored, sizeof ignored, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  refusal->taken += got > 0 ? (size_t)got : 0;
  if (got <= 0 || refusal->taken >= REFUSAL_BYTES) refusal_end(refusal);
}

/* Closing with bytes unread would reset the connection, and the answer would be lost on its way. */
static void refuse(struct guest *guest, int fd) {
  struct refusal *refusal = calloc(1, sizeof *refusal);
  if (refusal == NULL || send(fd, refusal_text, sizeof refusal_text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 || shutdown(fd, SHUT_WR) < 0) {
    free(refusal);
    close(fd);
    return;
  }
  refusal->guest = guest;
  refusal->timer.fire = refusal_expired;
  source_open(&refusal->source, fd, refusal_ready);
  source_watch(&guest->loop, &refusal->source, EPOLLIN);
  timer_set(&guest->loop, &refusal->timer, guest->loop.now + REFUSAL_MS);
  guest->accepted_count++;
}

/* ---- somebody does ---- */

static uint32_t next_id(struct connection *connection) {
  do connection->last_accepted = connection->last_accepted >= ACCEPTED_ID_MAX ? 2 : connection->last_accepted + 2;
  while (stream_find(connection, connection->last_accepted) != NULL);
  return connection->last_accepted;
}

/* Where whoever connected wanted to go: every address is the sandbox's own. */
static void put_destination(struct frame_writer *out, int fd) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = "";
  if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) return;
  const struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
  const struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
  bool is_v4 = address.ss_family == AF_INET;
  inet_ntop(address.ss_family, is_v4 ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr, text, sizeof text);
  frame_field_text(out, 2, text);
  frame_field_u64(out, 3, ntohs(is_v4 ? v4->sin_port : v6->sin6_port));
}

static void carry(struct listener *listener, int fd) {
  struct guest *guest = listener->guest;
  struct connection *connection = listener->newest->stream->connection;
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct stream *stream = stream_add(connection, next_id(connection), STREAM_PORT);
  if (stream == NULL) {
    close(fd);
    return;
  }
  if (!port_adopt(stream, fd, listener->number)) {
    stream_remove(stream);
    return;
  }
  guest->accepted_count++;
  frame_begin(&connection->out, FRAME_ACCEPTED, stream->id);
  frame_field_u64(&connection->out, 1, listener->number);
  if (listener->scope != SCOPE_LOOPBACK) put_destination(&connection->out, fd);
  /* Of one that the host was not told of, it must hear nothing. */
  if (!frame_end(&connection->out)) port_cancel(stream);
  connection_touch(connection);
}

static void ear_ready(struct source *source, uint32_t events) {
  (void)events;
  struct listener *listener = container_of(source, struct ear, source)->listener;
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
      /* They wait in the backlog until something was closed; the heartbeat looks, too. */
      listener_watch(listener, false);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

/* ---- claims ---- */

/* -1 with errno set. */
static int listen_on(int family, uint16_t number, enum scope scope) {
  int fd = socket(family, (scope == SCOPE_DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int on = 1;
  /* Connections of somebody who had the port before may still be dying. */
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

/* NULL with errno set. */
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
    struct ear *ear = &listener->ears[i];
    int fd = listen_on(families[i], number, scope);
    int error = errno;
    if (fd < 0 && !(i == 1 && is_without_ipv6(error))) {
      if (i == 1) source_close(&guest->loop, &listener->ears[0].source);
      free(listener->datagrams);
      free(listener);
      errno = error;
      return NULL;
    }
    ear->listener = listener;
    source_open(&ear->source, fd, listener->datagrams ? datagrams_ready : ear_ready);
  }
  listener->guest = guest;
  listener->number = number;
  listener->scope = scope;
  listener->next = guest->listeners;
  guest->listeners = listener;
  guest->listener_count++;
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
  for (struct listener *l = guest->listeners; l; l = l->next) {
    if (l->number == number && l->scope == scope) return l;
  }
  if (guest->listener_count >= LISTENERS_SERVED_MAX) {
    reply_error(connection, stream, ERR_BUSY, 0, "%d ports are served already", LISTENERS_SERVED_MAX);
    return NULL;
  }
  struct listener *listener = listener_open(guest, number, scope);
  if (listener == NULL) reply_error(connection, stream, code_of(errno), errno, "port %u: %s", number, strerror(errno));
  return listener;
}

bool request_listen(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  uint64_t number, scope;
  if (!field_find_u64(payload, header->length, 1, 0, &number) || number < 1 || number > 65535) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a port is 1 to 65535");
    return true;
  }
  if (!field_find_u64(payload, header->length, 2, SCOPE_LOOPBACK, &scope) || scope > SCOPE_DATAGRAMS) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a scope is 0 to %d", SCOPE_DATAGRAMS);
    return true;
  }
  if (scope != SCOPE_LOOPBACK && !guest->transparent) {
    reply_error(connection, header->stream, ERR_UNSUPPORTED, 0, "this sandbox has its loopback addresses only");
    return true;
  }
  if (guest->claim_count >= CLAIMS_MAX) {
    reply_error(connection, header->stream, ERR_BUSY, 0, "too many claims (%d)", CLAIMS_MAX);
    return true;
  }
  struct listener *listener = listener_of(connection, header->stream, (uint16_t)number, (enum scope)scope);
  if (listener == NULL) return true;
  struct claim *claim = calloc(1, sizeof *claim);
  struct stream *stream = claim ? stream_open(connection, header->stream, STREAM_CLAIM) : NULL;
  if (stream == NULL) {
    if (claim == NULL) reply_error(connection, header->stream, ERR_BUSY, ENOMEM, "out of memory");
    free(claim);
  } else {
    *claim = (struct claim){.stream = stream, .listener = listener, .older = listener->newest};
    stream->claim = claim;
    listener->newest = claim;
    guest->claim_count++;
    reply_ok(connection, header->stream);
  }
  listener_watch(listener, is_ready(listener));
  return true;
}

bool claim_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload) {
  struct listener *listener = stream->claim->listener;
  if (header->type == FRAME_CANCEL) claim_cancel(stream);
  if (header->type != FRAME_DATAGRAM) return true;
  return listener->datagrams && datagrams_answer(listener, payload, header->length);
}

void claim_cancel(struct stream *stream) {
  struct claim *claim = stream->claim;
  struct listener *listener = claim->listener;
  struct claim **link = &listener->newest;
  while (*link != claim) link = &(*link)->older;
  *link = claim->older;
  listener->guest->claim_count--;
  stream_remove(stream);
  free(claim);
  listener_watch(listener, is_ready(listener));
}
