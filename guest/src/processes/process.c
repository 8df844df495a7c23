/* The life of a command, from its start to the end of its tree. */

#include "processes/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "processes/process-request.h"
#include "processes/processes.h"
#include "processes/sudo.h"
#include "processes/supervisors.h"
#include "spawner/order.h"
#include "wire/tags.h"

void process_release_request(struct process *process) {
  free(process->request);
  process->request = NULL;
  close_fd(&process->request_fd);
  for (int i = 0; i < 3; i++) close_fd(&process->child_fds[i]);
}

void process_detach(struct process *process) {
  struct stream *stream = process->stream;
  process->stream = NULL;
  if (stream) stream_remove(stream);
}

void process_send_started(struct process *process, bool existing) {
  struct stream *stream = process->stream;
  if (stream == NULL || stream->closed) return;
  struct frame_writer *out = &stream->connection->out;
  frame_begin(out, FRAME_STARTED, stream->id);
  frame_field_text(out, TAG_REF, process->ref);
  frame_field_u64(out, TAG_STARTED_PID, (uint64_t)process->pid);
  frame_field_u64(out, TAG_STARTED_EXISTING, existing);
  frame_field_u64(out, TAG_STARTED_STDIN_BYTES, process->input_ring.end);
  frame_field_u64(out, TAG_STARTED_PTY, process->pty);
  /* Bytes still on their way to the process take up room in the current writer's window. */
  frame_field_u64(out, TAG_STARTED_STDIN_WRITTEN, process->input_ring.start);
  process->input_acked = process->input_ring.start;
  frame_field_u64(out, TAG_STARTED_STDOUT_BYTES, process->outputs[0].ring.end);
  frame_field_u64(out, TAG_STARTED_STDERR_BYTES, process->outputs[1].ring.end);
  frame_field_u64(out, TAG_STARTED_ENDED, process->state == PROCESS_ENDED);
  frame_end(out);
  connection_touch(stream->connection);
}

static void on_timeout(struct timer *timer) {
  struct process *process = container_of(timer, struct process, timeout);
  process_kill(process, KIND_TIMED_OUT);
}

void process_set_timeout(struct process *process) {
  if (process->timeout_ms == 0) return;
  process->timeout.fire = on_timeout;
  timer_set(&process->guest->loop, &process->timeout, now_ms() + process->timeout_ms);
}

void process_started(struct process *process, pid_t pid) {
  struct guest *guest = process->guest;
  process->pid = pid;
  process->state = PROCESS_RUNNING;
  process->started_at = now_ms();
  process_release_request(process);
  if (process->hidden) {
    if (process->sudo) sudo_started(process->sudo, pid);
  } else {
    guest->processes->running_count++;
    process_send_started(process, process->stream && process->stream->existing);
    output_want_send(process);
  }
  process_set_timeout(process);
  /* A caller may have killed the process before it started. */
  if (process->why != KIND_NONE) process_kill(process, process->why);
}

static enum error_code code_of(int stage, int error) {
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE) return ERR_BUSY;
  if (stage == STAGE_CWD) return error == ENOENT ? ERR_NOT_FOUND : error == ENOTDIR ? ERR_NOT_DIRECTORY : error == EACCES ? ERR_DENIED : ERR_INVALID;
  if (stage == STAGE_IDENTITY) return error == EINVAL ? ERR_INVALID : ERR_DENIED;
  if (stage != STAGE_EXEC) return ERR_IO;
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return ERR_NOT_FOUND;
    case E2BIG:
      return ERR_TOO_LARGE;
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case EISDIR:
    case ETXTBSY:
    case ELIBBAD:
    case EINVAL:
      return ERR_NOT_EXECUTABLE;
    default:
      return ERR_IO;
  }
}

/* Names the part of the request that failed, for the error message. */
static void describe(const struct process *process, int stage, char *out, size_t size) {
  struct field field;
  uint8_t tag = stage == STAGE_CWD ? TAG_SPAWN_CWD : TAG_SPAWN_ARGV;
  const char *what = stage == STAGE_CWD ? "cwd " : "";
  if (stage == STAGE_IDENTITY) {
    snprintf(out, size, "uid %u", process->identity.uid);
  } else if (process->request && field_find(process->request, process->request_length, tag, &field)) {
    int shown = field.length > 512 ? 512 : (int)field.length;
    snprintf(out, size, "%s%.*s", what, shown, (const char *)field.data);
  } else {
    snprintf(out, size, "the command");
  }
}

void process_failed(struct process *process, int stage, int error) {
  /* Its supervisor died without an answer: the command may have run, and must not run twice. */
  bool perhaps_ran = error == EOWNERDEAD;
  char what[600];
  describe(process, stage, what, sizeof what);
  enum error_code code = code_of(stage, error);
  const char *hint = stage == STAGE_FORK ? " (no room for another process)" : "";
  if (process->sudo) {
    char message[700];
    snprintf(message, sizeof message, "%s: %s%s", what, strerror(error), hint);
    sudo_failed(process->sudo, code, message);
  } else if (process->stream) {
    reply_error(process->stream->connection, process->stream->id, code, error, "%s: %s%s", what, strerror(error), hint);
  }
  process->tree_empty = true;
  process_answer_kills(process);
  if (process->supervisor) process->supervisor->process = NULL;
  process->supervisor = NULL;
  process_delete(process, perhaps_ran);
}

void process_leader_ended(struct process *process, int status) {
  struct guest *guest = process->guest;
  if (process->leader_ended) return;
  process->leader_ended = true;
  process->ended_at = now_ms();
  timer_clear(&guest->loop, &process->timeout);
  if (WIFSIGNALED(status)) {
    process->exit_signal = WTERMSIG(status);
    process->kind = KIND_SIGNALED;
  } else {
    process->exit_code = WEXITSTATUS(status);
    process->kind = KIND_EXITED;
  }
  if (process->hidden) {
    process->state = PROCESS_ENDED;
    if (process->sudo) sudo_leader_ended(process->sudo, status);
    return;
  }
  guest->processes->running_count--;
  process->oom_kills = oom_kills(guest) - process->oom_before;
  if (process->why != KIND_NONE)
    process->kind = process->why;
  else if (process->exit_signal == SIGKILL && !process->we_killed && process->oom_kills > 0)
    process->kind = KIND_MEMORY;
  output_leader_ended(process);
}

void process_tree_empty(struct process *process) {
  process->tree_empty = true;
  process->supervisor = NULL;
  process_answer_kills(process);
  if (process->hidden || process->forgotten)
    process_delete(process, true);
  else
    output_tree_empty(process);
}

static void on_overdue(struct timer *timer) {
  struct process *process = container_of(timer, struct process, overdue);
  process->is_overdue = true;
  if (process->leader_ended)
    output_overdue(process);
  else
    process_leader_ended(process, SIGKILL); /* it got SIGKILL, and dies once the kernel releases it */
}

void process_kill(struct process *process, enum ended_kind why) {
  if (!process->leader_ended && process->why == KIND_NONE) process->why = why;
  process->we_killed = true;
  struct supervisor *supervisor = process->supervisor;
  if (process->state == PROCESS_STARTING) rouse_soon(process->guest);
  if (process->state == PROCESS_STARTING || supervisor == NULL) return;
  struct order order = {.kind = ORDER_KILL};
  if (process->overdue.place == 0 && !process->is_overdue) {
    process->overdue.fire = on_overdue;
    timer_set(&process->guest->loop, &process->overdue, process->guest->loop.now + OVERDUE_MS);
  }
  rouse_soon(process->guest);
  /* A root command may have stopped the supervisor. */
  kill(supervisor->own.pid, SIGCONT);
  /* A supervisor that takes no orders is killed; main inherits its processes and kills them. */
  if (!supervisor_send(supervisor, &order)) kill(supervisor->own.pid, SIGKILL);
}

bool process_signal(struct process *process, int number, bool tree) {
  struct supervisor *supervisor = process->supervisor;
  if (supervisor == NULL || (process->leader_ended && !tree)) return true;
  if (number == SIGKILL) process->we_killed = true;
  struct order order = {.kind = ORDER_SIGNAL, .signal = number, .tree = tree};
  return supervisor_send(supervisor, &order);
}

void process_forget(struct process *process) {
  if (process->tree_empty) {
    process_delete(process, true);
    return;
  }
  process_detach(process);
  for (int i = 0; i < 2; i++) {
    ring_drop(&process->outputs[i].ring, process->outputs[i].ring.end);
    process->outputs[i].acked = process->outputs[i].ring.end;
    ring_free(&process->outputs[i].ring);
  }
  process->forgotten = true;
  tombstone_add(process->guest, process->ref);
}
