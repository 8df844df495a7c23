#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REACH_MS = 700, MIB = 1024 * 1024 };

static long now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

/*
 * Connects, or sends one small datagram; prints "ok" only if the other side was reached, as far as this process can
 * tell.
 */
static void reach(const char *kind, const char *address, int port)
{
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
  if (!is_six && inet_pton(AF_INET, address, &four.sin_addr) != 1) {
    printf("%s %s %d not-an-address\n", kind, address, port);
    return;
  }
  int type = !strcmp(kind, "tcp") ? SOCK_STREAM : SOCK_DGRAM;
  int protocol = !strcmp(kind, "icmp") ? (is_six ? IPPROTO_ICMPV6 : IPPROTO_ICMP) : 0;
  int fd = socket(is_six ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
  int result = -1, error = errno;
  if (fd >= 0) {
    result = connect(fd, is_six ? (void *)&six : (void *)&four, is_six ? sizeof six : sizeof four);
    error = errno;
    if (result < 0 && error == EINPROGRESS) {
      struct pollfd wait = {.fd = fd, .events = POLLOUT};
      socklen_t size = sizeof error;
      error = ETIMEDOUT;
      if (poll(&wait, 1, REACH_MS) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        result = 0;
    } else if (result == 0 && type == SOCK_DGRAM) {
      const char echo[8] = {8};
      result = send(fd, echo, sizeof echo, 0) < 0 ? -1 : 0;
      error = errno;
    }
    close(fd);
  }
  printf("%s %s %d %s\n", kind, address, port, result == 0 ? "ok" : probe_errno_name(error));
}

int probe_network(int argc, char **argv)
{
  for (int i = 0; i + 2 < argc; i += 3)
    reach(argv[i], argv[i + 1], atoi(argv[i + 2]));
  puts("end ok");
  return 0;
}

/*
 * Forks, and lets the children fork, until `count` processes have started in total or no more can start. All of them
 * stay until the deadline.
 */
static int exhaust_forks(long count, long deadline)
{
  atomic_long *started = mmap(NULL, sizeof *started, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (started == MAP_FAILED)
    return 1;
  pid_t first = getpid();
  int error = 0;
  while (now_ms() < deadline && atomic_load(started) < count) {
    pid_t child = fork();
    if (child >= 0)
      atomic_fetch_add(started, child == 0);
    else {
      error = errno;
      struct timespec pause = {0, 2000000};
      nanosleep(&pause, NULL);
    }
    if (getpid() == first && error && now_ms() > deadline - 1000)
      break;
  }
  if (getpid() == first) {
    printf("forks %ld %s\n", atomic_load(started), error ? probe_errno_name(error) : "ok");
    fflush(stdout);
  }
  while (now_ms() < deadline) {
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, NULL);
  }
  _exit(0);
}

static int exhaust_memory(long megabytes, int in_file)
{
  int fd = in_file ? (int)syscall(SYS_memfd_create, "caisson-probe", 0) : -1;
  if (in_file && (fd < 0 || ftruncate(fd, megabytes * MIB) < 0)) {
    printf("memory 0 %s\n", probe_errno_name(errno));
    return 0;
  }
  char *bytes = mmap(NULL, (size_t)(megabytes * MIB), PROT_READ | PROT_WRITE, in_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
  if (bytes == MAP_FAILED) {
    printf("memory 0 %s\n", probe_errno_name(errno));
    return 0;
  }
  for (long i = 0; i < megabytes; i++)
    memset(bytes + i * MIB, 1, MIB);
  printf("memory %ld ok\n", megabytes);
  return 0;
}

static int make_one(const char *what, long number)
{
  static int watcher = -1;
  char path[64];
  if (!strcmp(what, "descriptors"))
    return dup(0);
  if (!strcmp(what, "sockets"))
    return socket(AF_UNIX, SOCK_STREAM, 0);
  if (!strcmp(what, "ptys"))
    return posix_openpt(O_RDWR | O_NOCTTY);
  if (!strcmp(what, "instances"))
    return inotify_init1(IN_CLOEXEC);
  if (!strcmp(what, "files")) {
    snprintf(path, sizeof path, "caisson-empty-%ld", number);
    int made = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    return made < 0 ? -1 : close(made);
  }
  if (watcher < 0 && (watcher = inotify_init1(IN_CLOEXEC)) < 0)
    return -1;
  snprintf(path, sizeof path, "caisson-watched-%ld", number);
  int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0)
    return -1;
  close(fd);
  int watch = inotify_add_watch(watcher, path, IN_MODIFY);
  int error = errno;
  unlink(path);
  errno = error;
  return watch;
}

int probe_exhaust(const char *what, long count, long ms)
{
  long deadline = now_ms() + ms, made = 0;
  if (!strcmp(what, "forks"))
    return exhaust_forks(count, deadline);
  if (!strcmp(what, "memory") || !strcmp(what, "memfd"))
    return exhaust_memory(count, !strcmp(what, "memfd"));
  int error = 0;
  while (made < count && now_ms() < deadline) {
    if (make_one(what, made) < 0) {
      error = errno;
      break;
    }
    made++;
  }
  printf("%s %ld %s\n", what, made, error ? probe_errno_name(error) : "ok");
  return 0;
}

int probe_hold(const char *what, long count, long ms)
{
  int result = probe_exhaust(what, count, ms);
  fflush(stdout);
  char byte;
  struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
  if (poll(&wait, 1, (int)ms) == 1 && read(STDIN_FILENO, &byte, 1) > 0)
    result = 1;
  return result;
}

static void print_core_limit(const char *when)
{
  struct rlimit limit = {0, 0};
  getrlimit(RLIMIT_CORE, &limit);
  printf("%s %llu %llu\n", when, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
}

int probe_core(void)
{
  print_core_limit("given");
  /* With any of these limits the kernel starts the machine's core dump handler. */
  const rlim_t wanted[] = {RLIM_INFINITY, 4096, 0};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    struct rlimit limit = {wanted[i], wanted[i]};
    syscall(SYS_setrlimit, RLIMIT_CORE, &limit);
    syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL);
    syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, &limit, NULL);
    /* The kernel reads only the lower half of this argument. */
    syscall(SYS_prlimit64, 0, (1L << 32) | RLIMIT_CORE, &limit, NULL);
  }
  print_core_limit("changed");
  return 0;
}
