/* Input of a process: to a pipe or a terminal, within a window, acknowledged as it is written. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "processes/process.h"

/* Acknowledging every write would answer each small frame with another; the window is refilled in quarters. */
enum { ACK_STEP = STDIN_WINDOW / 4 };

static void input_write(struct process *process);

static void on_writable(struct source *source, uint32_t events) {
  (void)events;
  input_write(container_of(source, struct process, input));
}

void input_open(struct process *process, int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK | (process->pty ? O_RDWR : O_WRONLY));
  source_open(&process->input, fd, on_writable);
}

static void acknowledge(struct process *process) {
  struct stream *stream = process->stream;
  struct ring *ring = &process->input_ring;
  if (ring->start == process->input_acked || stream == NULL || stream->closed) return;
  if (ring->start != ring->end && ring->start - process->input_acked < ACK_STEP) return;
  uint8_t offset[8];
  put_u64(offset, ring->start);
  frame_begin(&stream->connection->out, FRAME_STDIN_ACK, stream->id);
  frame_raw(&stream->connection->out, offset, sizeof offset);
  frame_end(&stream->connection->out);
  connection_touch(stream->connection);
  process->input_acked = ring->start;
}

void input_close(struct process *process) {
  source_close(&process->guest->loop, &process->input);
  process->input_closed = true;
  /* These bytes have no reader. */
  ring_drop(&process->input_ring, process->input_ring.end);
  acknowledge(process);
}

/* On a terminal, end of input is a character; closing the master would hang up. */
static void end_terminal_input(struct process *process) {
  struct termios modes;
  char end = 4;
  if (tcgetattr(process->input.fd, &modes) == 0 && modes.c_cc[VEOF] != 0) end = (char)modes.c_cc[VEOF];
  if (write(process->input.fd, &end, 1) < 0) { /* best effort: the terminal is full */
  }
}

static void input_write(struct process *process) {
  struct ring *ring = &process->input_ring;
  struct loop *loop = &process->guest->loop;
  if (process->input_closed) {
    ring_drop(ring, ring->end);
    acknowledge(process);
    return;
  }
  while (ring->start != ring->end) {
    struct iovec view[2];
    int parts = ring_view(ring, ring->start, STDIN_WINDOW, view);
    ssize_t put = writev(process->input.fd, view, parts);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      acknowledge(process);
      source_watch(loop, &process->input, EPOLLOUT);
      return;
    }
    if (put < 0) {
      input_close(process);
      return;
    }
    ring_drop(ring, ring->start + (uint64_t)put);
  }
  source_watch(loop, &process->input, 0);
  acknowledge(process);
  if (!process->input_ending) return;
  if (process->pty)
    end_terminal_input(process);
  else
    input_close(process);
  process->input_ending = false;
}

bool input_data(struct process *process, const uint8_t *payload, size_t length) {
  if (length < 8) return false;
  struct ring *ring = &process->input_ring;
  uint64_t offset = get_u64(payload);
  payload += 8;
  length -= 8;
  if (offset > ring->end) return false; /* a gap: bytes would be lost silently */
  uint64_t known = ring->end - offset;
  if (known >= length) return true;
  payload += known;
  length -= (size_t)known;
  if (process->input_closed) {
    ring->end += length;
  } else if (!ring_add(ring, STDIN_WINDOW, payload, length)) {
    return false;
  }
  input_write(process);
  return true;
}

bool input_end(struct process *process, const uint8_t *payload, size_t length) {
  if (length != 8 || get_u64(payload) != process->input_ring.end) return false;
  process->input_ending = true;
  input_write(process);
  return true;
}
