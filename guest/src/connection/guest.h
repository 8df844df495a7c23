/* What the files of the guest's main process share. Everything hangs on one struct guest. */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "wire/frame.h"
#include "base/loop.h"
#include "spawner/order.h"
#include "base/ring.h"

enum {
  CONNECTIONS_MAX = 16,
  STREAMS_MAX = 4096,
  PROCESSES_MAX = 4096,
  TOMBSTONES_MAX = 16384,
  LIST_MAX = 4096,
  HEARTBEAT_MS = 5000,
  WORK_CGROUPS_MAX = 16,
  /* A connection that reads this slowly is asked nothing more until it has caught up. */
  OUT_QUEUE_HIGH = 1048576,
  /* How long descendants that keep a leader's pipes open and silent may hold ENDED back. */
  LINGER_MS = 250,
  /* How long a tree that was killed may hold ENDED back: one of its processes may be in the middle of a write to a disk that hangs. */
  OVERDUE_MS = 5000,
  REF_BUCKETS = 256,
  STREAM_BUCKETS = 512,
  /* Connections from inside that are carried to the host, or told that nobody serves them, at once. Further ones wait in the backlog. */
  ACCEPTED_MAX = 2048,
  /* Those of them that may have the full window. */
  ACCEPTED_WIDE_MAX = 64,
  LISTENERS_SERVED_MAX = 256,
  CLAIMS_MAX = 1024,
};

struct guest;
struct connection;
struct process;
struct relay;
struct fence;
struct file_worker;
struct port;
struct claim;
struct listener;
struct sudo_session;
struct disk_guard;

enum stream_kind {
  STREAM_PROCESS, /* attached; stays for late ACKs after ENDED, with `closed` set */
  STREAM_WAITS,   /* a KILL or SHUTDOWN that is answered later */
  STREAM_FILE,
  STREAM_PORT,
  STREAM_CLAIM, /* a LISTEN that was granted */
};

struct stream {
  uint32_t id;
  enum stream_kind kind;
  bool closed;
  bool existing; /* it attached to what was there */
  struct connection *connection;
  struct stream *next;        /* in the connection's bucket */
  struct stream *next_waiter; /* in the process's list of KILLs */
  struct process *process;
  struct relay *relay;
  struct port *port;
  struct claim *claim;
};

struct connection {
  struct guest *guest;
  struct connection *next;
  struct source source;
  bool greeted;
  bool closing; /* flush what is queued, then close */
  bool dirty;   /* has something to flush at the end of the turn */
  bool dead;
  uint8_t *in;
  size_t in_length, in_capacity;
  struct frame_writer out;
  size_t out_sent;
  struct stream *streams[STREAM_BUCKETS];
  size_t stream_count;
  uint32_t last_accepted; /* the guest's own ids are even */
  struct fence *fence; /* whose owner this is, and in which place */
  uint64_t fence_epoch;
  struct stream *fence_stream; /* waits for what earlier owners had under way to end */
  /* Attached processes with bytes to send, served in turn. */
  struct process *send_first, *send_last;
};

/* A process that starts leaders and owns their trees; see supervisor.h. */
struct supervisor {
  struct guest *guest;
  struct supervisor *next, *previous;
  struct source source;
  pid_t pid;
  bool ready;        /* said hello */
  bool in_guest;     /* forked by main itself: stays outside the work cgroups, serves one command only */
  bool idle;
  unsigned stopped_looks, leader_stopped_looks;
  struct process *process;
};

struct output {
  struct process *process;
  struct source source;
  struct ring ring;
  uint64_t cursor;   /* what the attached stream was sent */
  uint64_t drain_to; /* once the leader has ended: where its own output is known to end at the earliest */
  bool open;
  bool enlarged; /* the pipe was made as large as it gets */
};

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_ENDED };

enum ended_kind { KIND_NONE, KIND_EXITED, KIND_SIGNALED, KIND_TIMED_OUT, KIND_MEMORY, KIND_OUTPUT, KIND_CANCELLED, KIND_DISK };

struct process {
  struct guest *guest;
  char ref[REF_BYTES_MAX + 1];
  struct process *bucket_next;
  struct process *older, *newer; /* by age */
  struct process *send_next;
  bool send_queued;

  enum process_state state;
  bool leader_ended;
  bool tree_empty;
  bool discarding; /* ENDED is decided; what descendants still write is thrown away */
  bool forgotten;  /* only its tree is left, still to be listed and killed */
  bool lingered;   /* LINGER_MS have passed since the leader ended */
  bool we_killed;  /* a SIGKILL went out from us: its end says nothing about memory */
  struct supervisor *supervisor;
  pid_t pid;
  bool pty;

  struct output outputs[2];
  uint64_t output_max; /* 0: none */
  struct source input; /* stdin's write end, or the terminal's master for writing */
  struct ring input_ring;
  uint64_t input_acked;
  bool input_ending, input_closed;

  struct stream *stream;
  struct stream *kill_waiters;
  bool hidden;               /* a root command asked for from inside: no ref, not in the table */
  struct sudo_session *sudo; /* who asked for it, while they listen */

  /* Kept until the leader runs, so that another supervisor can try. */
  uint8_t *request;
  size_t request_length;
  int request_fd;
  int child_fds[3]; /* a terminal has one; -1 where there is none */
  struct process *waiting_next;
  bool waiting;
  bool needs_here; /* the work cgroups have no room for a fork: main must do it */
  struct identity identity;

  struct timer timeout;
  struct timer linger;
  struct timer overdue; /* once it was killed: how long ENDED waits for the tree */
  bool is_overdue;
  uint64_t timeout_ms;
  uint64_t started_at, ended_at;
  uint64_t oom_before, oom_kills;
  enum ended_kind why; /* set by whoever decided to kill it */
  enum ended_kind kind;
  int exit_code, exit_signal;
};

struct tombstones;
struct spawner;
struct relays;

struct guest {
  struct loop loop;
  struct source listener, signals, sudo_listener;
  struct timer heartbeat;
  struct connection *connections;
  size_t connection_count;

  uint8_t boot_id[16];
  uint64_t started_at;
  bool not_init, allow_root;
  bool transparent; /* every address is ours: the host may serve ports of all of them */
  size_t sudo_count;
  uid_t uid;
  gid_t gid;
  const char *home;
  uint64_t nproc; /* 0: leave it */
  bool guards_disk;
  struct disk_guard *disk_guard; /* once a command was to start */
  uint64_t nofile_soft, nofile_hard;
  char *token; /* NULL: none; kept out of every fork */
  size_t token_length;
  int work_fds[WORK_CGROUPS_MAX];
  size_t work_fd_count;
  int oom_fd;
  uint64_t root_caps; /* what a root command may hold */

  struct process *refs[REF_BUCKETS];
  struct process *oldest, *newest;
  size_t process_count, running_count;
  size_t idle_count, coming_count; /* supervisors free, and on their way */
  struct timer rouse;
  struct timer orphan_timer;
  int orphan_looks;
  struct tombstones *tombstones;

  struct spawner *spawner;
  struct supervisor *supervisors;
  struct process *waiting_first, *waiting_last; /* starting, without a supervisor yet */
  struct relays *relays;
  struct fence *fences;

  struct listener *listeners; /* served for the host; they stay once they are open */
  size_t listener_count, claim_count;
  size_t accepted_count; /* connections from inside, carried or refused */
  size_t wide_count;
  bool accepting_paused; /* some listener waits for room */

  struct stream *shutdown_stream;
  struct timer shutdown_timer;
  bool shutting_down, shutdown_done;
};

/* connection.c */
void connection_accept(struct guest *guest, int fd);
/* Closes this connection and detaches everything from it. Safe at any time; memory goes at the end of the turn. */
void connection_close(struct connection *connection);
/* The same, with a last word on stream 0. */
void connection_close_with(struct connection *connection, enum error_code code, const char *message);
void connection_flush_all(struct guest *guest);
/* Something was put into `out`. */
void connection_touch(struct connection *connection);
static inline size_t connection_queued(const struct connection *connection) {
  return connection->out.length - connection->out_sent;
}
static inline bool connection_busy(const struct connection *connection) {
  return connection_queued(connection) >= OUT_QUEUE_HIGH;
}
/* NULL (and the connection is closed or ERROR busy sent) when the id cannot be opened. */
struct stream *stream_open(struct connection *connection, uint32_t id, enum stream_kind kind);
/* The same for an id of the guest's own: nobody is told. */
struct stream *stream_add(struct connection *connection, uint32_t id, enum stream_kind kind);
struct stream *stream_find(struct connection *connection, uint32_t id);
void stream_remove(struct stream *stream);
void reply_ok(struct connection *connection, uint32_t stream);
__attribute__((format(printf, 5, 6))) void reply_error(struct connection *connection, uint32_t stream, enum error_code code,
                                                       int errno_value, const char *format, ...);
/* Writes `count` parts as one frame's bytes after what is queued; what the socket does not take is queued. */
void connection_send(struct connection *connection, const struct iovec *parts, int count);

/* dispatch.c: one complete frame. False is a protocol error. */
bool dispatch(struct connection *connection, const struct frame_header *header, const uint8_t *payload);

/* process-table.c */
struct process *process_find(struct guest *guest, const char *ref);
bool tombstone_has(struct guest *guest, const char *ref);
void tombstone_add(struct guest *guest, const char *ref);
/* Makes room when the table is full. NULL when it cannot or memory is out. */
struct process *process_new(struct guest *guest, const char *ref);
/* With a tombstone when it had started; without when the start failed and may be tried again. Its tree must be empty. */
void process_delete(struct process *process, bool remember);

/* process.c: requests about processes. False is a protocol error. */
bool request_spawn(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_attach(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_signal(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_forget(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_kill(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool frame_resize(struct stream *stream, const uint8_t *payload, size_t length);
/* The leader runs, could not be started, has ended; the tree is empty. */
void process_started(struct process *process, pid_t pid);
void process_failed(struct process *process, int stage, int error);
void process_leader_ended(struct process *process, int status);
void process_tree_empty(struct process *process);
void process_kill(struct process *process, enum ended_kind why);
void process_detach(struct process *process);
void process_send_started(struct process *process, bool existing);
void process_release_request(struct process *process);
/* Whom field 5 means; false with a reason when it is not permitted. */
bool identity_of(const struct guest *guest, const char *user, struct identity *out, const char **why);

/* output.c */
void output_open(struct process *process, int which, int fd);
bool output_ack(struct process *process, const uint8_t *payload, size_t length);
/* Sends what fits, then ENDED when it is due. False when the socket is full. */
bool output_pump(struct process *process);
void output_want_send(struct process *process);
void output_leader_ended(struct process *process);
void output_tree_empty(struct process *process);
/* The tree has had its time to go. */
void output_overdue(struct process *process);
void output_close(struct process *process);
void output_trim_idle(struct guest *guest);

/* input.c */
bool input_data(struct process *process, const uint8_t *payload, size_t length);
bool input_end(struct process *process, const uint8_t *payload, size_t length);
void input_open(struct process *process, int fd);
void input_close(struct process *process);

/* spawner-link.c: main's side of the spawner and the supervisors. */
void spawner_start(struct guest *guest);
/* Has the first supervisor made before anyone asks. */
void spawner_prepare(struct guest *guest);
/* Finds the process a supervisor; process_started or process_failed follows, perhaps at once. */
void spawner_run(struct process *process);
/* It no longer waits for one. */
void spawner_cancel(struct process *process);
/* Forks a file worker on `fd`, which is taken over; relay_spawned follows, perhaps at once. `here`: by main, not the spawner. */
void spawner_worker(struct guest *guest, struct file_worker *worker, const struct identity *identity, int fd, bool here);
/* Lets go of spare supervisors beyond one. */
void spawner_trim_idle(struct guest *guest);
/* False when nothing is under way at the spawner or a supervisor. `idle_too`: also those that nothing was asked of. */
bool spawner_rouse(struct guest *guest, bool idle_too);
bool supervisor_send(struct supervisor *supervisor, const struct order *order);
/* One of the guest's own processes: the spawner, a supervisor, a file worker. */
bool spawner_owns(const struct guest *guest, pid_t pid);
bool supervisor_any_busy(const struct guest *guest);
/* A child of main ended: the spawner, a supervisor main forked, or an orphan whose supervisor died before it. */
void spawner_reaped(struct guest *guest, pid_t pid, int status);

/* relay.c: file requests and their workers. */
bool request_file(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool relay_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload);
void relay_cancel(struct stream *stream);
void relay_spawned(struct file_worker *worker, pid_t pid, int error);
bool relay_owns(const struct guest *guest, pid_t pid);
/* The connection can take bytes again. */
void relay_resume(struct connection *connection);
void relay_trim_idle(struct guest *guest);

/* False when no file request waits for its worker. */
bool relay_rouse(struct guest *guest);

/* fence.c */
bool request_fence(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* A file worker ended: whoever takes over may have waited for it. */
void fence_check(struct guest *guest);

/* rouse.c */
/* Something was asked of one of our processes: it is looked at until it answered. */
void rouse_soon(struct guest *guest);
/* With every heartbeat: also those that nothing was asked of. */
void rouse_all(struct guest *guest);
/* Makes a process go on if it was stopped; false when that has been in vain for too long. */
bool rouse(pid_t pid, unsigned *stopped_looks);

/* port.c */
bool request_connect(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool request_listeners(struct connection *connection, const struct frame_header *header);
bool port_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload);
void port_cancel(struct stream *stream);
void port_resume(struct stream *stream);
/* Carries a connection that something inside made. The descriptor is taken over; false when memory is out. */
bool port_adopt(struct stream *stream, int fd, uint16_t number);

/* serve.c: ports inside that the host serves. */
bool request_listen(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
bool claim_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload);
void claim_cancel(struct stream *stream);
/* A connection from inside ended. */
void serve_slot_freed(struct guest *guest);
/* There may be room for connections again. */
void serve_resume(struct guest *guest);
/* The same, and gives up on answers that do not come. */
void serve_tick(struct guest *guest);
bool serve_owns(const struct guest *guest, unsigned number);

/* list.c */
bool request_list(struct connection *connection, const struct frame_header *header);

/* oom.c */
void oom_open(struct guest *guest);
uint64_t oom_kills(struct guest *guest);

/* sudo-server.c */
void sudo_listen(struct guest *guest);
void sudo_leader_ended(struct sudo_session *session, int status);
void sudo_started(struct sudo_session *session, pid_t pid);
void sudo_failed(struct sudo_session *session, enum error_code code, const char *message);

/* shutdown.c */
void shutdown_begin(struct guest *guest, struct stream *stream, uint64_t grace_ms);
void shutdown_check(struct guest *guest);
