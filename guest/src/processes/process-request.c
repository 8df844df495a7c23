/* The requests about processes: SPAWN, ATTACH, SIGNAL, FORGET, KILL, RESIZE. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#include "processes/disk-guard.h"
#include "connection/guest.h"
#include "processes/process.h"

enum { TAG_REF = 1, TAG_ARGV = 2, TAG_ENV = 3, TAG_CWD = 4, TAG_USER = 5, TAG_PTY = 6, TAG_COLS = 7, TAG_ROWS = 8, TAG_STDIN = 9,
       TAG_TIMEOUT = 10, TAG_OUTPUT_MAX = 11, TAG_STDOUT_FROM = 12, TAG_STDERR_FROM = 13 };

/* Copies field 1 when it is a ref; answers ERROR invalid otherwise. */
static bool ref_of(struct connection *connection, const struct frame_header *header, const uint8_t *payload, char out[REF_BYTES_MAX + 1]) {
  struct field field;
  bool good = field_find(payload, header->length, TAG_REF, &field) && field.length > 0 && field.length <= REF_BYTES_MAX;
  for (uint32_t i = 0; good && i < field.length; i++) {
    uint8_t c = field.data[i];
    good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':' || c == '-';
  }
  if (!good) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a ref is 1 to %d of A-Z a-z 0-9 . _ : -", REF_BYTES_MAX);
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

/* Takes the process over for this stream, from the offsets asked for. */
static void attach(struct connection *connection, const struct frame_header *header, const uint8_t *payload, struct process *process) {
  if (process->forgotten) {
    reply_error(connection, header->stream, ERR_GONE, 0, "process %s was forgotten", process->ref);
    return;
  }
  uint64_t from[2];
  for (int i = 0; i < 2; i++) {
    const struct ring *ring = &process->outputs[i].ring;
    field_find_u64(payload, header->length, (uint8_t)(TAG_STDOUT_FROM + i), ring->start, &from[i]);
    if (from[i] < ring->start) {
      reply_error(connection, header->stream, ERR_GONE, 0, "output of %s before %llu was dropped", process->ref,
                  (unsigned long long)ring->start);
      return;
    }
    if (from[i] > ring->end) {
      reply_error(connection, header->stream, ERR_INVALID, 0, "%s has written %llu bytes only", process->ref,
                  (unsigned long long)ring->end);
      return;
    }
  }
  struct stream *earlier = process->stream;
  if (earlier && !earlier->closed)
    reply_error(earlier->connection, earlier->id, ERR_BUSY, 0, "another stream attached to %s", process->ref);
  process_detach(process);
  struct stream *stream = stream_open(connection, header->stream, STREAM_PROCESS);
  if (stream == NULL) return;
  stream->process = process;
  stream->existing = true;
  process->stream = stream;
  for (int i = 0; i < 2; i++) process->outputs[i].cursor = from[i];
  if (process->state == PROCESS_STARTING) return; /* STARTED comes when it does */
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

static bool open_pipes(struct process *process, bool with_stdin) {
  int pair[2];
  if (with_stdin) {
    if (pipe2(pair, O_CLOEXEC) < 0) return false;
    process->child_fds[0] = pair[0];
    input_open(process, pair[1]);
  } else {
    process->child_fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (process->child_fds[0] < 0) return false;
    process->input_closed = true;
  }
  for (int i = 0; i < 2; i++) {
    if (pipe2(pair, O_CLOEXEC) < 0) return false;
    process->child_fds[i + 1] = pair[1];
    output_open(process, i, pair[0]);
  }
  return true;
}

static bool open_terminal(struct process *process, uint64_t cols, uint64_t rows) {
  cleanup_fd int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return false;
  int unlocked = 0;
  if (ioctl(master, TIOCSPTLCK, &unlocked) < 0) return false;
  /* By descriptor: a path could lead to another mount's terminal of the same number. */
  int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) {
    char name[64];
    if (ptsname_r(master, name, sizeof name) != 0) return false;
    slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) return false;
  }
  process->child_fds[0] = slave;
  if (process->identity.change && fchown(slave, process->identity.uid, process->identity.gid) < 0) {
    /* Without CHOWN it stays the guest's; the command holds it open all the same. */
  }
  struct winsize size = {.ws_col = (unsigned short)(cols ? cols : 80), .ws_row = (unsigned short)(rows ? rows : 24)};
  ioctl(master, TIOCSWINSZ, &size);
  struct termios modes;
  if (tcgetattr(slave, &modes) == 0) {
    modes.c_iflag |= IUTF8;
    tcsetattr(slave, TCSANOW, &modes);
  }
  int writer = fcntl(master, F_DUPFD_CLOEXEC, 3);
  if (writer < 0) return false;
  input_open(process, writer);
  output_open(process, 0, steal_fd(&master));
  return true;
}

const char *spawn_fault(const uint8_t *payload, size_t length) {
  struct fields cursor = fields_of(payload, length);
  struct field field;
  bool has_program = false;
  while (fields_next(&cursor, &field) == 1) {
    bool text = field.tag == TAG_ARGV || field.tag == TAG_ENV || field.tag == TAG_CWD || field.tag == TAG_USER;
    if (text && field.length > 0 && memchr(field.data, 0, field.length)) return "argv, env, cwd and user may not hold NUL";
    if (field.tag == TAG_ARGV) has_program = true;
    if (field.tag == TAG_CWD && (field.length == 0 || field.data[0] != '/')) return "cwd is an absolute path";
    if (field.tag == TAG_CWD && field.length > PATH_BYTES_MAX) return "cwd is too long";
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
  uint64_t pty, cols, rows, with_stdin, timeout_ms, output_max;
  bool integers = field_find_u64(payload, header->length, TAG_PTY, 0, &pty) && field_find_u64(payload, header->length, TAG_COLS, 80, &cols) &&
                  field_find_u64(payload, header->length, TAG_ROWS, 24, &rows) &&
                  field_find_u64(payload, header->length, TAG_STDIN, 0, &with_stdin) &&
                  field_find_u64(payload, header->length, TAG_TIMEOUT, 0, &timeout_ms) &&
                  field_find_u64(payload, header->length, TAG_OUTPUT_MAX, 0, &output_max);
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
    reply_error(connection, header->stream, ERR_BUSY, 0, guest->shutting_down ? "shutting down" : "too many processes (%d)", PROCESSES_MAX);
    return true;
  }
  process->stream = stream_open(connection, header->stream, STREAM_PROCESS);
  if (process->stream) process->stream->process = process;
  process->identity = identity;
  process->pty = pty != 0;
  process->timeout_ms = timeout_ms;
  process->output_max = output_max;
  process->oom_before = oom_kills(guest);
  process->request = malloc(header->length);
  process->request_length = header->length;
  if (process->request) memcpy(process->request, payload, header->length);
  if (!process->request || !(process->pty ? open_terminal(process, cols, rows) : open_pipes(process, with_stdin != 0))) {
    process_failed(process, STAGE_SETUP, process->request ? errno : ENOMEM);
    return true;
  }
  process_set_timeout(process);
  spawner_run(process);
  return true;
}

bool request_signal(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  char ref[REF_BYTES_MAX + 1];
  if (!ref_of(connection, header, payload, ref)) return true;
  struct process *process = find_or_say(connection, header, ref);
  if (process == NULL) return true;
  uint64_t number, scope;
  bool good = field_find_u64(payload, header->length, 2, 0, &number) && field_find_u64(payload, header->length, 3, 0, &scope);
  if (!good || number < 1 || number > 64 || scope > 1) {
    reply_error(connection, header->stream, ERR_INVALID, 0, "a signal is 1 to 64, a scope 0 or 1");
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
    reply_error(connection, header->stream, ERR_BUSY, 0, "process %s runs", ref);
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
  struct stream *stream = stream_open(connection, header->stream, STREAM_WAITS);
  if (stream == NULL) return true;
  stream->process = process;
  stream->next_waiter = process->kill_waiters;
  process->kill_waiters = stream;
  process_kill(process, KIND_CANCELLED);
  return true;
}

bool frame_resize(struct stream *stream, const uint8_t *payload, size_t length) {
  struct process *process = stream->process;
  uint64_t cols, rows;
  if (!field_find_u64(payload, length, TAG_COLS, 80, &cols) || !field_find_u64(payload, length, TAG_ROWS, 24, &rows)) return false;
  if (process == NULL || !process->pty || process->outputs[0].source.fd < 0) return true;
  struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
  ioctl(process->outputs[0].source.fd, TIOCSWINSZ, &size);
  return true;
}
