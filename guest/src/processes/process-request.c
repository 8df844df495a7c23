/* The requests about processes: SPAWN, ATTACH, SIGNAL, FORGET, KILL, RESIZE. */
#include "processes/process-request.h"

#include <errno.h>
#include <string.h>

#include "processes/disk-guard.h"
#include "processes/processes.h"
#include "processes/supervisors.h"
#include "spawner/identity.h"
#include "spawner/order.h"
#include "wire/tags.h"

static bool process_frame(struct stream *stream, const struct frame_header *header, const uint8_t *payload) {
  struct process *process = stream->owner;
  switch (header->type) {
    case FRAME_ACK:
      return output_ack(process, payload, header->length);
    case FRAME_STDIN:
      return stream->closed || input_data(process, payload, header->length);
    case FRAME_STDIN_END:
      return stream->closed || input_end(process, payload, header->length);
    case FRAME_RESIZE:
      return fields_valid(payload, header->length) && stdio_resize(process, payload, header->length);
    default:
      return true;
  }
}

static bool process_turn(struct stream *stream) { return output_pump(stream->owner); }

static void process_stream_removed(struct stream *stream) {
  struct process *process = stream->owner;
  if (process->stream == stream) process->stream = NULL;
  if (process->stream == NULL) output_unattended(process);
}

/* The stream of the client that is attached to a process. */
static const struct stream_kind process_stream = {
    .frame = process_frame,
    .cancel = stream_remove,
    .send = process_turn,
    .removed = process_stream_removed,
};

static void kill_stream_removed(struct stream *stream) {
  struct process *process = stream->owner;
  struct stream **link = process ? &process->kill_waiters : NULL;
  while (link && *link && *link != stream) link = &(*link)->next_waiter;
  if (link && *link) *link = stream->next_waiter;
}

/* The stream of a KILL that waits for the tree to end. */
static const struct stream_kind kill_stream = {.cancel = stream_remove, .removed = kill_stream_removed};

void process_answer_kills(struct process *process) {
  struct stream *stream = process->kill_waiters;
  process->kill_waiters = NULL;
  while (stream) {
    struct stream *next = stream->next_waiter;
    reply_ok(stream->connection, stream->id);
    stream->owner = NULL;
    stream_remove(stream);
    stream = next;
  }
}

/* Copies the ref if it is valid; otherwise answers ERROR invalid. */
static bool ref_of(struct connection *connection, const struct frame_header *header, const uint8_t *payload, char out[REF_BYTES_MAX + 1]) {
  struct field field;
  bool good = field_find(payload, header->length, TAG_REF, &field) && field.length > 0 && field.length <= REF_BYTES_MAX;
  for (uint32_t i = 0; good && i < field.length; i++) {
    uint8_t c = field.data[i];
    good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':' || c == '-';
  }
  if (!good) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a ref must have 1 to %d characters of A-Z a-z 0-9 . _ : -", REF_BYTES_MAX);
    return false;
  }
  memcpy(out, field.data, field.length);
  out[field.length] = 0;
  return true;
}

static struct process *find_or_say(struct connection *connection, const struct frame_header *header, const char *ref) {
  struct process *process = process_find(connection->guest, ref);
  if (process) return process;
  bool gone = tombstone_has(connection->guest, ref);
  reply_error(connection, header->stream, gone ? ERR_GONE : ERR_NOT_FOUND, 0, gone ? "process %s was forgotten" : "no process %s", ref);
  return NULL;
}

/* Attaches this stream to the process, from the requested offsets; it replaces an earlier stream. */
static void attach(struct connection *connection, const struct frame_header *header, const uint8_t *payload, struct process *process) {
  if (process->forgotten) {
    reply_error(connection, header->stream, ERR_GONE, 0, "process %s was forgotten", process->ref);
    return;
  }
  uint64_t from[2];
  for (int i = 0; i < 2; i++) {
    const struct ring *ring = &process->outputs[i].ring;
    field_find_u64(payload, header->length, i == 0 ? TAG_STDOUT_FROM : TAG_STDERR_FROM, ring->start, &from[i]);
    if (from[i] < ring->start) {
      reply_error(connection, header->stream, ERR_GONE, 0, "output of %s before %llu was dropped", process->ref,
                  (unsigned long long)ring->start);
      return;
    }
    if (from[i] > ring->end) {
      reply_error(connection, header->stream, ERR_INVALID, 0, "%s has written only %llu bytes", process->ref,
                  (unsigned long long)ring->end);
      return;
    }
  }
  struct stream *earlier = process->stream;
  if (earlier && !earlier->closed)
    reply_error(earlier->connection, earlier->id, ERR_BUSY, 0, "another stream attached to %s", process->ref);
  process_detach(process);
  struct stream *stream = stream_open(connection, header->stream, &process_stream, process);
  if (stream == NULL) return;
  stream->existing = true;
  process->stream = stream;
  output_rewind(process, from);
  if (process->state == PROCESS_STARTING) return; /* STARTED follows when it has started */
  process_send_started(process, true);
  output_want_send(process);
}

bool request_attach(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  char ref[REF_BYTES_MAX + 1];
  if (!ref_of(connection, header, payload, ref)) return true;
  struct process *process = find_or_say(connection, header, ref);
  if (process) attach(connection, header, payload, process);
  return true;
}

const char *spawn_fault(const uint8_t *payload, size_t length) {
  struct fields cursor = fields_of(payload, length);
  struct field field;
  bool has_program = false;
  while (fields_next(&cursor, &field) == 1) {
    bool text = field.tag == TAG_SPAWN_ARGV || field.tag == TAG_SPAWN_ENV || field.tag == TAG_SPAWN_CWD || field.tag == TAG_USER;
    if (text && field.length > 0 && memchr(field.data, 0, field.length)) return "argv, env, cwd and user must not contain NUL";
    if (field.tag == TAG_SPAWN_ARGV) has_program = true;
    if (field.tag == TAG_SPAWN_CWD && (field.length == 0 || field.data[0] != '/')) return "cwd must be an absolute path";
    if (field.tag == TAG_SPAWN_CWD && field.length > PATH_BYTES_MAX) return "cwd is too long";
  }
  return has_program ? NULL : "argv is empty";
}

bool request_spawn(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  char ref[REF_BYTES_MAX + 1];
  if (!ref_of(connection, header, payload, ref)) return true;
  struct process *process = process_find(guest, ref);
  if (process) {
    attach(connection, header, payload, process);
    return true;
  }
  if (tombstone_has(guest, ref)) {
    reply_error(connection, header->stream, ERR_GONE, 0, "process %s was forgotten", ref);
    return true;
  }
  const char *fault = spawn_fault(payload, header->length);
  uint64_t pty, cols, rows, with_stdin, timeout_ms, output_max, keep_last;
  bool integers = field_find_u64(payload, header->length, TAG_SPAWN_PTY, 0, &pty) && field_find_u64(payload, header->length, TAG_SPAWN_COLS, 80, &cols) &&
                  field_find_u64(payload, header->length, TAG_SPAWN_ROWS, 24, &rows) &&
                  field_find_u64(payload, header->length, TAG_SPAWN_STDIN, 0, &with_stdin) &&
                  field_find_u64(payload, header->length, TAG_SPAWN_TIMEOUT_MS, 0, &timeout_ms) &&
                  field_find_u64(payload, header->length, TAG_SPAWN_OUTPUT_BYTES_MAX, 0, &output_max) &&
                  field_find_u64(payload, header->length, TAG_SPAWN_KEEP_LAST, 0, &keep_last);
  if (!integers && fault == NULL) fault = "an integer field does not have 8 bytes";
  struct field field;
  struct identity identity;
  cleanup_free char *user = fault == NULL && field_find(payload, header->length, TAG_USER, &field) ? field_text(&field) : NULL;
  if (fault) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "%s", fault);
    return true;
  }
  if (!identity_of(guest, user, &identity, &fault)) {
    reply_error(connection, header->stream, ERR_DENIED, 0, "%s", fault);
    return true;
  }
  if (!disk_guard_admits(guest)) {
    reply_error(connection, header->stream, ERR_NO_SPACE, 0, "the disk below the sandbox is nearly full");
    return true;
  }
  process = guest->shutting_down ? NULL : process_new(guest, ref);
  if (process == NULL) {
    reply_error(connection, header->stream, ERR_BUSY, 0, guest->shutting_down ? "shutting down" : "too many processes (limit %d)", PROCESSES_MAX);
    return true;
  }
  process->stream = stream_open(connection, header->stream, &process_stream, process);
  process->identity = identity;
  process->pty = pty != 0;
  process->timeout_ms = timeout_ms;
  process->output_max = output_max;
  process->keeps_last = keep_last != 0;
  process->oom_before = oom_kills(guest);
  process->request = malloc(header->length);
  process->request_length = header->length;
  if (process->request) memcpy(process->request, payload, header->length);
  if (!process->request || !(process->pty ? stdio_open_terminal(process, cols, rows) : stdio_open_pipes(process, with_stdin != 0))) {
    process_failed(process, STAGE_SETUP, process->request ? errno : ENOMEM);
    return true;
  }
  process_set_timeout(process);
  supervisors_run(process);
  return true;
}

bool request_signal(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  char ref[REF_BYTES_MAX + 1];
  if (!ref_of(connection, header, payload, ref)) return true;
  struct process *process = find_or_say(connection, header, ref);
  if (process == NULL) return true;
  uint64_t number, scope;
  bool good = field_find_u64(payload, header->length, TAG_SIGNAL_SIGNAL, 0, &number) && field_find_u64(payload, header->length, TAG_SIGNAL_TREE, 0, &scope);
  if (!good || number < 1 || number > 64 || scope > 1) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a signal must be 1 to 64, and a scope 0 or 1");
  } else if (process->state == PROCESS_STARTING || !process_signal(process, (int)number, scope == 1)) {
    reply_error(connection, header->stream, ERR_BUSY, 0, "process %s cannot take a signal now", ref);
  } else {
    reply_ok(connection, header->stream);
  }
  return true;
}

bool request_forget(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  char ref[REF_BYTES_MAX + 1];
  if (!ref_of(connection, header, payload, ref)) return true;
  struct process *process = find_or_say(connection, header, ref);
  if (process == NULL) return true;
  if (process->state != PROCESS_ENDED) {
    reply_error(connection, header->stream, ERR_BUSY, 0, "process %s is still running", ref);
    return true;
  }
  if (process->forgotten) {
    reply_error(connection, header->stream, ERR_GONE, 0, "process %s was forgotten", ref);
    return true;
  }
  process_forget(process);
  reply_ok(connection, header->stream);
  return true;
}

bool request_kill(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  char ref[REF_BYTES_MAX + 1];
  if (!ref_of(connection, header, payload, ref)) return true;
  struct process *process = find_or_say(connection, header, ref);
  if (process == NULL) return true;
  if (process->tree_empty) {
    reply_ok(connection, header->stream);
    return true;
  }
  struct stream *stream = stream_open(connection, header->stream, &kill_stream, process);
  if (stream == NULL) return true;
  stream->next_waiter = process->kill_waiters;
  process->kill_waiters = stream;
  process_kill(process, KIND_CANCELLED);
  return true;
}
