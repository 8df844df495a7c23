#include "reaper.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/parked.h"
#include "base/privilege.h"
#include "outside.h"
#include "spawner/order.h"
#include "spawner/spawner.h"

enum {
  /* A restored guest has the pid that it had before. */
  GUEST_PID = 2,
  /* If the process that takes an image dies, nothing else would let the guest continue. */
  PARKED_SECONDS_MAX = 600,
};

struct reaper {
  int guest; /* the socket to the guest */
  int signals;
  bool parked;
  struct outside_message message;
  int fds[OUTSIDE_MAX];
  size_t fd_count;
};

static void __attribute__((noreturn)) end_with(int status) { _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 125); }

static void reap(void) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    /* All others entered from outside: the guest adopts its orphans. */
    if (pid == GUEST_PID) end_with(status);
  }
}

static void park(struct reaper *reaper) {
  reaper->fd_count = OUTSIDE_MAX;
  ssize_t got = message_receive(reaper->guest, &reaper->message, sizeof reaper->message, NULL, 0, reaper->fds, &reaper->fd_count, 0);
  if (got != sizeof reaper->message) {
    int status = 0;
    waitpid(GUEST_PID, &status, 0);
    end_with(status);
  }
  reaper->parked = true;
  alarm(PARKED_SECONDS_MAX);
}

static void give_back(struct reaper *reaper) {
  if (!reaper->parked) return;
  reaper->parked = false;
  alarm(0);
  /* An image leaves every process stopped. */
  kill(-1, SIGCONT);
  message_send(reaper->guest, &reaper->message, sizeof reaper->message, NULL, 0, reaper->fds, reaper->fd_count, 0);
  for (size_t i = 0; i < reaper->fd_count; i++) close(reaper->fds[i]);
}

static void on_signals(struct reaper *reaper) {
  struct signalfd_siginfo info;
  while (read(reaper->signals, &info, sizeof info) == sizeof info) {
    /* From outside, a sender has no pid here. */
    if (info.ssi_signo == SIGCHLD) reap();
    else if (info.ssi_signo == SIGALRM || info.ssi_pid == 0) give_back(reaper);
  }
}

static int open_signals(void) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGUSR1);
  sigaddset(&wanted, SIGALRM);
  sigprocmask(SIG_BLOCK, &wanted, NULL);
  return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What a restored guest waits for: the descriptors of its new sandbox. */
static void welcome(struct reaper *reaper, const struct guest *guest, const struct options *options) {
  reaper->message = (struct outside_message){.kind = OUTSIDE_FRESH, .has_oom = guest->oom_fd >= 0, .work_count = (uint8_t)guest->work_fd_count};
  reaper->fds[reaper->fd_count++] = options->listen_fd;
  reaper->fds[reaper->fd_count++] = options->token_fd;
  if (guest->oom_fd >= 0) reaper->fds[reaper->fd_count++] = guest->oom_fd;
  for (size_t i = 0; i < guest->work_fd_count; i++) reaper->fds[reaper->fd_count++] = guest->work_fds[i];
  reaper->parked = true;
  give_back(reaper);
}

static void __attribute__((noreturn)) serve(struct reaper *reaper) {
  for (;;) {
    struct pollfd sources[] = {{.fd = reaper->signals, .events = POLLIN}, {.fd = reaper->parked ? -1 : reaper->guest, .events = POLLIN}};
    reap();
    if (poll(sources, 2, -1) < 0) continue;
    if (sources[0].revents != 0) on_signals(reaper);
    if (sources[1].revents != 0) park(reaper);
  }
}

void become_reaper(struct guest *guest, const struct options *options) {
  static struct reaper reaper;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) die_errno("socketpair");
  pid_t pid = options->restored ? GUEST_PID : fork();
  if (pid == 0) {
    close(pair[0]);
    guest->reaper_fd = dup3(pair[1], REAPER_FD, O_CLOEXEC);
    if (guest->reaper_fd < 0) die_errno("dup3");
    close(pair[1]);
    return;
  }
  if (pid != GUEST_PID) die("the guest has the wrong pid");
  hide_self();
  prctl(PR_SET_NAME, "caisson-reaper", 0, 0, 0);
  limit_capabilities(UINT64_C(1) << CAP_KILL);
  reaper.guest = pair[0];
  reaper.signals = open_signals();
  if (options->restored) {
    welcome(&reaper, guest, options);
    wait_for_leash(options->leash_fd, pair[1]);
  }
  int keep[] = {reaper.guest, reaper.signals};
  close_all_but(keep, 2);
  serve(&reaper);
}
