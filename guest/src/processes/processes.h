/* What the rest of the guest asks of its processes, and what their files share. */
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
  size_t idle_count, coming_count;              /* of them free, and on their way */
  struct process *waiting_first, *waiting_last; /* starting, without a supervisor yet */
  struct timer orphan_timer;
  int orphan_looks;

  struct disk_guard *disk_guard; /* once a command was to start */
  struct source sudo_listener;
  size_t sudo_count;
  struct stream *shutdown_stream;
  struct timer shutdown_timer;
};

void processes_open(struct guest *guest);

/* process-request.c, list.c: false is a protocol error. */
bool request_spawn(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_attach(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_signal(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_forget(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_kill(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_list(struct connection *connection, const struct frame_header *header);

/* shutdown.c */
bool request_shutdown(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* `stream` (or NULL) is told when it is done. */
void shutdown_begin(struct guest *guest, struct stream *stream, uint64_t grace_ms);

/* process-table.c */
struct process *process_find(struct guest *guest, const char *ref);
bool tombstone_has(struct guest *guest, const char *ref);
void tombstone_add(struct guest *guest, const char *ref);
/* Makes room when the table is full. NULL when it cannot or memory is out. */
struct process *process_new(struct guest *guest, const char *ref);
/*
 * With a tombstone when it had started; without when the start failed and may be tried again. Its tree must be empty.
 */
void process_delete(struct process *process, bool remember);

/* With every heartbeat: memory and supervisors that nobody needs now. */
void output_trim_idle(struct guest *guest);
void supervisors_trim_idle(struct guest *guest);
/* False when nothing is under way at a supervisor. `idle_too`: looks at those that nothing was asked of, too. */
bool supervisors_rouse(struct guest *guest, bool idle_too);

/* sudo-server.c */
void sudo_listen(struct guest *guest);
/* oom.c */
void oom_open(struct guest *guest);
uint64_t oom_kills(struct guest *guest);
