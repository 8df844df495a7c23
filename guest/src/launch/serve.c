/*
 * `caisson-guest launches`: starts launches for a caller whose own forks are slow, because the kernel would copy the
 * page tables of all the caller's memory. This process uses hardly any memory. A frame on stdin or stdout consists of
 * three 32-bit numbers in native byte order (the launch, the kind and the payload's length) and the payload.
 *
 *   in    START what, INPUT plan (whole), KILL
 *   out   STARTED pid, OUTPUT bytes, COMPLAINT bytes, ENDED status: after both have ended; -1 if it was killed
 *
 * It ends at the end of stdin. Launches that have not released their sandbox die with it, as they would with their
 * caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/launch.h"

#define CHUNK_BYTES 16384
#define WHAT_BYTES_MAX 32
/* Indexes into the descriptors of one launch that poll waits for. */
enum { WATCHED_PROCESS, WATCHED_INPUT, WATCHED_OUTPUT, WATCHED_COMPLAINT, WATCHED_COUNT };

enum request { START = 1, INPUT = 2, KILL = 3 };
enum answer { STARTED = 1, OUTPUT = 2, COMPLAINT = 3, ENDED = 4 };

struct frame {
  uint32_t launch, kind, length;
};

struct launched {
  uint32_t id;
  pid_t pid;
  int status;
  /* Each is -1 once it has ended. */
  int process, input, output, complaint;
  /* The plan, until stdin has taken all of it. */
  char *plan;
  size_t plan_length, plan_written;
};

struct server {
  struct launched *launches;
  struct pollfd *watched;
  size_t count, room;
  /*
   * The original handlers of the signals that this process ignores. Launches restore them, so a key pressed in a
   * terminal ends launches but not this process.
   */
  struct sigaction before[3];
};

static const int terminal_signals[] = {SIGINT, SIGQUIT, SIGHUP};

static void answer(uint32_t id, enum answer kind, const void *bytes, size_t length) {
  struct frame frame = {.launch = id, .kind = kind, .length = (uint32_t)length};
  /* The caller has ended, as the end of stdin would tell us. */
  if (!write_full(STDOUT_FILENO, &frame, sizeof frame) || !write_full(STDOUT_FILENO, bytes, length)) _exit(0);
}

static struct launched *find(struct server *server, uint32_t id) {
  for (size_t i = 0; i < server->count; i++)
    if (server->launches[i].id == id) return &server->launches[i];
  return NULL;
}

static struct launched *add(struct server *server, uint32_t id) {
  if (server->count == server->room) {
    server->room = server->room == 0 ? 16 : server->room * 2;
    server->launches = realloc(server->launches, server->room * sizeof *server->launches);
    server->watched = realloc(server->watched, (1 + server->room * WATCHED_COUNT) * sizeof *server->watched);
    if (server->launches == NULL || server->watched == NULL) die("launches: out of memory");
  }
  struct launched *launched = &server->launches[server->count++];
  *launched = (struct launched){.id = id, .process = -1, .input = -1, .output = -1, .complaint = -1};
  return launched;
}

/* Runs the launch itself in the new process, without anything of the others. */
__attribute__((noreturn)) static void become(const struct server *server, char *what, const int ends[3]) {
  for (int i = 0; i < 3; i++)
    if (dup2(ends[i], i) < 0) _exit(125);
  close_range(3, ~0U, 0);
  for (size_t i = 0; i < sizeof terminal_signals / sizeof terminal_signals[0]; i++)
    sigaction(terminal_signals[i], &server->before[i], NULL);
  char *argv[] = {"launch", what, NULL};
  exit(launch_main(2, argv));
}

static void start(struct server *server, uint32_t id, char *what) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) die_errno("launches: cannot create a pipe");
  pid_t pid = fork();
  if (pid < 0) die_errno("launches: cannot fork");
  if (pid == 0) become(server, what, (int[]){in[0], out[1], err[1]});
  close(in[0]);
  close(out[1]);
  close(err[1]);
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  struct launched *launched = add(server, id);
  launched->pid = pid;
  launched->input = in[1];
  launched->output = out[0];
  launched->complaint = err[0];
  launched->process = (int)syscall(SYS_pidfd_open, pid, 0);
  if (launched->process < 0) die_errno("launches: cannot watch a process");
  int32_t number = pid;
  answer(id, STARTED, &number, sizeof number);
}

/* Writes as much of the plan as there is room for. Closes stdin after the last of it, or if it has no reader. */
static void give_plan(struct launched *launched) {
  while (launched->plan_written < launched->plan_length) {
    ssize_t wrote = write(launched->input, launched->plan + launched->plan_written, launched->plan_length - launched->plan_written);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) break;
    launched->plan_written += (size_t)wrote;
  }
  free(launched->plan);
  launched->plan = NULL;
  close_fd(&launched->input);
}

/* Returns false at the end of the requests. */
static bool take_request(struct server *server) {
  struct frame frame;
  if (read_full(STDIN_FILENO, &frame, sizeof frame) != sizeof frame) return false;
  if (frame.length > PLAN_BYTES_MAX) die("launches: a frame of %u bytes is too large", frame.length);
  cleanup_free char *bytes = xalloc((size_t)frame.length + 1);
  if (read_full(STDIN_FILENO, bytes, frame.length) != (ssize_t)frame.length) return false;
  bytes[frame.length] = '\0';
  struct launched *launched = find(server, frame.launch);
  if (frame.kind == START && launched == NULL && frame.length <= WHAT_BYTES_MAX) {
    start(server, frame.launch, bytes);
  } else if (frame.kind == INPUT && launched != NULL && launched->input >= 0 && launched->plan == NULL) {
    launched->plan = bytes;
    launched->plan_length = frame.length;
    bytes = NULL;
    give_plan(launched);
  } else if (frame.kind == KILL && launched != NULL && launched->process >= 0) {
    kill(launched->pid, SIGKILL);
  } else if (frame.kind == START || frame.kind > KILL) {
    die("launches: unexpected frame %u for launch %u", frame.kind, frame.launch);
  }
  /* Otherwise the request crossed with the launch's end. */
  return true;
}

static void pass_on(struct launched *launched, int *from, enum answer kind) {
  char chunk[CHUNK_BYTES];
  ssize_t got = read(*from, chunk, sizeof chunk);
  if (got > 0) answer(launched->id, kind, chunk, (size_t)got);
  else if (got == 0 || errno != EINTR) close_fd(from);
}

static void reap(struct launched *launched) {
  int status = 0;
  while (waitpid(launched->pid, &status, 0) < 0 && errno == EINTR) continue;
  launched->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  close_fd(&launched->process);
}

/* Puts the descriptors of a launch into the list; poll ignores -1. */
static void watch(const struct launched *launched, struct pollfd *watched) {
  watched[WATCHED_PROCESS] = (struct pollfd){.fd = launched->process, .events = POLLIN};
  watched[WATCHED_INPUT] = (struct pollfd){.fd = launched->plan == NULL ? -1 : launched->input, .events = POLLOUT};
  watched[WATCHED_OUTPUT] = (struct pollfd){.fd = launched->output, .events = POLLIN};
  watched[WATCHED_COMPLAINT] = (struct pollfd){.fd = launched->complaint, .events = POLLIN};
}

/* Returns true when the launch has ended and its caller has been told. */
static bool attend(struct launched *launched, const struct pollfd *watched) {
  if (watched[WATCHED_INPUT].revents != 0) give_plan(launched);
  if (watched[WATCHED_OUTPUT].revents != 0) pass_on(launched, &launched->output, OUTPUT);
  if (watched[WATCHED_COMPLAINT].revents != 0) pass_on(launched, &launched->complaint, COMPLAINT);
  if (watched[WATCHED_PROCESS].revents != 0) reap(launched);
  if (launched->process >= 0 || launched->output >= 0 || launched->complaint >= 0) return false;
  int32_t status = launched->status;
  answer(launched->id, ENDED, &status, sizeof status);
  free(launched->plan);
  close_fd(&launched->input);
  return true;
}

int launches_main(void) {
  /* Static: it is needed until the end. */
  static struct server server;
  struct sigaction ignored = {.sa_handler = SIG_IGN};
  signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < sizeof terminal_signals / sizeof terminal_signals[0]; i++)
    sigaction(terminal_signals[i], &ignored, &server.before[i]);
  server.watched = xalloc(sizeof *server.watched);
  for (;;) {
    server.watched[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (size_t i = 0; i < server.count; i++) watch(&server.launches[i], server.watched + 1 + i * WATCHED_COUNT);
    if (poll(server.watched, 1 + server.count * WATCHED_COUNT, -1) < 0) {
      if (errno == EINTR) continue;
      die_errno("launches: cannot wait");
    }
    /* Backwards, so that a launch that moves into a freed place has already been handled. */
    for (size_t i = server.count; i-- > 0;)
      if (attend(&server.launches[i], server.watched + 1 + i * WATCHED_COUNT)) server.launches[i] = server.launches[--server.count];
    if (server.watched[0].revents != 0 && !take_request(&server)) return 0;
  }
}
