/*
 * The probe of the attack suite: a static program that runs in a sandbox and tries what code inside must not be able to
 * do. Each attempt shows whether the sandbox permits it, without doing harm: calls have arguments that fail for reasons
 * other than permission, files are opened but never written, and counts and times are bounded.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const struct {
  int value;
  const char *name;
} errnos[] = {
    {EPERM, "EPERM"},           {ENOENT, "ENOENT"},           {ESRCH, "ESRCH"},
    {EINTR, "EINTR"},           {EIO, "EIO"},                 {ENXIO, "ENXIO"},
    {E2BIG, "E2BIG"},           {ENOEXEC, "ENOEXEC"},         {EBADF, "EBADF"},
    {EAGAIN, "EAGAIN"},         {ENOMEM, "ENOMEM"},           {EACCES, "EACCES"},
    {EFAULT, "EFAULT"},         {EBUSY, "EBUSY"},             {EEXIST, "EEXIST"},
    {ENODEV, "ENODEV"},         {ENOTDIR, "ENOTDIR"},         {EISDIR, "EISDIR"},
    {EINVAL, "EINVAL"},         {ENFILE, "ENFILE"},           {EMFILE, "EMFILE"},
    {ENOTTY, "ENOTTY"},         {ENOSPC, "ENOSPC"},           {EROFS, "EROFS"},
    {ENOSYS, "ENOSYS"},         {ENOKEY, "ENOKEY"},           {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
    {EAFNOSUPPORT, "EAFNOSUPPORT"},         {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"}, {ENETUNREACH, "ENETUNREACH"},
    {EHOSTUNREACH, "EHOSTUNREACH"},         {ECONNREFUSED, "ECONNREFUSED"}, {ETIMEDOUT, "ETIMEDOUT"},
    {EADDRNOTAVAIL, "EADDRNOTAVAIL"},       {EOPNOTSUPP, "EOPNOTSUPP"},   {ESTALE, "ESTALE"},
    {ENETDOWN, "ENETDOWN"},     {EDQUOT, "EDQUOT"},           {EUSERS, "EUSERS"},
};

const char *probe_errno_name(int error)
{
  static char other[24];
  for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++)
    if (errnos[i].value == error)
      return errnos[i].name;
  snprintf(other, sizeof other, "errno%d", error);
  return other;
}

void probe_report(const char *name, long result, int error)
{
  printf("%s %s\n", name, result >= 0 ? "ok" : probe_errno_name(error));
  fflush(stdout);
}

/* A sandbox may hide a file behind the null device, which discards whatever is written to it. */
static int is_null_device(int fd)
{
  struct stat status;
  return fd >= 0 && fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

/* Opens existing files for writing, without truncating them, and writes nothing. */
static int open_for_writing(int count, char **paths)
{
  for (int i = 0; i < count; i++) {
    int fd = open(paths[i], O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
    if (is_null_device(fd))
      printf("%s null\n", paths[i]);
    else
      probe_report(paths[i], fd, errno);
    if (fd >= 0)
      close(fd);
  }
  return 0;
}

/* Prints how many of the first 64 bytes could be read; a masked file yields none. */
static int read_some(int count, char **paths)
{
  for (int i = 0; i < count; i++) {
    char bytes[64];
    int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd >= 0 ? read(fd, bytes, sizeof bytes) : -1;
    if (got >= 0)
      printf("%s read %zd\n", paths[i], got);
    else
      probe_report(paths[i], -1, errno);
    if (fd >= 0)
      close(fd);
  }
  return 0;
}

static int print_ids(void)
{
  printf("ruid %d\neuid %d\n", (int)getuid(), (int)geteuid());
  return 0;
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "syscalls"))
    return probe_syscalls();
  if (!strcmp(mode, "ids"))
    return print_ids();
  if (!strcmp(mode, "write"))
    return open_for_writing(argc - 2, argv + 2);
  if (!strcmp(mode, "read"))
    return read_some(argc - 2, argv + 2);
  if (!strcmp(mode, "network"))
    return probe_network(argc - 2, argv + 2);
  if (!strcmp(mode, "set-id"))
    return probe_set_id();
  if (!strcmp(mode, "allocate"))
    return probe_allocate();
  if (!strcmp(mode, "exhaust") && argc == 5)
    return probe_exhaust(argv[2], atol(argv[3]), atol(argv[4]));
  if (!strcmp(mode, "hold") && argc == 5)
    return probe_hold(argv[2], atol(argv[3]), atol(argv[4]));
  if (!strcmp(mode, "core"))
    return probe_core();
  fprintf(stderr, "usage: caisson-probe syscalls | ids | core | write PATH… | read PATH… | network (tcp|udp|icmp) ADDRESS PORT… | set-id | allocate | "
                  "(exhaust|hold) (forks|memory|memfd|descriptors|sockets|ptys|watches|instances|files) COUNT MS\n");
  return 2;
}
