/*
 * File requests: a worker process that runs as the request's user serves each one, and the guest relays its frames both
 * ways. A worker serves one request at a time and stays alive for the next; if all are busy, the guest forks another,
 * up to a bound.
 */
#pragma once

#include "base/privilege.h"
#include "connection/connection.h"
#include "spawner/own-process.h"
#include "spawner/spawner-link.h"

enum {
  WORKERS_MAX = 64,
  /* A buffer that grew past this is freed once it is empty. */
  BUFFER_KEPT_BYTES = 65536,
};

/* One request, from its frame to the answer that closes it. */
struct file_request {
  struct stream *stream;
  struct file_worker *worker; /* NULL until one is assigned */
  struct file_request *next;  /* in the queue */
  struct identity identity;
  uint8_t type;
  struct frame_writer to; /* bytes for the worker, from `sent` on; kept whole until its pid is known, for a second try */
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
  struct source exit; /* a pidfd, if the kernel supports them */
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

/* Assigns waiting requests to workers while there are any. */
void file_requests_assign(struct guest *guest);
/* Removes the request and its stream. */
void file_request_end(struct file_request *request);
/* Answers the request with an error and removes it. */
void file_request_fail(struct file_request *request, int error, const char *message);

/* file-workers.c */
/* Returns NULL if memory runs out. */
struct file_worker *file_worker_new(struct guest *guest, const struct identity *identity);
/* Starts the worker's process. Returns false with errno set on failure. */
bool file_worker_fork(struct file_worker *worker);
void file_worker_free(struct file_worker *worker);
/* Sends the worker what its socket takes, and reads from it while the request's connection has room. */
void file_worker_pump(struct file_worker *worker);
/* Gives the worker a moment to clean up unfinished work, then kills it. */
void file_worker_dismiss(struct file_worker *worker);
void file_worker_signal(struct file_worker *worker, int number);
/* Handles a worker that has ended or must end. */
void file_worker_lost(struct file_worker *worker);

/* file-answers.c: handles the worker's answers. */
void file_worker_ready(struct source *source, uint32_t events);
