/*
 * File requests: each is handed to a worker process that runs as the request's user, and its frames are carried both
 * ways. A worker serves one request at a time and is kept warm for the next; when all are busy another is forked, up to
 * a bound.
 */
#pragma once

#include "base/privilege.h"
#include "connection/connection.h"
#include "spawner/own-process.h"
#include "spawner/spawner-link.h"

enum {
  WORKERS_MAX = 64,
  /* A buffer that grew past this is given back once it is empty. */
  BUFFER_KEPT_BYTES = 65536,
};

/* One request, from its frame to the answer that closes it. */
struct file_request {
  struct stream *stream;
  struct file_worker *worker; /* NULL while it waits for one */
  struct file_request *next;  /* in the queue */
  struct identity identity;
  uint8_t type;
  struct frame_writer to; /* what the worker has not taken yet; kept whole until its pid is known, for a second try */
  size_t sent;
};

struct file_worker {
  struct guest *guest;
  struct file_worker *next;
  struct source source;
  struct file_request *request;
  struct identity identity;
  struct own_process own;
  struct forking forking;
  struct source exit; /* a descriptor of the process itself, where the kernel has them */
  bool here, dismissed;
  uint64_t idle_since;
  struct timer kill_timer;
  uint8_t *in;
  size_t in_length, in_capacity;
};

struct file_requests {
  struct file_worker *workers;
  size_t worker_count;
  struct file_request *first, *last;
  size_t queued;
};

/* Gives what waits to workers, as far as there are any. */
void file_requests_assign(struct guest *guest);
/* Forgets the request and its stream. */
void file_request_end(struct file_request *request);
/* Answers the request with an error and forgets it. */
void file_request_fail(struct file_request *request, int error, const char *message);

/* file-workers.c */
/* NULL when memory is out. */
struct file_worker *file_worker_new(struct guest *guest, const struct identity *identity);
/* Starts its process. False with errno set. */
bool file_worker_fork(struct file_worker *worker);
void file_worker_free(struct file_worker *worker);
/* Gives it what its socket takes, and reads from it while the request's connection has room. */
void file_worker_pump(struct file_worker *worker);
/* Lets it clean up what is half done, for a moment; then it is killed. */
void file_worker_dismiss(struct file_worker *worker);
void file_worker_signal(struct file_worker *worker, int number);
/* It ended, or must. */
void file_worker_lost(struct file_worker *worker);

/* file-answers.c: what the worker says. */
void file_worker_ready(struct source *source, uint32_t events);
