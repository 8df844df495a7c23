/* One command, from its start to the end of its tree. */
#pragma once

#include "base/loop.h"
#include "base/privilege.h"
#include "base/ring.h"
#include "connection/connection.h"

enum {
  /* How long descendants that hold a leader's pipes open without writing may delay ENDED. */
  LINGER_MS = 250,
  /* How long a killed tree may delay ENDED: one of its processes may be in the middle of a write to a hanging disk. */
  OVERDUE_MS = 5000,
  /* The bytes before the output in OUTPUT, and the whole payload of ACK. */
  OUTPUT_HEADER = 9,
};

struct process;
struct sudo_session;
struct supervisor;

struct output {
  struct process *process;
  struct source source;
  struct ring ring;
  uint64_t cursor;   /* end of what the attached stream was sent */
  uint64_t acked;    /* end of what the attached client acknowledged; the ring starts here unless the process keeps its last output */
  uint64_t drain_to; /* after the leader's end: how far its own output reaches at least */
  bool open;
  bool enlarged; /* the pipe has its largest size */
};

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_ENDED };

enum ended_kind { KIND_NONE, KIND_EXITED, KIND_SIGNALED, KIND_TIMED_OUT, KIND_MEMORY, KIND_OUTPUT, KIND_CANCELLED, KIND_DISK };

struct process {
  struct guest *guest;
  char ref[REF_BYTES_MAX + 1];
  struct process *bucket_next;
  struct process *older, *newer; /* by age */

  enum process_state state;
  bool leader_ended;
  bool tree_empty;
  bool discarding; /* ENDED is decided; what descendants still write is discarded */
  bool forgotten;  /* only its tree remains, to be listed and killed */
  bool lingered;   /* LINGER_MS have passed since the leader ended */
  bool we_killed;  /* we sent SIGKILL, so its end says nothing about memory */
  struct supervisor *supervisor;
  pid_t pid;
  bool pty;

  struct output outputs[2];
  uint64_t output_max; /* 0: no limit */
  bool keeps_last;     /* acknowledged output stays for other clients; the oldest output makes room for newer */
  struct source input; /* stdin's write end, or the terminal's master for writing */
  struct ring input_ring;
  uint64_t input_acked;
  bool input_ending, input_closed;

  struct stream *stream;
  struct stream *kill_waiters;
  bool hidden;               /* a root command that a program inside requested: no ref, not in the table */
  struct sudo_session *sudo; /* the client that requested it, while connected */

  /* Stored until the leader runs, so another supervisor can try. */
  uint8_t *request;
  size_t request_length;
  int request_fd;
  int child_fds[3]; /* a terminal needs only one; unused ones are -1 */
  struct process *waiting_next;
  bool waiting;
  bool needs_here; /* the work cgroups have no room for a fork: main must fork */
  struct identity identity;

  struct timer timeout;
  struct timer linger;
  struct timer overdue; /* after a kill: how long ENDED waits for the tree */
  bool is_overdue;
  uint64_t timeout_ms;
  uint64_t started_at, ended_at;
  uint64_t oom_before, oom_kills;
  enum ended_kind why; /* set by the code that decided to kill it */
  enum ended_kind kind;
  int exit_code, exit_signal;
};

/* Called when the leader runs, could not be started or has ended, and when the tree is empty. */
void process_started(struct process *process, pid_t pid);
void process_failed(struct process *process, int stage, int error);
void process_leader_ended(struct process *process, int status);
void process_tree_empty(struct process *process);
void process_kill(struct process *process, enum ended_kind why);
bool process_signal(struct process *process, int number, bool tree);
/* Starts the timeout; called again when the process has started. */
void process_set_timeout(struct process *process);
/* Drops outcome and output of an ended process; while its tree lives, it can still be listed and killed. */
void process_forget(struct process *process);
void process_detach(struct process *process);
void process_send_started(struct process *process, bool existing);
void process_release_request(struct process *process);

/* output.c, output-send.c */
void output_open(struct process *process, int which, int fd);
/* Sends the output again from these offsets. */
void output_rewind(struct process *process, const uint64_t from[2]);
/* Called when no client is attached. */
void output_unattended(struct process *process);
/* Whether all output so far has been acknowledged. */
bool output_taken(const struct process *process);
bool output_ack(struct process *process, const uint8_t *payload, size_t length);
/* Sends what fits, then ENDED if it is due. Returns false if the socket is full. */
bool output_pump(struct process *process);
void output_want_send(struct process *process);
void output_leader_ended(struct process *process);
void output_tree_empty(struct process *process);
/* Called when the time of a killed tree is up. */
void output_overdue(struct process *process);
void output_close(struct process *process);

/* input.c */
bool input_data(struct process *process, const uint8_t *payload, size_t length);
bool input_end(struct process *process, const uint8_t *payload, size_t length);
void input_open(struct process *process, int fd);
void input_close(struct process *process);
