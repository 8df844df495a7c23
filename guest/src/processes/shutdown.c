/* Orderly shutdown: TERM to all work, KILL after the grace period, the answer, then exit. */
#include "processes/shutdown.h"

#include <signal.h>
#include <stdio.h>

#include "processes/process.h"
#include "processes/processes.h"
#include "processes/supervisors.h"
#include "wire/tags.h"

/*
 * Even a tree that cannot be killed (stuck in the kernel) does not hold up the guest: the exit of process 1 ends
 * everything.
 */
enum { KILL_PATIENCE_MS = 5000 };

static void shutdown_stream_removed(struct stream *stream) {
  struct processes *processes = stream->connection->guest->processes;
  if (processes->shutdown_stream == stream) processes->shutdown_stream = NULL;
}

/* The stream of a SHUTDOWN that waits for the end. */
static const struct stream_kind shutdown_stream = {.cancel = stream_remove, .removed = shutdown_stream_removed};

static void finish(struct guest *guest) {
  if (guest->shutdown_done) return;
  guest->shutdown_done = true;
  struct stream *stream = guest->processes->shutdown_stream;
  if (stream == NULL) return;
  reply_ok(stream->connection, stream->id);
  stream_remove(stream);
}

void shutdown_check(struct guest *guest) {
  if (guest->shutting_down && !supervisors_busy(guest) && guest->processes->waiting_first == NULL) finish(guest);
}

bool request_shutdown(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  uint64_t grace_ms;
  if (!field_find_u64(payload, header->length, TAG_SHUTDOWN_GRACE_MS, 0, &grace_ms)) return false;
  struct stream *stream = stream_open(connection, header->stream, &shutdown_stream, NULL);
  if (stream) shutdown_begin(connection->guest, stream, grace_ms);
  return true;
}

static void on_give_up(struct timer *timer) { finish(container_of(timer, struct processes, shutdown_timer)->guest); }

static void each_process(struct guest *guest, void (*act)(struct process *)) {
  for (struct supervisor *s = guest->processes->supervisors, *next; s; s = next) {
    next = s->next;
    if (s->process) act(s->process);
  }
}

static void terminate(struct process *process) { process_signal(process, SIGTERM, true); }
static void end(struct process *process) { process_kill(process, KIND_CANCELLED); }

static void on_grace_over(struct timer *timer) {
  struct guest *guest = container_of(timer, struct processes, shutdown_timer)->guest;
  each_process(guest, end);
  timer->fire = on_give_up;
  timer_set(&guest->loop, timer, guest->loop.now + KILL_PATIENCE_MS);
}

void shutdown_begin(struct guest *guest, struct stream *stream, uint64_t grace_ms) {
  if (guest->processes->shutdown_stream && stream) {
    reply_error(stream->connection, stream->id, ERR_BUSY, 0, "already shutting down");
    stream_remove(stream);
    return;
  }
  if (stream) guest->processes->shutdown_stream = stream;
  if (guest->shutting_down) return;
  guest->shutting_down = true;
  each_process(guest, terminate);
  guest->processes->shutdown_timer.fire = on_grace_over;
  timer_set(&guest->loop, &guest->processes->shutdown_timer, guest->loop.now + grace_ms);
  shutdown_check(guest);
}
