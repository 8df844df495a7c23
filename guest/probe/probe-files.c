/*
 * Tries to create files that would be of use outside the sandbox (set-ID), and to reserve disk space. Every file is
 * empty or small, and the caller removes it.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALL_OPENAT2 = 437, CALL_FCHMODAT2 = 452, SET_ID = 06755 };

static int plain(const char *name)
{
  int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0755);
  if (fd < 0)
    probe_report(name, fd, errno);
  return fd;
}

static void by_changing(const char *name, long (*change)(int fd, const char *name))
{
  int fd = plain(name);
  if (fd < 0)
    return;
  long result = change(fd, name);
  probe_report(name, result, errno);
  close(fd);
}

static long change_fchmod(int fd, const char *name)
{
  (void)name;
  return syscall(SYS_fchmod, fd, SET_ID);
}
static long change_fchmodat(int fd, const char *name)
{
  (void)fd;
  return syscall(SYS_fchmodat, AT_FDCWD, name, SET_ID);
}
static long change_fchmodat2(int fd, const char *name)
{
  (void)fd;
  return syscall(CALL_FCHMODAT2, AT_FDCWD, name, SET_ID, 0);
}

static void by_opening(void)
{
  struct open_how how = {.flags = O_CREAT | O_WRONLY | O_CLOEXEC, .mode = SET_ID};
  probe_report("openat", syscall(SYS_openat, AT_FDCWD, "openat", O_CREAT | O_WRONLY | O_CLOEXEC, SET_ID), errno);
  probe_report("openat2", syscall(CALL_OPENAT2, AT_FDCWD, "openat2", &how, sizeof how), errno);
  /* An unnamed file (O_TMPFILE), linked to a name afterwards. */
  char self[64];
  int fd = (int)syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, SET_ID);
  int error = errno;
  snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  probe_report("tmpfile", fd < 0 ? -1 : linkat(AT_FDCWD, self, AT_FDCWD, "tmpfile", AT_SYMLINK_FOLLOW), fd < 0 ? error : errno);
}

int probe_set_id(void)
{
  umask(0);
  by_changing("fchmod", change_fchmod);
  by_changing("fchmodat", change_fchmodat);
  by_changing("fchmodat2", change_fchmodat2);
  by_opening();
  probe_report("mknodat", syscall(SYS_mknodat, AT_FDCWD, "mknodat", S_IFREG | SET_ID, 0), errno);
#ifdef SYS_chmod
  int fd = plain("chmod");
  if (fd >= 0) {
    probe_report("chmod", syscall(SYS_chmod, "chmod", SET_ID), errno);
    close(fd);
  }
  probe_report("open", syscall(SYS_open, "open", O_CREAT | O_WRONLY | O_CLOEXEC, SET_ID), errno);
  probe_report("creat", syscall(SYS_creat, "creat", SET_ID), errno);
  probe_report("mknod", syscall(SYS_mknod, "mknod", S_IFREG | SET_ID, 0), errno);
#endif
  puts("end ok");
  return 0;
}

/* `struct space_resv` of <linux/falloc.h>, which older headers lack. */
struct space {
  short type, whence;
  long long start, length;
  int system;
  unsigned process;
  int reserved[4];
};
#define RESERVE_SPACE _IOW('X', 42, struct space)

int probe_allocate(void)
{
  enum { BYTES = 1024 * 1024 };
  int fd = plain("allocated");
  if (fd < 0)
    return 1;
  unlink("allocated");
  struct space space = {.length = BYTES};
  probe_report("fallocate", syscall(SYS_fallocate, fd, 0, 0L, (long)BYTES), errno);
  probe_report("fallocate_keep_size", syscall(SYS_fallocate, fd, 1, 0L, (long)BYTES), errno);
  probe_report("fallocate_zero_range", syscall(SYS_fallocate, fd, 0x10, 0L, (long)BYTES), errno);
  probe_report("ioctl_resvsp", ioctl(fd, RESERVE_SPACE, &space), errno);
  puts("end ok");
  return 0;
}
