/* From the start of the OCI runtime to the guest's first byte: waits for both, and reports a failure. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/launch.h"

#define GUEST_PID_NAME "guest.pid"

/* Fails with the log of the OCI runtime and the output of what it started, shortened. */
__attribute__((noreturn)) static void runtime_failed(struct launch *launch, int status) {
  char text[2048] = "", path[64];
  size_t length = 0;
  static const char *const files[] = {"bundle/log", "output"};
  for (size_t i = 0; i < 2 && length < sizeof text - 1; i++) {
    snprintf(path, sizeof path, "%s/%s", launch->stage, files[i]);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read_full(fd, text + length, sizeof text / 2 - 1);
    if (got > 0) length += (size_t)got;
  }
  for (char *c = text; *c; c++)
    if (*c == '\n') *c = ' ';
  errno = 0;
  launch_fail("runtime", "status %d: %s", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text);
}

int finish_runtime(struct launch *launch, pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) runtime_failed(launch, status);
  return status;
}

/*
 * Records the guest's pid in the sandbox's folder before we release the guest, so that it can be found even if this
 * process and its parent die.
 */
static void write_down(pid_t pid) {
  char text[16];
  snprintf(text, sizeof text, "%d", pid);
  cleanup_fd int fd = open(GUEST_PID_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0 || !write_full(fd, text, strlen(text))) launch_fail("folder", "%s", GUEST_PID_NAME);
}

/* Creates a socket pair. The second end identifies the writer to its reader, by a pid in the reader's namespace. */
void make_leash(int leash[2]) {
  int on = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, leash) != 0) launch_fail("namespace", "cannot create a socket pair");
  if (setsockopt(leash[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) launch_fail("namespace", "cannot receive the guest's credentials");
}

/* Returns the process that wrote a byte to the other end, or 0 if no process has it open. */
static pid_t writer_of(int leash, int *passed) {
  char byte;
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t got;
  do got = recvmsg(leash, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  pid_t pid = 0;
  for (struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL; header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    struct ucred writer;
    if (header->cmsg_type == SCM_CREDENTIALS) {
      memcpy(&writer, CMSG_DATA(header), sizeof writer);
      pid = writer.pid;
    } else if (header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
      memcpy(passed, CMSG_DATA(header), sizeof *passed);
    }
  }
  return pid;
}

/*
 * The guest reports as soon as it runs. The OCI runtime still has to clean up then, but we do not wait for that. Until
 * the report, either of them may fail.
 */
pid_t await_guest(struct launch *launch, int leash, pid_t *runtime, int *passed) {
  *passed = -1;
  cleanup_fd int watch = (int)syscall(SYS_pidfd_open, *runtime, 0);
  if (watch < 0) launch_fail("runtime", "cannot watch the OCI runtime");
  struct pollfd sources[] = {{.fd = leash, .events = POLLIN}, {.fd = watch, .events = POLLIN}};
  for (;;) {
    if (poll(sources, 2, -1) < 0 && errno != EINTR) launch_fail("runtime", "cannot wait for the OCI runtime");
    if (sources[0].revents != 0) {
      pid_t guest = writer_of(leash, passed);
      if (guest > 0) return guest;
      runtime_failed(launch, *runtime == 0 ? 0 : finish_runtime(launch, *runtime));
    }
    if (sources[1].revents != 0) {
      finish_runtime(launch, *runtime);
      *runtime = 0;
      sources[1].fd = -1;
    }
  }
}

void let_go(int leash, pid_t guest) {
  /* From here on the guest can be found, and the OCI runtime may end on its own. */
  write_down(guest);
  prctl(PR_SET_PDEATHSIG, 0);
  if (!write_full(leash, "g", 1)) launch_fail("runtime", "the guest has ended");
  dprintf(STDOUT_FILENO, "pid %d\n", guest);
}
