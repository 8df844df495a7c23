/* The interface of processes to the rest of the guest, and what their files share. */
#pragma once

#include "connection/connection.h"

enum { PROCESSES_MAX = 4096, REF_BUCKETS = 256 };

struct disk_guard;
struct process;
struct supervisor;
struct tombstones;

struct processes {
  struct guest *guest;
  struct process *refs[REF_BUCKETS];
  struct process *oldest, *newest;
  size_t process_count, running_count;
  struct tombstones *tombstones;

  struct supervisor *supervisors;
  size_t idle_count, coming_count;              /* free ones, and those being started */
  struct process *waiting_first, *waiting_last; /* starting, without a supervisor yet */
  struct timer orphan_timer;
  int orphan_looks;

  struct disk_guard *disk_guard; /* NULL until the first check */
  struct source sudo_listener;
  size_t sudo_count;
  struct stream *shutdown_stream;
  struct timer shutdown_timer;
};

void processes_open(struct guest *guest);

/* process-request.c, list.c. These return false for a protocol error. */
bool request_spawn(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_attach(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_signal(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_forget(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_kill(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_list(struct connection *connection, const struct frame_header *header);

/* shutdown.c */
bool request_shutdown(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* Answers `stream` (if not NULL) when the shutdown is done. */
void shutdown_begin(struct guest *guest, struct stream *stream, uint64_t grace_ms);

/* process-table.c */
struct process *process_find(struct guest *guest, const char *ref);
bool tombstone_has(struct guest *guest, const char *ref);
void tombstone_add(struct guest *guest, const char *ref);
/* Makes room if the table is full. Returns NULL if it cannot, or if memory runs out. */
struct process *process_new(struct guest *guest, const char *ref);
/*
 * `remember` leaves a tombstone: for a process that had started, not for a failed start that may be tried again. The
 * tree must be empty.
 */
void process_delete(struct process *process, bool remember);

/* Called with every heartbeat: free memory and supervisors that are not needed now. */
void output_trim_idle(struct guest *guest);
void supervisors_trim_idle(struct guest *guest);
/* Resumes stopped supervisors. Returns false if none has a request pending. With `idle_too`, also checks the others. */
bool supervisors_rouse(struct guest *guest, bool idle_too);

/* sudo-server.c */
void sudo_listen(struct guest *guest);
/* oom.c */
void oom_open(struct guest *guest);
uint64_t oom_kills(struct guest *guest);
