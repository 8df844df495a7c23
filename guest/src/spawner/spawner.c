#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/privilege.h"
#include "spawner/supervisor.h"

static void close_between(unsigned from, unsigned to) {
  if (from > to) return;
  if (syscall(SYS_close_range, from, to, 0) == 0) return;
  /* On an old kernel or with a strict filter, closes up to the limit on open descriptors. */
  struct rlimit limit;
  unsigned most = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (unsigned)limit.rlim_cur : 65536;
  for (unsigned fd = from; fd <= to && fd < most; fd++) close((int)fd);
}

void close_all_but(const int *keep, size_t count) {
  unsigned from = 3;
  for (;;) {
    /* The smallest one to keep that is not below `from`; the lists have only a few entries. */
    int next = -1;
    for (size_t i = 0; i < count; i++) {
      if (keep[i] >= (int)from && (next < 0 || keep[i] < next)) next = keep[i];
    }
    if (next < 0) break;
    close_between(from, (unsigned)next - 1);
    from = (unsigned)next + 1;
  }
  close_between(from, ~0U);
}

static void join(const int *work_fds, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (write(work_fds[i], "0", 1) < 0) die_errno("cannot join a work cgroup");
  }
}

void worker_process(int socket, const struct identity *identity, const int *work_fds, size_t work_fd_count) {
  prctl(PR_SET_NAME, "caisson-files", 0, 0, 0);
  join(work_fds, work_fd_count);
  sigset_t none;
  sigemptyset(&none);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_SETMASK, &none, NULL);
  umask(022);
  if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0) _exit(125);
  close_all_but(NULL, 0);
  if (!become_for_files(identity)) die_errno("the file worker cannot act for uid %u", identity->uid);
  hide_self();
  if (chdir("/") < 0) _exit(125);
  _exit(worker_main(STDIN_FILENO, STDOUT_FILENO));
}

static void fork_for(int socket, const struct order *order, int fd) {
  struct report message = {.kind = REPORT_FORKED, .a = -1};
  pid_t pid = fork();
  if (pid == 0) {
    close_all_but(&fd, 1);
    if (order->kind == ORDER_SUPERVISOR) supervisor_main(fd, NULL, 0);
    worker_process(fd, &order->identity, NULL, 0);
  }
  message.a = pid;
  message.b = pid < 0 ? errno : 0;
  message_send(socket, &message, sizeof message, NULL, 0, NULL, 0, 0);
}

void spawner_main(int socket, const int *work_fds, size_t work_fd_count) {
  prctl(PR_SET_NAME, "caisson-spawn", 0, 0, 0);
  hide_self();
  join(work_fds, work_fd_count);
  close_all_but(&socket, 1);
  /* We watch our children through their sockets; the kernel may drop their exit statuses. */
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    struct order order;
    int fd = -1;
    size_t fd_count = 1;
    ssize_t got = message_receive(socket, &order, sizeof order, NULL, 0, &fd, &fd_count, 0);
    if (got < (ssize_t)sizeof order) _exit(0);
    if (fd_count == 1) fork_for(socket, &order, fd);
    close_fd(&fd);
  }
}
