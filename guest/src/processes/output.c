/*
 * Process output: read while there is room, stored with offsets until acknowledged, and sent to the attached client.
 * ENDED follows the last byte. A process that keeps its last output keeps it after it was acknowledged, and never waits
 * for a client to attach: the oldest output makes room.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "processes/process.h"
#include "processes/processes.h"

enum {
  READ_BUDGET = 1048576,
  PIPE_FIRST = 65536,
  PIPE_LARGE = 1048576,
  DISCARD_PAUSE_MS = 100,
  /* One part in this many of the buffer makes room at a time. */
  DROPPED_PART = 8,
};

static void check_finished(struct process *process);
static void output_read(struct output *output);

static void on_readable(struct source *source, uint32_t events) {
  (void)events;
  output_read(container_of(source, struct output, source));
}

void output_open(struct process *process, int which, int fd) {
  struct output *output = &process->outputs[which];
  fcntl(fd, F_SETFL, O_NONBLOCK | (process->pty ? O_RDWR : O_RDONLY));
  source_open(&output->source, fd, on_readable);
  output->open = true;
  source_watch(&process->guest->loop, &output->source, EPOLLIN);
}

static void output_shut(struct output *output) {
  output->open = false;
  source_close(&output->process->guest->loop, &output->source);
}

void output_close(struct process *process) {
  for (int i = 0; i < 2; i++) output_shut(&process->outputs[i]);
}

/* Handles output at its limit: one more byte is one too many. */
static void check_limit(struct output *output) {
  struct process *process = output->process;
  char beyond;
  ssize_t got = read(output->source.fd, &beyond, 1);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    output_shut(output);
    check_finished(process);
    return;
  }
  output_close(process);
  process_kill(process, KIND_OUTPUT);
  if (process->leader_ended && process->kind == KIND_EXITED) process->kind = KIND_OUTPUT;
  check_finished(process);
}

/*
 * Drops output after ENDED. No client will see it, but a closed pipe would kill a service that was left running on
 * purpose.
 */
static void discard(struct output *output) {
  struct process *process = output->process;
  char scratch[16384];
  size_t budget = READ_BUDGET;
  while (budget > 0) {
    ssize_t got = read(output->source.fd, scratch, sizeof scratch);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      output_shut(output);
      return;
    }
    budget -= (size_t)got < budget ? (size_t)got : budget;
  }
  /* A process that never stops writing gets only this much at a time, so it cannot keep the loop busy. */
  source_watch(&process->guest->loop, &output->source, 0);
  timer_set(&process->guest->loop, &process->linger, process->guest->loop.now + DISCARD_PAUSE_MS);
}

/*
 * Returns the space for the next bytes; 0 if there is no room. Drops the oldest bytes in steps, so a process that
 * writes single bytes does not cost a step for each.
 */
static int space_for(struct output *output, size_t most, struct iovec space[2]) {
  struct ring *ring = &output->ring;
  int parts = most > 0 ? ring_space(ring, OUTPUT_BUFFER, most, space) : 0;
  if (parts > 0 || most == 0 || !output->process->keeps_last || ring->capacity == 0) return parts;
  uint64_t before = ring->start + ring->capacity / DROPPED_PART;
  if (output->process->stream && before > output->acked) before = output->acked;
  ring_drop(ring, before);
  if (output->acked < ring->start) output->acked = ring->start;
  if (output->cursor < ring->start) output->cursor = ring->start;
  return ring_space(ring, OUTPUT_BUFFER, most, space);
}

static void output_read(struct output *output) {
  struct process *process = output->process;
  struct loop *loop = &process->guest->loop;
  if (process->discarding) {
    discard(output);
    return;
  }
  size_t budget = READ_BUDGET;
  while (output->open && budget > 0) {
    size_t most = budget;
    if (process->output_max > 0) {
      uint64_t left = process->output_max - process->outputs[0].ring.end - process->outputs[1].ring.end;
      if (left == 0) {
        check_limit(output);
        return;
      }
      if (most > left) most = (size_t)left;
    }
    struct iovec space[2];
    int parts = space_for(output, most, space);
    if (parts == 0) {
      source_watch(loop, &output->source, 0); /* until an ACK makes room, or no client is attached */
      break;
    }
    ssize_t got = readv(output->source.fd, space, parts);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      source_watch(loop, &output->source, EPOLLIN);
      break;
    }
    if (got <= 0) { /* a terminal whose last user has closed it returns EIO */
      output_shut(output);
      break;
    }
    ring_added(&output->ring, (size_t)got);
    budget -= (size_t)got;
    if (!output->enlarged && output->ring.end >= PIPE_FIRST) {
      output->enlarged = true;
      if (!process->pty) fcntl(output->source.fd, F_SETPIPE_SZ, PIPE_LARGE);
    }
  }
  output_want_send(process);
  check_finished(process);
}

static void on_linger(struct timer *timer) {
  struct process *process = container_of(timer, struct process, linger);
  struct loop *loop = &process->guest->loop;
  process->lingered = true;
  for (int i = 0; i < 2; i++) {
    struct output *output = &process->outputs[i];
    if (!output->open) continue;
    if (process->discarding)
      source_watch(loop, &output->source, EPOLLIN);
    else
      output_read(output);
  }
  check_finished(process);
}

void output_leader_ended(struct process *process) {
  struct loop *loop = &process->guest->loop;
  for (int i = 0; i < 2; i++) {
    struct output *output = &process->outputs[i];
    if (!output->open) continue;
    int pending = 0;
    if (!process->pty && ioctl(output->source.fd, FIONREAD, &pending) == 0) output->drain_to = output->ring.end + (uint64_t)pending;
    /* Usually this reads the end of the pipe, and ENDED can go out in the same turn. */
    output_read(output);
  }
  if (process->state != PROCESS_ENDED) {
    process->linger.fire = on_linger;
    timer_set(loop, &process->linger, process->ended_at + LINGER_MS);
  }
  check_finished(process);
}

static bool output_done(const struct output *output) {
  return !output->open || (output->process->lingered && output->ring.end >= output->drain_to);
}

/*
 * If a caller ended the process, ENDED means to it that the whole tree has ended. So we delay ENDED until the last
 * process of the tree has ended.
 */
static bool waits_for_tree(const struct process *process) {
  return process->why != KIND_NONE && !process->tree_empty && !process->is_overdue;
}

static void check_finished(struct process *process) {
  if (!process->leader_ended || process->state == PROCESS_ENDED) return;
  if (!output_done(&process->outputs[0]) || !output_done(&process->outputs[1]) || waits_for_tree(process)) return;
  struct loop *loop = &process->guest->loop;
  timer_clear(loop, &process->overdue);
  process->state = PROCESS_ENDED;
  process->discarding = true;
  process->linger.fire = on_linger;
  timer_clear(loop, &process->linger);
  input_close(process);
  if (process->tree_empty) output_close(process);
  for (int i = 0; i < 2; i++) {
    if (process->outputs[i].open) source_watch(loop, &process->outputs[i].source, EPOLLIN);
  }
  output_want_send(process);
}

void output_overdue(struct process *process) { check_finished(process); }

void output_tree_empty(struct process *process) {
  check_finished(process);
  if (process->state == PROCESS_ENDED) output_close(process);
}

bool output_ack(struct process *process, const uint8_t *payload, size_t length) {
  if (length != OUTPUT_HEADER || payload[0] < 1 || payload[0] > 2) return false;
  struct output *output = &process->outputs[payload[0] - 1];
  uint64_t before = get_u64(payload + 1);
  if (before > output->ring.end) before = output->ring.end;
  if (before > output->acked) output->acked = before;
  if (!process->keeps_last) ring_drop(&output->ring, output->acked);
  if (output->cursor < output->acked) output->cursor = output->acked;
  bool empty = output->ring.start == output->ring.end;
  if (empty && !output->open) ring_free(&output->ring);
  if (output->open && output->source.events == 0 && !process->discarding) output_read(output);
  struct stream *stream = process->stream;
  if (output_taken(process) && stream && stream->closed) process_detach(process);
  return true;
}

bool output_taken(const struct process *process) {
  return process->outputs[0].acked == process->outputs[0].ring.end && process->outputs[1].acked == process->outputs[1].ring.end;
}

void output_rewind(struct process *process, const uint64_t from[2]) {
  for (int i = 0; i < 2; i++) {
    process->outputs[i].cursor = from[i];
    if (process->keeps_last) process->outputs[i].acked = from[i];
  }
}

void output_unattended(struct process *process) {
  if (!process->keeps_last || process->discarding) return;
  for (int i = 0; i < 2; i++) {
    struct output *output = &process->outputs[i];
    if (output->open && output->source.events == 0) source_watch(&process->guest->loop, &output->source, EPOLLIN);
  }
}

void output_trim_idle(struct guest *guest) {
  for (struct process *process = guest->processes->oldest; process; process = process->newer) {
    for (int i = 0; i < 2; i++) {
      struct ring *ring = &process->outputs[i].ring;
      if (ring->start == ring->end && ring->capacity > 0) ring_free(ring);
    }
    if (process->input_ring.start == process->input_ring.end) ring_free(&process->input_ring);
  }
}
