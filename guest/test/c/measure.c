/*
 * Measures a running guest from outside: round trips of a command and of PING, and output throughput.
 * usage: measure SOCKET [runs] [megabytes]
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/base.h"
#include "wire/frame.h"

static int guest;
static uint8_t payload[FRAME_PAYLOAD_MAX];

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static struct frame_header receive(void) {
  uint8_t head[FRAME_HEADER_BYTES];
  struct frame_header header;
  if (read_full(guest, head, sizeof head) != sizeof head) die("the guest hung up");
  if (!frame_header_parse(head, FROM_GUEST, &header)) die("a malformed frame");
  if (read_full(guest, payload, header.length) != (ssize_t)header.length) die("the guest hung up");
  return header;
}

static void submit(struct frame_writer *writer) {
  if (!frame_end(writer) || !write_full(guest, writer->data, writer->length)) die_errno("write");
  writer->length = 0;
}

static int compare(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static void show(const char *what, double *times, int runs) {
  qsort(times, (size_t)runs, sizeof *times, compare);
  printf("%-14s p5 %7.0f us  p50 %7.0f us  p95 %7.0f us  p99 %7.0f us\n", what, times[runs / 20], times[runs / 2], times[runs * 95 / 100], times[runs * 99 / 100]);
}

/* Runs a command to its end, and acknowledges its output. Returns the number of bytes it wrote. */
static uint64_t run(uint32_t stream, const char *const *argv) {
  struct frame_writer writer = {0};
  char ref[64];
  snprintf(ref, sizeof ref, "measure-%d-%u", (int)getpid(), stream);
  frame_begin(&writer, FRAME_SPAWN, stream);
  frame_field_text(&writer, 1, ref);
  for (; *argv; argv++) frame_field_text(&writer, 2, *argv);
  frame_field_text(&writer, 3, "PATH=/usr/bin:/bin");
  frame_field_text(&writer, 4, "/");
  submit(&writer);
  uint64_t bytes = 0;
  for (;;) {
    struct frame_header header = receive();
    if (header.type == FRAME_ERROR) die("%.*s", (int)header.length, payload);
    if (header.type == FRAME_OUTPUT) {
      bytes += header.length - 9;
      uint8_t upto[9] = {payload[0]};
      put_u64(upto + 1, get_u64(payload + 1) + header.length - 9);
      frame_begin(&writer, FRAME_ACK, stream);
      frame_raw(&writer, upto, sizeof upto);
      submit(&writer);
    }
    if (header.type == FRAME_ENDED) break;
  }
  frame_begin(&writer, FRAME_FORGET, stream + 2);
  frame_field_text(&writer, 1, ref);
  submit(&writer);
  while (receive().stream != stream + 2) {}
  frame_writer_free(&writer);
  return bytes;
}

int main(int argc, char **argv) {
  if (argc < 2) die("usage: measure SOCKET [runs] [megabytes]");
  int runs = argc > 2 ? atoi(argv[2]) : 1000;
  const char *megabytes = argc > 3 ? argv[3] : "1000";
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
  guest = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(guest, (struct sockaddr *)&address, sizeof address) < 0) die_errno("connect");
  struct frame_writer writer = {0};
  frame_begin(&writer, FRAME_HELLO, 0);
  frame_field_u64(&writer, 1, PROTOCOL_VERSION);
  submit(&writer);
  receive();
  double *times = xalloc((size_t)runs * sizeof *times);
  for (int i = 0; i < runs; i++) {
    double start = now_us();
    frame_begin(&writer, FRAME_PING, 1);
    submit(&writer);
    receive();
    times[i] = now_us() - start;
  }
  show("ping", times, runs);
  uint32_t stream = 1;
  for (int i = 0; i < runs; i++, stream += 4) {
    double start = now_us();
    run(stream, (const char *const[]){"/bin/true", NULL});
    times[i] = now_us() - start;
  }
  show("/bin/true", times, runs);
  char count[32];
  snprintf(count, sizeof count, "%sM", megabytes);
  double start = now_us();
  uint64_t bytes = run(stream, (const char *const[]){"head", "-c", count, "/dev/zero", NULL});
  printf("output         %.0f MB/s\n", (double)bytes / (now_us() - start));
  return 0;
}
