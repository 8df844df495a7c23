/* Connections to ports on the sandbox's loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ring.h"
#include "ports/ports.h"
#include "ports/serve.h"
#include "wire/tags.h"

enum {
  PORT_CHUNK = 65536,
  PORT_READ_BUDGET = 524288,
  /* Smaller chunks are copied to the queue and leave together, in one call at the end of the turn. */
  COPIED_CHUNK = 16384,
};

struct port {
  struct stream *stream;
  struct source source;
  uint16_t number;
  bool over_ipv6, connected, accepted;
  bool host_ended, peer_ended, shut;
  struct ring to; /* from the host, not yet written */
  uint64_t credited;
  size_t granted;  /* bytes the host may send before it gets credit */
  uint64_t window; /* bytes the host still accepts */
};

static void port_ready(struct source *source, uint32_t events);

static struct loop *loop_of(struct port *port) { return &port->stream->connection->guest->loop; }

static void port_free(struct port *port) {
  struct loop *loop = loop_of(port);
  source_close(loop, &port->source);
  ring_free(&port->to);
  struct guest *guest = port->stream->connection->guest;
  stream_remove(port->stream);
  loop_free_later(loop, port);
  if (!port->accepted) return;
  if (port->granted > ACCEPTED_WINDOW) guest->ports->wide_count--;
  serve_slot_freed(guest);
}

static void port_fail(struct port *port, enum error_code code, int error) {
  reply_error(port->stream->connection, port->stream->id, code, error, "port %u: %s", port->number, strerror(error));
  port_free(port);
}

static void set_interest(struct port *port) {
  if (!port->connected) {
    source_watch(loop_of(port), &port->source, EPOLLOUT);
    return;
  }
  bool read = !port->peer_ended && port->window > 0 && !connection_busy(port->stream->connection);
  bool write = port->to.start != port->to.end;
  source_watch(loop_of(port), &port->source, (read ? EPOLLIN : 0) | (write ? EPOLLOUT : 0));
}

/* Starts connecting to one of the two loopback addresses. Returns false with errno set on failure. */
static bool port_dial(struct port *port) {
  int fd = socket(port->over_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port->number), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port->number), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const struct sockaddr *address = port->over_ipv6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
  socklen_t size = port->over_ipv6 ? sizeof v6 : sizeof v4;
  if (connect(fd, address, size) < 0 && errno != EINPROGRESS) {
    int error = errno;
    close(fd);
    errno = error;
    return false;
  }
  source_open(&port->source, fd, port_ready);
  set_interest(port);
  return true;
}

static void port_refused(struct port *port, int error) {
  source_close(loop_of(port), &port->source);
  if (!port->over_ipv6) {
    port->over_ipv6 = true;
    if (port_dial(port)) return;
    /* Without IPv6, the first error is the meaningful one. */
    if (errno == ECONNREFUSED) error = errno;
  }
  port_fail(port, ERR_REFUSED, error);
}

/* Frees the port if both sides have ended, and returns whether it did. */
static bool port_done(struct port *port) {
  if (!port->peer_ended || !port->shut) return false;
  port_free(port);
  return true;
}

static void send_credit(struct port *port) {
  struct connection *connection = port->stream->connection;
  uint64_t written = port->to.start;
  if (written - port->credited < port->granted / 4 || port->host_ended) return;
  uint64_t more = written - port->credited;
  /* A connection in use is worth a larger window, unless too many have one: the client may stop reading. */
  if (port->granted < STREAM_WINDOW && connection->guest->ports->wide_count < ACCEPTED_WIDE_MAX) {
    connection->guest->ports->wide_count++;
    more += STREAM_WINDOW - port->granted;
    port->granted = STREAM_WINDOW;
  }
  uint8_t credit[4];
  put_u32(credit, (uint32_t)more);
  port->credited = written;
  frame_begin(&connection->out, FRAME_CREDIT, port->stream->id);
  frame_raw(&connection->out, credit, sizeof credit);
  frame_end(&connection->out);
  connection_touch(connection);
}

/* Writes straight from the frame if nothing is queued before it; returns how many bytes it wrote. */
static size_t write_through(struct port *port, const uint8_t *bytes, size_t length) {
  if (!port->connected || port->to.start != port->to.end) return 0;
  ssize_t put = send(port->source.fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put <= 0) return 0; /* an error shows again when the rest is tried */
  ring_pass(&port->to, (size_t)put);
  return (size_t)put;
}

/* Returns false if the port was freed. */
static bool port_write(struct port *port) {
  while (port->connected && port->to.start != port->to.end) {
    struct iovec view[2];
    struct msghdr message = {.msg_iov = view, .msg_iovlen = (size_t)ring_view(&port->to, port->to.start, port->granted, view)};
    ssize_t put = sendmsg(port->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) {
      port_fail(port, ERR_IO, errno);
      return false;
    }
    ring_drop(&port->to, port->to.start + (uint64_t)put);
  }
  send_credit(port);
  if (port->connected && port->to.start == port->to.end) {
    if (port->to.capacity > PORT_CHUNK) ring_free(&port->to);
    if (port->host_ended && !port->shut) {
      port->shut = true;
      shutdown(port->source.fd, SHUT_WR);
    }
  }
  if (port_done(port)) return false;
  set_interest(port);
  return true;
}

/* `chunk` has room for the header before the bytes. Returns false if the port was freed. */
static bool send_data(struct port *port, uint8_t *chunk, size_t count) {
  struct stream *stream = port->stream;
  struct connection *connection = stream->connection;
  if (count > COPIED_CHUNK) {
    frame_header_encode(chunk, FRAME_DATA, stream->id, (uint32_t)count);
    struct iovec part = {chunk, FRAME_HEADER_BYTES + count};
    connection_send(connection, &part, 1);
    return !connection->dead;
  }
  frame_begin(&connection->out, FRAME_DATA, stream->id);
  frame_raw(&connection->out, chunk + FRAME_HEADER_BYTES, count);
  connection_touch(connection);
  if (frame_end(&connection->out)) return true;
  port_fail(port, ERR_IO, ENOMEM);
  return false;
}

static void port_read(struct port *port) {
  struct connection *connection = port->stream->connection;
  uint8_t chunk[FRAME_HEADER_BYTES + PORT_CHUNK];
  size_t budget = PORT_READ_BUDGET;
  while (budget > 0 && port->window > 0 && !port->peer_ended && !connection_busy(connection)) {
    size_t most = port->window < PORT_CHUNK ? (size_t)port->window : PORT_CHUNK;
    ssize_t got = recv(port->source.fd, chunk + FRAME_HEADER_BYTES, most, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) {
      port_fail(port, ERR_IO, errno);
      return;
    }
    if (got == 0) {
      port->peer_ended = true;
      frame_begin(&connection->out, FRAME_END, port->stream->id);
      frame_end(&connection->out);
      connection_touch(connection);
      break;
    }
    if (!send_data(port, chunk, (size_t)got)) return;
    port->window -= (uint64_t)got;
    budget -= (size_t)got < budget ? (size_t)got : budget;
    if ((size_t)got < most) break; /* there was no more; another read would only cost a call */
  }
  if (!port_done(port)) set_interest(port);
}

static void port_ready(struct source *source, uint32_t events) {
  struct port *port = container_of(source, struct port, source);
  if (!port->connected) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
    if (error) {
      port_refused(port, error);
      return;
    }
    port->connected = true;
    reply_ok(port->stream->connection, port->stream->id);
    port_write(port);
    return;
  }
  if ((events & EPOLLOUT) && !port_write(port)) return;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) port_read(port);
}

static bool port_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload) {
  struct port *port = stream->owner;
  switch (header->type) {
    case FRAME_DATA: {
      if (port->host_ended) return false;
      size_t put = write_through(port, payload, header->length);
      if (!ring_add(&port->to, port->granted, payload + put, header->length - put)) return false;
      port_write(port);
      return true;
    }
    case FRAME_END:
      port->host_ended = true;
      port_write(port);
      return true;
    case FRAME_CREDIT:
      if (header->length != 4) return false;
      port->window += get_u32(payload);
      set_interest(port);
      return true;
    default:
      return true;
  }
}

void port_cancel(struct stream *stream) {
  struct port *port = stream->owner;
  /* The client must be able to tell a broken answer from a complete one. */
  struct linger reset = {.l_onoff = 1};
  if (port->accepted) setsockopt(port->source.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  port_free(port);
}

static void port_resume(struct stream *stream) { set_interest(stream->owner); }

static const struct stream_kind port_stream = {.frame = port_frame, .cancel = port_cancel, .resume = port_resume};

bool request_connect(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  uint64_t number;
  if (!field_find_u64(payload, header->length, TAG_CONNECT_PORT, 0, &number) || number < 1 || number > 65535) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a port must be 1 to 65535");
    return true;
  }
  struct stream *stream = stream_open(connection, header->stream, &port_stream, NULL);
  struct port *port = stream ? calloc(1, sizeof *port) : NULL;
  if (port == NULL) {
    if (stream) {
      reply_error(connection, header->stream, ERR_BUSY, ENOMEM, "out of memory");
      stream_remove(stream);
    }
    return true;
  }
  *port = (struct port){.stream = stream, .number = (uint16_t)number, .granted = STREAM_WINDOW, .window = STREAM_WINDOW, .source.fd = -1};
  stream->owner = port;
  if (!port_dial(port)) port_refused(port, errno);
  return true;
}

struct stream *port_adopt(struct connection *connection, uint32_t id, int fd, uint16_t number) {
  struct port *port = calloc(1, sizeof *port);
  struct stream *stream = port ? stream_add(connection, id, &port_stream, port) : NULL;
  if (stream == NULL) {
    free(port);
    close(fd);
    return NULL;
  }
  *port = (struct port){.stream = stream, .number = number, .granted = ACCEPTED_WINDOW, .window = ACCEPTED_WINDOW};
  port->connected = port->accepted = true;
  source_open(&port->source, fd, port_ready);
  set_interest(port);
  return stream;
}
