/*
 * Load for the network figures: the same program beside the server, behind another proxy, and inside a sandbox.
 *
 *   network-load requests ADDRESS PORT CONNECTIONS SECONDS < request
 *     keeps that many connections busy with one request each at a time, kept alive; prints requests, seconds, and the time of one (µs: p50, p95, p99).
 *   network-load bulk ADDRESS PORT BYTES < request
 *     sends it once and reads until that many bytes have arrived; prints bytes and seconds.
 *
 * The request's bytes are sent unchanged. ADDRESS is IPv4. Anything unexpected ends it with a message and status 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, HEAD_BYTES_MAX = 8192, SAMPLES_MAX = 4 * 1000 * 1000, READ_BYTES = 1 << 18 };

struct connection {
  int fd;
  uint64_t began_ns;
  /* The answer that is being read: its head so far, then how much of the body is missing. */
  size_t head_length;
  long long body_left;
  char head[HEAD_BYTES_MAX + 1];
};

static char request[1 << 16];
static size_t request_length;
static uint32_t *samples;
static size_t sample_count;

static void die(const char *what) {
  fprintf(stderr, "network-load: %s: %s\n", what, errno ? strerror(errno) : "unexpected");
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int dial(const char *address, const char *port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  if (inet_pton(AF_INET, address, &to.sin_addr) != 1) die("address");
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

static void send_request(struct connection *connection) {
  connection->began_ns = now_ns();
  connection->head_length = 0;
  connection->body_left = -1;
  /* Small enough that an empty socket takes it whole. */
  if (write(connection->fd, request, request_length) != (ssize_t)request_length) die("write");
}

/* Returns the length of the body after a complete head. Only answers with a length are supported. */
static long long body_length(char *head) {
  if (strncmp(head, "HTTP/1.1 200", 12) != 0) {
    fprintf(stderr, "network-load: %.300s\n", head);
    exit(1);
  }
  for (char *line = strchr(head, '\n'); line; line = strchr(line + 1, '\n'))
    if (strncasecmp(line + 1, "content-length:", 15) == 0) return atoll(line + 16);
  die("an answer without a length");
  return 0;
}

/* Takes the bytes that arrived; returns true when the answer is complete. */
static int take(struct connection *connection, const char *bytes, size_t length) {
  if (connection->body_left < 0) {
    if (connection->head_length + length > HEAD_BYTES_MAX) die("a long head");
    memcpy(connection->head + connection->head_length, bytes, length);
    connection->head_length += length;
    connection->head[connection->head_length] = 0;
    char *end = strstr(connection->head, "\r\n\r\n");
    if (!end) return 0;
    size_t used = (size_t)(end + 4 - connection->head);
    *end = 0;
    connection->body_left = body_length(connection->head) - (long long)(connection->head_length - used);
  } else {
    connection->body_left -= (long long)length;
  }
  if (connection->body_left < 0) die("more than was asked for");
  return connection->body_left == 0;
}

static int by_size(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
  return a < b ? -1 : a > b;
}

static void requests(const char *address, const char *port, int count, double seconds) {
  if (count < 1 || count > CONNECTIONS_MAX) die("connections");
  struct connection *all = calloc((size_t)count, sizeof *all);
  samples = malloc(SAMPLES_MAX * sizeof *samples);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  if (!all || !samples || poll < 0) die("memory");
  for (int index = 0; index < count; index++) {
    all[index].fd = dial(address, port);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[index]};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, all[index].fd, &event) < 0) die("epoll");
  }
  uint64_t began = now_ns(), until = began + (uint64_t)(seconds * 1e9), done = 0, at = began;
  for (int index = 0; index < count; index++) send_request(&all[index]);
  static char buffer[READ_BYTES];
  struct epoll_event events[256];
  while ((at = now_ns()) < until) {
    int ready = epoll_wait(poll, events, 256, 1000);
    for (int index = 0; index < ready; index++) {
      struct connection *connection = events[index].data.ptr;
      ssize_t length = read(connection->fd, buffer, sizeof buffer);
      if (length <= 0) die("a connection ended");
      if (!take(connection, buffer, (size_t)length)) continue;
      done++;
      if (sample_count < SAMPLES_MAX) samples[sample_count++] = (uint32_t)((now_ns() - connection->began_ns) / 100);
      send_request(connection);
    }
  }
  if (sample_count == 0) die("no answer");
  qsort(samples, sample_count, sizeof *samples, by_size);
  double p50 = samples[sample_count / 2] / 10.0, p95 = samples[sample_count * 95 / 100] / 10.0, p99 = samples[sample_count * 99 / 100] / 10.0;
  printf("{\"requests\":%llu,\"seconds\":%.3f,\"p50Us\":%.1f,\"p95Us\":%.1f,\"p99Us\":%.1f}\n", (unsigned long long)done,
         (double)(at - began) / 1e9, p50, p95, p99);
}

static void bulk(const char *address, const char *port, long long bytes) {
  static char buffer[READ_BYTES];
  int fd = dial(address, port);
  uint64_t began = now_ns();
  if (write(fd, request, request_length) != (ssize_t)request_length) die("write");
  long long read_bytes = 0;
  while (read_bytes < bytes) {
    ssize_t length = read(fd, buffer, sizeof buffer);
    if (length < 0) die("read");
    if (length == 0) break;
    if (read_bytes == 0 && strncmp(buffer, "HTTP/1.1 200", 12) != 0) {
      fprintf(stderr, "network-load: %.*s\n", length > 300 ? 300 : (int)length, buffer);
      exit(1);
    }
    read_bytes += length;
  }
  printf("{\"bytes\":%lld,\"seconds\":%.4f}\n", read_bytes, (double)(now_ns() - began) / 1e9);
}

int main(int argc, char **argv) {
  ssize_t length;
  while ((length = read(0, request + request_length, sizeof request - request_length)) > 0) request_length += (size_t)length;
  if (argc == 6 && strcmp(argv[1], "requests") == 0) requests(argv[2], argv[3], atoi(argv[4]), atof(argv[5]));
  else if (argc == 5 && strcmp(argv[1], "bulk") == 0) bulk(argv[2], argv[3], atoll(argv[4]));
  else {
    fprintf(stderr, "usage: network-load requests ADDRESS PORT CONNECTIONS SECONDS | bulk ADDRESS PORT BYTES\n");
    return 2;
  }
  return 0;
}
