/*
 * Root commands that programs inside request. Setuid programs gain nothing under no_new_privs, so `sudo` is a small
 * client of the guest: it sends argv, environment, cwd and its own stdio, and the guest runs the command as root in the
 * work cgroups. Any process that can connect may be root, since the configuration allows it (--allow-root). The client
 * is trusted with nothing else.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "processes/disk-guard.h"
#include "processes/process-request.h"
#include "processes/processes.h"
#include "processes/sudo.h"
#include "processes/supervisors.h"
#include "spawner/identity.h"
#include "spawner/order.h"
#include "wire/tags.h"

enum { SESSIONS_MAX = 32, REQUEST_PATIENCE_MS = 10000 };

struct sudo_session {
  struct guest *guest;
  struct source source;
  struct timer patience;
  struct process *process;
  bool answered;
  int fds[3];
  size_t fd_count;
  uint8_t *in;
  size_t in_length;
};

static void session_end(struct sudo_session *session) {
  struct guest *guest = session->guest;
  struct process *process = session->process;
  if (process) {
    process->sudo = NULL;
    /*
     * The client died or was killed with its tree, so the command it requested ends too. Processes that a finished
     * command left running stay.
     */
    if (!process->leader_ended) process_kill(process, KIND_CANCELLED);
  }
  timer_clear(&guest->loop, &session->patience);
  source_close(&guest->loop, &session->source);
  for (size_t i = 0; i < session->fd_count; i++) close_fd(&session->fds[i]);
  free(session->in);
  guest->processes->sudo_count--;
  loop_free_later(&guest->loop, session);
}

static void answer(struct sudo_session *session, struct frame_writer *writer) {
  /* A few dozen bytes always fit into an empty socket; a client that does not read them loses only its own answer. */
  send(session->source.fd, writer->data, writer->length, MSG_NOSIGNAL | MSG_DONTWAIT);
  frame_writer_free(writer);
}

void sudo_failed(struct sudo_session *session, enum error_code code, const char *message) {
  struct frame_writer writer = {0};
  frame_error(&writer, 1, code, 0, message);
  answer(session, &writer);
  session->process = NULL;
  session_end(session);
}

void sudo_started(struct sudo_session *session, pid_t pid) {
  struct frame_writer writer = {0};
  frame_begin(&writer, FRAME_STARTED, 1);
  frame_field_u64(&writer, TAG_STARTED_PID, (uint64_t)pid);
  frame_end(&writer);
  answer(session, &writer);
}

void sudo_leader_ended(struct sudo_session *session, int status) {
  struct frame_writer writer = {0};
  frame_begin(&writer, FRAME_ENDED, 1);
  frame_field_u64(&writer, TAG_ENDED_KIND, WIFSIGNALED(status) ? KIND_SIGNALED : KIND_EXITED);
  frame_field_u64(&writer, TAG_ENDED_EXIT_CODE, WIFSIGNALED(status) ? 0 : (uint64_t)WEXITSTATUS(status));
  frame_field_u64(&writer, TAG_ENDED_SIGNAL, WIFSIGNALED(status) ? (uint64_t)WTERMSIG(status) : 0);
  frame_end(&writer);
  answer(session, &writer);
  session_end(session);
}

static void session_start(struct sudo_session *session, const uint8_t *payload, size_t length) {
  struct guest *guest = session->guest;
  const char *fault = spawn_fault(payload, length);
  struct field field;
  struct identity identity;
  cleanup_free char *user = !fault && field_find(payload, length, TAG_USER, &field) ? field_text(&field) : NULL;
  if (session->fd_count != 3) fault = "stdin, stdout and stderr were not passed";
  if (!fault) identity_of(guest, user ? user : "root", &identity, &fault);
  if (!fault && !disk_guard_admits(guest)) fault = "the disk below the sandbox is nearly full";
  struct process *process = fault || guest->shutting_down ? NULL : process_new(guest, NULL);
  if (process) process->request = malloc(length);
  if (process == NULL || process->request == NULL) {
    if (process) process_delete(process, false);
    sudo_failed(session, fault ? ERR_INVALID : ERR_BUSY, fault ? fault : "no room for another process");
    return;
  }
  memcpy(process->request, payload, length);
  process->request_length = length;
  process->identity = identity;
  process->input_closed = true;
  for (int i = 0; i < 3; i++) process->child_fds[i] = session->fds[i];
  session->fd_count = 0;
  process->sudo = session;
  session->process = process;
  timer_clear(&guest->loop, &session->patience);
  supervisors_run(process);
}

/* Handles one frame of the client: first the command, then signals for it. Returns false for anything else. */
static bool session_frame(struct sudo_session *session, const struct frame_header *header, const uint8_t *payload) {
  if (!fields_valid(payload, header->length)) return false;
  if (header->type == FRAME_SPAWN && session->process == NULL && !session->answered) {
    session->answered = true;
    session_start(session, payload, header->length);
    return true;
  }
  uint64_t number;
  if (header->type != FRAME_SIGNAL || !field_find_u64(payload, header->length, TAG_SIGNAL_SIGNAL, 0, &number) || number < 1 || number > 64) return false;
  if (session->process && session->process->state == PROCESS_RUNNING) process_signal(session->process, (int)number, true);
  return true;
}

static void session_ready(struct source *source, uint32_t events) {
  (void)events;
  struct sudo_session *session = container_of(source, struct sudo_session, source);
  if (session->in == NULL) session->in = malloc(FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
  size_t room = FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX - session->in_length;
  int fds[3];
  size_t fd_count = 3;
  ssize_t got = session->in ? message_receive(source->fd, session->in + session->in_length, room, NULL, 0, fds, &fd_count, MSG_DONTWAIT) : 0;
  if (got < 0 && errno == EAGAIN) return;
  for (size_t i = 0; got >= 0 && i < fd_count; i++) {
    if (session->fd_count < 3 && !session->answered)
      session->fds[session->fd_count++] = fds[i];
    else
      close(fds[i]);
  }
  if (got <= 0) {
    session_end(session);
    return;
  }
  session->in_length += (size_t)got;
  while (source->fd >= 0 && session->in_length >= FRAME_HEADER_BYTES) {
    struct frame_header header;
    bool good = frame_header_parse(session->in, FROM_HOST, &header);
    size_t whole = good ? FRAME_HEADER_BYTES + (size_t)header.length : 0;
    if (good && session->in_length < whole) return;
    if (!good || !session_frame(session, &header, session->in + FRAME_HEADER_BYTES)) {
      session_end(session);
      return;
    }
    if (source->fd < 0) return;
    session->in_length -= whole;
    memmove(session->in, session->in + whole, session->in_length);
  }
  if (session->in_length == 0) {
    free(session->in);
    session->in = NULL;
  }
}

static void on_patience_over(struct timer *timer) { session_end(container_of(timer, struct sudo_session, patience)); }

static void on_client(struct source *source, uint32_t events) {
  (void)events;
  struct guest *guest = container_of(source, struct processes, sudo_listener)->guest;
  cleanup_fd int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  struct ucred peer;
  socklen_t size = sizeof peer;
  /* A peer in another pid namespace has no pid here. */
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0) return;
  struct sudo_session *session = guest->processes->sudo_count < SESSIONS_MAX ? calloc(1, sizeof *session) : NULL;
  if (session == NULL) return;
  guest->processes->sudo_count++;
  session->guest = guest;
  source_open(&session->source, steal_fd(&fd), session_ready);
  source_watch(&guest->loop, &session->source, EPOLLIN);
  session->patience.fire = on_patience_over;
  timer_set(&guest->loop, &session->patience, guest->loop.now + REQUEST_PATIENCE_MS);
}

void sudo_listen(struct guest *guest) {
  struct sockaddr_un address;
  socklen_t size = sudo_address(&address);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 16) < 0) die_errno("cannot listen for sudo");
  source_open(&guest->processes->sudo_listener, fd, on_client);
  source_watch(&guest->loop, &guest->processes->sudo_listener, EPOLLIN);
}
