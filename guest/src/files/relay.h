/* File requests and their workers, for the files that look after them. */
#pragma once

#include "connection/guest.h"

/* One request, from its frame to the answer that closes it. */
struct relay {
  struct stream *stream;
  struct file_worker *worker; /* NULL while it waits for one */
  struct relay *next;         /* in the queue */
  struct identity identity;
  uint8_t type;
  struct frame_writer to; /* what the worker has not taken yet; kept whole until its pid is known, for a second try */
  size_t sent;
};

struct file_worker {
  struct guest *guest;
  struct file_worker *next;
  struct source source;
  struct relay *relay;
  struct identity identity;
  pid_t pid;
  struct source exit; /* a descriptor of the process itself, where the kernel has them */
  bool here, dismissed;
  uint64_t idle_since;
  unsigned stopped_looks;
  struct timer kill_timer;
  uint8_t *in;
  size_t in_length, in_capacity;
};

struct relays {
  struct file_worker *workers;
  size_t worker_count;
  struct relay *first, *last;
  size_t queued;
};

void worker_signal(struct file_worker *worker, int number);
/* Lets it clean up what is half done, for a moment; then it is killed. */
void worker_dismiss(struct file_worker *worker);
/* Answers the request with an error and forgets it. */
void relay_fail(struct relay *relay, int error, const char *message);
