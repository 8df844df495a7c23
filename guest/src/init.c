/* Process 1: startup, the loop, signals, the heartbeat. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/privilege.h"
#include "dispatch.h"
#include "files/files.h"
#include "reaper.h"
#include "options.h"
#include "outside.h"
#include "ports/ports.h"
#include "processes/processes.h"
#include "processes/supervisors.h"
#include "spawner/order.h"
#include "spawner/own-process.h"
#include "spawner/spawner-link.h"
#include "wire/tags.h"

enum { HEARTBEAT_MS = 5000 };

static void on_listener(struct source *source, uint32_t events) {
  (void)events;
  struct guest *guest = container_of(source, struct guest, listener);
  int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0) connection_accept(guest, fd, dispatch);
}

static void reap(struct guest *guest) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return;
    spawner_reaped(guest, pid);
  }
}

static void on_signal(struct source *source, uint32_t events) {
  (void)events;
  struct guest *guest = container_of(source, struct guest, signals);
  struct signalfd_siginfo info;
  while (read(source->fd, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) {
      reap(guest);
    } else if (info.ssi_signo == SIGUSR1) {
      guest->parking = guest->reaper_fd >= 0 && info.ssi_pid == 0;
    } else if (guest->not_init || info.ssi_pid == 0) {
      /* Sent from outside. In process 1, a sender inside would have a pid here and is ignored. */
      shutdown_begin(guest, NULL, 0);
    }
  }
}

static bool rouse_all(struct guest *guest, bool idle_too) {
  bool files = file_workers_rouse(guest), supervisors = supervisors_rouse(guest, idle_too);
  return spawner_rouse(guest, idle_too) || supervisors || files;
}

static void on_rouse(struct timer *timer) {
  struct guest *guest = container_of(timer, struct guest, rouse);
  if (rouse_all(guest, false)) rouse_soon(guest);
}

static void on_heartbeat(struct timer *timer) {
  struct guest *guest = container_of(timer, struct guest, heartbeat);
  for (struct connection *c = guest->connections; c; c = c->next) {
    if (!c->greeted || connection_busy(c)) continue;
    frame_begin(&c->out, FRAME_HEARTBEAT, 0);
    frame_field_u64(&c->out, TAG_HEARTBEAT_UPTIME_MS, guest->loop.now - guest->started_at);
    frame_field_u64(&c->out, TAG_HEARTBEAT_PROCESSES, guest->processes->running_count);
    frame_field_u64(&c->out, TAG_HEARTBEAT_LATE_MS, guest->loop.late);
    frame_end(&c->out);
    connection_touch(c);
  }
  guest->loop.late = 0;
  output_trim_idle(guest);
  supervisors_trim_idle(guest);
  file_workers_trim_idle(guest);
  serve_tick(guest);
  /* A supervisor that was stopped while its command ran would never report the outcome, and has no request pending. */
  if (rouse_all(guest, true)) rouse_soon(guest);
  timer_set(&guest->loop, timer, guest->loop.now + HEARTBEAT_MS);
}

static int listen_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) die("--listen-path is longer than %zu bytes", sizeof address.sun_path - 1);
  strcpy(address.sun_path, path);
  struct stat stat;
  /* A killed guest leaves its socket behind. Only a socket is ever removed. */
  if (lstat(path, &stat) == 0 && S_ISSOCK(stat.st_mode)) unlink(path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die_errno("socket");
  /* The folder controls access. Its group lets an engine's root and an ordinary user on the host share the socket. */
  mode_t before = umask(0117);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die_errno("cannot listen on %s", path);
  umask(before);
  if (listen(fd, 64) < 0) die_errno("cannot listen on %s", path);
  return fd;
}

static void open_token(struct guest *guest, const struct options *options) {
  guest->token_fd = options->token_file ? open(options->token_file, O_RDONLY | O_CLOEXEC) : options->token_fd;
  if (guest->token_fd < 0 && options->token_file) die_errno("cannot read the token %s", options->token_file);
  char byte;
  if (guest->token_fd >= 0 && pread(guest->token_fd, &byte, 1, 0) != 1) die("the token is empty");
}

static void reset_signals(void) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static int open_signals(void) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGUSR1);
  sigprocmask(SIG_BLOCK, &wanted, NULL);
  int fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) die_errno("signalfd");
  return fd;
}

/* Four thousand processes have three descriptors each. Commands get the original limit. */
static void raise_nofile(struct guest *guest) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  guest->nofile_soft = limit.rlim_cur;
  guest->nofile_hard = limit.rlim_max;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens missing standard descriptors, or a pipe could land on one of them. */
static void fill_standard_fds(void) {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd < 3);
  if (fd >= 0) close(fd);
}

void wait_for_leash(int fd, int passed) {
  char go;
  ssize_t got;
  if (!message_send(fd, "r", 1, NULL, 0, &passed, passed >= 0, 0)) _exit(1);
  do got = read(fd, &go, 1);
  while (got < 0 && errno == EINTR);
  if (got != 1) _exit(1);
  close(fd);
}

static void set_up(struct guest *guest, const struct options *options) {
  fill_standard_fds();
  reset_signals();
  umask(022);
  hide_self();
  prctl(PR_SET_NAME, GUEST_NAME, 0, 0, 0);
  if (getpid() != 1) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  guest->started_at = now_ms();
  if (getrandom(guest->boot_id, sizeof guest->boot_id, 0) != sizeof guest->boot_id) die_errno("getrandom");
  raise_nofile(guest);
  if (!guest->not_init) {
    if (!limit_capabilities(guest_capabilities(guest->allow_root, guest->transparent))) die_errno("cannot drop capabilities");
    guest->root_caps = guest->allow_root ? root_capabilities() & held_capabilities() : 0;
  }
  loop_open(&guest->loop);
  processes_open(guest);
  ports_open(guest);
  oom_open(guest);
  int signals = open_signals();
  int listener = options->listen_path ? listen_at(options->listen_path) : options->listen_fd;
  for (size_t i = 0; i < guest->work_fd_count; i++) fcntl(guest->work_fds[i], F_SETFD, FD_CLOEXEC);
  if (guest->oom_fd >= 0) fcntl(guest->oom_fd, F_SETFD, FD_CLOEXEC);
  if (fcntl(listener, F_SETFD, FD_CLOEXEC) < 0) die_errno("--listen-fd %d", listener);
  fcntl(listener, F_SETFL, O_NONBLOCK);
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0 || !is_listening)
    die("descriptor %d is not a listening socket", listener);

  if (options->leash_fd >= 0) fcntl(options->leash_fd, F_SETFD, FD_CLOEXEC);
  if (options->token_fd >= 0) fcntl(options->token_fd, F_SETFD, FD_CLOEXEC);
  /* The output is a file outside the sandbox, and no memory image may contain one. */
  if (guest->reaper_fd >= 0 && (dup2(0, 1) < 0 || dup2(0, 2) < 0)) die_errno("/dev/null");
  spawner_start(guest);
  open_token(guest, options);
  source_open(&guest->listener, listener, on_listener);
  source_open(&guest->signals, signals, on_signal);
  source_watch(&guest->loop, &guest->listener, EPOLLIN);
  source_watch(&guest->loop, &guest->signals, EPOLLIN);
  if (guest->allow_root && !guest->not_init) sudo_listen(guest);
  guest->rouse.fire = on_rouse;
  guest->heartbeat.fire = on_heartbeat;
  timer_set(&guest->loop, &guest->heartbeat, guest->started_at + HEARTBEAT_MS);
  supervisors_prepare(guest);
}

int init_main(int argc, char **argv) {
  struct guest *guest = xalloc(sizeof *guest);
  struct options options;
  options_parse(&options, guest, argc, argv);
  /* Before reading anything from outside. */
  if (options.filter_fd >= 0 && !obey_filter(options.filter_fd)) die_errno("cannot install the system call filter");
  close_fd(&options.filter_fd);
  if (options.reaper) become_reaper(guest, &options);
  set_up(guest, &options);
  if (options.leash_fd >= 0) wait_for_leash(options.leash_fd, -1);
  for (;;) {
    bool work_left = false;
    for (struct connection *c = guest->connections; c; c = c->next) work_left = work_left || c->dirty;
    loop_turn(&guest->loop, !work_left);
    connection_flush_all(guest);
    if (guest->parking) {
      guest->parking = false;
      outside_park(guest);
    }
    if (!guest->shutdown_done) continue;
    /* The reply may need a moment if the socket is full; wait at most half a second. */
    for (int turn = 0; turn < 50; turn++) {
      bool queued = false;
      for (struct connection *c = guest->connections; c; c = c->next) queued = queued || connection_queued(c) > 0;
      if (!queued) break;
      usleep(10000);
      for (struct connection *c = guest->connections; c; c = c->next) connection_touch(c);
      connection_flush_all(guest);
    }
    return 0;
  }
}
