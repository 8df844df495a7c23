/* The orderly end: TERM to all work, KILL after the grace, the answer, then exit. */
#include <signal.h>
#include <stdio.h>

#include "connection/guest.h"
#include "processes/process.h"

/* Even a tree that cannot be killed (stuck in the kernel) does not keep the guest: process 1's exit takes everything with it. */
enum { KILL_PATIENCE_MS = 5000 };

static void finish(struct guest *guest) {
  if (guest->shutdown_done) return;
  guest->shutdown_done = true;
  struct stream *stream = guest->shutdown_stream;
  if (stream == NULL) return;
  reply_ok(stream->connection, stream->id);
  stream_remove(stream);
}

void shutdown_check(struct guest *guest) {
  if (guest->shutting_down && !supervisor_any_busy(guest) && guest->waiting_first == NULL) finish(guest);
}

static void on_give_up(struct timer *timer) { finish(container_of(timer, struct guest, shutdown_timer)); }

static void each_process(struct guest *guest, void (*act)(struct process *)) {
  for (struct supervisor *s = guest->supervisors, *next; s; s = next) {
    next = s->next;
    if (s->process) act(s->process);
  }
}

static void terminate(struct process *process) { process_signal(process, SIGTERM, true); }
static void end(struct process *process) { process_kill(process, KIND_CANCELLED); }

static void on_grace_over(struct timer *timer) {
  struct guest *guest = container_of(timer, struct guest, shutdown_timer);
  each_process(guest, end);
  timer->fire = on_give_up;
  timer_set(&guest->loop, timer, guest->loop.now + KILL_PATIENCE_MS);
}

void shutdown_begin(struct guest *guest, struct stream *stream, uint64_t grace_ms) {
  if (guest->shutdown_stream && stream) {
    reply_error(stream->connection, stream->id, ERR_BUSY, 0, "shutting down already");
    stream_remove(stream);
    return;
  }
  if (stream) guest->shutdown_stream = stream;
  if (guest->shutting_down) return;
  guest->shutting_down = true;
  each_process(guest, terminate);
  guest->shutdown_timer.fire = on_grace_over;
  timer_set(&guest->loop, &guest->shutdown_timer, guest->loop.now + grace_ms);
  shutdown_check(guest);
}
