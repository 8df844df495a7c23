/*
 * System calls that only an administrator of the machine may make: on its kernel, devices, swap, clock and name, and on
 * the rights and limits of processes. As with all calls, any errno other than a refusal means "let through".
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static long try_kexec_load(void) { return syscall(SYS_kexec_load, 0UL, 0UL, NULL, ~0UL); }
static long try_kexec_file_load(void) { return syscall(SYS_kexec_file_load, -1, -1, 0UL, "", ~0UL); }
static long try_init_module(void) { return syscall(SYS_init_module, NULL, 0UL, ""); }
static long try_finit_module(void) { return syscall(SYS_finit_module, -1, "", 0); }
static long try_delete_module(void) { return syscall(SYS_delete_module, "caisson_no_such_module", O_NONBLOCK); }
static long try_open_by_handle(void)
{
  struct {
    struct file_handle head;
    char bytes[8];
  } handle = {.head = {.handle_bytes = 8, .handle_type = 1}};
  int fd = open("/", O_RDONLY | O_CLOEXEC);
  return syscall(SYS_open_by_handle_at, fd, &handle, O_RDONLY);
}
static long make_device(const char *name, mode_t mode, dev_t device)
{
  long result = mknod(name, mode, device);
  int error = errno;
  unlink(name);
  errno = error;
  return result;
}
static long try_mknod_disk(void)
{
  return make_device("caisson-probe-disk", S_IFBLK | 0600, makedev(8, 0));
}
static long try_mknod_memory(void)
{
  return make_device("caisson-probe-mem", S_IFCHR | 0600, makedev(1, 1));
}
static long try_reboot(void) { return syscall(SYS_reboot, 0, 0, 0, NULL); }
static long try_swapon(void) { return syscall(SYS_swapon, "/caisson-no-such-file", 0); }
static long try_swapoff(void) { return syscall(SYS_swapoff, "/caisson-no-such-file"); }
static long try_settimeofday(void) { return syscall(SYS_settimeofday, NULL, NULL); }
/* Sets the clock to the current time, and only if the harmless call above was refused. */
static long try_clock_settime(void)
{
  struct timespec now;
  if (try_settimeofday() == 0) {
    errno = 0;
    return 0;
  }
  clock_gettime(CLOCK_REALTIME, &now);
  return clock_settime(CLOCK_REALTIME, &now);
}
static long try_sethostname(void)
{
  struct utsname names;
  uname(&names);
  return sethostname(names.nodename, strlen(names.nodename));
}
static long try_quotactl(void) { return syscall(SYS_quotactl, 0x80000200 /* an unknown command */, "/dev/caisson-none", 0, NULL); }
static long try_acct(void) { return syscall(SYS_acct, "/caisson-no-such-file"); }
static long try_syslog(void)
{
  char line[64];
  return syscall(SYS_syslog, 3, line, sizeof line);
}
static long try_setuid_root(void) { return syscall(SYS_setuid, 0); }
static long try_setgroups(void)
{
  gid_t group = 0;
  return syscall(SYS_setgroups, 1, &group);
}
static long try_capset(void)
{
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  uint32_t data[6] = {~0U, ~0U, 0, ~0U, ~0U, 0};
  return syscall(SYS_capset, &header, data);
}
static long try_fanotify(void) { return syscall(SYS_fanotify_init, 0, 0); }
static long try_vhangup(void)
{
  setsid(); /* Leaves no terminal to hang up. */
  return syscall(SYS_vhangup);
}
static long try_realtime(void)
{
  struct sched_param parameters = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &parameters);
}
/* Requests the highest priority, because the program that started the sandbox may itself have a high one. */
static long try_nice(void) { return setpriority(PRIO_PROCESS, 0, -20); }
static long try_hard_limit(void)
{
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
    return -1;
  if (limit.rlim_max == RLIM_INFINITY) {
    errno = 0;
    return 0;
  }
  limit.rlim_max += 1;
  return setrlimit(RLIMIT_NOFILE, &limit);
}

const struct probe_call probe_administration_calls[] = {
    {"kexec_load", try_kexec_load}, {"kexec_file_load", try_kexec_file_load}, {"init_module", try_init_module},
    {"finit_module", try_finit_module}, {"delete_module", try_delete_module}, {"open_by_handle_at", try_open_by_handle},
    {"mknod_disk", try_mknod_disk}, {"mknod_memory", try_mknod_memory}, {"reboot", try_reboot}, {"swapon", try_swapon},
    {"swapoff", try_swapoff}, {"settimeofday", try_settimeofday}, {"clock_settime", try_clock_settime},
    {"sethostname", try_sethostname}, {"quotactl", try_quotactl}, {"acct", try_acct}, {"syslog", try_syslog},
    {"setuid_root", try_setuid_root}, {"setgroups", try_setgroups}, {"capset", try_capset}, {"fanotify_init", try_fanotify},
    {"vhangup", try_vhangup}, {"realtime", try_realtime}, {"nice", try_nice}, {"hard_limit", try_hard_limit},
    {NULL, NULL},
};
