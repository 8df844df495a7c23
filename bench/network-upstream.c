/*
 * The server of the network figures. It does as little work as a server can, so the figures show what is in front of it.
 *
 *   network-upstream: listens on a free port of 127.0.0.1, prints it, and serves until its input ends.
 *     GET /…          13 bytes
 *     GET /big/BYTES  that many
 * Requests have no body. Each is answered before the next is read.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_BYTES_MAX = 8192, BLOCK_BYTES = 1 << 18 };

struct connection {
  int fd;
  size_t length;
  /* Bytes of a large body that are still to be sent. */
  long long left;
  char request[REQUEST_BYTES_MAX + 1];
};

static char block[BLOCK_BYTES];
static int poll_fd;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void watch(struct connection *connection, int operation, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = connection};
  if (epoll_ctl(poll_fd, operation, connection->fd, &event) < 0) die("epoll_ctl");
}

static void drop(struct connection *connection) {
  close(connection->fd);
  free(connection);
}

/* Returns false if the connection is closed. */
static int send_left(struct connection *connection) {
  while (connection->left > 0) {
    size_t piece = connection->left < BLOCK_BYTES ? (size_t)connection->left : BLOCK_BYTES;
    ssize_t sent = send(connection->fd, block, piece, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) {
      watch(connection, EPOLL_CTL_MOD, EPOLLOUT);
      return 1;
    }
    if (sent <= 0) return 0;
    connection->left -= sent;
  }
  watch(connection, EPOLL_CTL_MOD, EPOLLIN);
  return 1;
}

static int answer(struct connection *connection) {
  static const char small[] = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nhello, world\n";
  char *big = strncmp(connection->request, "GET /big/", 9) == 0 ? connection->request + 9 : NULL;
  connection->length = 0;
  if (!big) return send(connection->fd, small, sizeof small - 1, MSG_NOSIGNAL) == sizeof small - 1;
  connection->left = atoll(big);
  char head[128];
  int length = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\ncontent-length: %lld\r\n\r\n", connection->left);
  if (send(connection->fd, head, (size_t)length, MSG_NOSIGNAL) != length) return 0;
  return send_left(connection);
}

static int receive(struct connection *connection) {
  ssize_t length = read(connection->fd, connection->request + connection->length, REQUEST_BYTES_MAX - connection->length);
  if (length <= 0) return 0;
  connection->length += (size_t)length;
  connection->request[connection->length] = 0;
  if (strstr(connection->request, "\r\n\r\n")) return answer(connection);
  return connection->length < REQUEST_BYTES_MAX;
}

static void welcome(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
  if (fd < 0) return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct connection *connection = calloc(1, sizeof *connection);
  if (!connection) die("calloc");
  connection->fd = fd;
  watch(connection, EPOLL_CTL_ADD, EPOLLIN);
}

int main(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 4096) < 0) die("listen");
  if (getsockname(listener, (struct sockaddr *)&at, &size) < 0) die("getsockname");
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  static struct connection listening, input;
  listening.fd = listener;
  input.fd = 0;
  watch(&listening, EPOLL_CTL_ADD, EPOLLIN);
  watch(&input, EPOLL_CTL_ADD, EPOLLIN);
  memset(block, 'x', sizeof block);
  printf("%d\n", ntohs(at.sin_port));
  fflush(stdout);
  struct epoll_event events[256];
  for (;;) {
    int ready = epoll_wait(poll_fd, events, 256, -1);
    for (int index = 0; index < ready; index++) {
      struct connection *connection = events[index].data.ptr;
      if (connection == &input) return 0;
      if (connection == &listening) welcome(listener);
      else if (!(events[index].events & EPOLLOUT ? send_left(connection) : receive(connection))) drop(connection);
    }
  }
}
