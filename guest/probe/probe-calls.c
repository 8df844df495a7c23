#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls newer than the headers we may be built with; the numbers are the same on x86_64 and aarch64. */
enum { CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_FSOPEN = 430, CALL_FSMOUNT = 432, CALL_FSPICK = 433, CALL_PIDFD_OPEN = 434,
       CALL_CLONE3 = 435, CALL_PIDFD_GETFD = 438, CALL_MOUNT_SETATTR = 442, CALL_MEMFD_SECRET = 447, CALL_IO_URING_SETUP = 425,
       CALL_IO_URING_ENTER = 426, CALL_IO_URING_REGISTER = 427 };

static const char INNER[] = "/proc/sys/kernel"; /* A folder that is never itself a mount point. */

/* The arguments make even a permitted call fail: any errno other than a refusal then means "let through". */
static long try_io_uring_setup(void)
{
  char params[256] = {0};
  return syscall(CALL_IO_URING_SETUP, 1, params);
}
static long try_io_uring_enter(void) { return syscall(CALL_IO_URING_ENTER, -1, 0, 0, 0, NULL, 0); }
static long try_io_uring_register(void) { return syscall(CALL_IO_URING_REGISTER, -1, 0, NULL, 0); }

static long try_unshare_user(void) { return unshare(CLONE_NEWUSER); }
static long try_unshare_mount(void) { return unshare(CLONE_NEWNS); }
static long try_unshare_net(void) { return unshare(CLONE_NEWNET); }
static long try_unshare_pid(void) { return unshare(CLONE_NEWPID); }
static long try_unshare_ipc(void) { return unshare(CLONE_NEWIPC); }
static long try_unshare_uts(void) { return unshare(CLONE_NEWUTS); }
static long try_unshare_cgroup(void) { return unshare(CLONE_NEWCGROUP); }

static long try_clone_user(void)
{
  long pid = syscall(SYS_clone, (unsigned long)(CLONE_NEWUSER | SIGCHLD), 0, 0, 0, 0);
  if (pid == 0)
    _exit(0);
  return pid;
}
static long try_clone3_user(void)
{
  uint64_t args[11] = {CLONE_NEWUSER, [4] = SIGCHLD};
  long pid = syscall(CALL_CLONE3, args, 64);
  if (pid == 0)
    _exit(0);
  return pid;
}
static long try_setns(void)
{
  int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -1 : setns(fd, 0);
}
static long try_setns_init(void)
{
  int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -1 : setns(fd, 0);
}
static long try_chroot(void) { return chroot("/"); }
static long try_mount(void) { return syscall(SYS_mount, "none", "/", "caisson-none", 0UL, NULL); }
static long try_umount(void) { return syscall(SYS_umount2, INNER, 0); }
static long try_pivot_root(void) { return syscall(SYS_pivot_root, INNER, INNER); }
static long try_move_mount(void) { return syscall(CALL_MOVE_MOUNT, -1, "", -1, "", 0); }
static long try_open_tree(void) { return syscall(CALL_OPEN_TREE, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */); }
static long try_fsopen(void) { return syscall(CALL_FSOPEN, "tmpfs", 0); }
static long try_fsmount(void) { return syscall(CALL_FSMOUNT, -1, 0, 0); }
static long try_fspick(void) { return syscall(CALL_FSPICK, AT_FDCWD, "/", 0); }
static long try_mount_setattr(void)
{
  uint64_t attributes[4] = {0};
  return syscall(CALL_MOUNT_SETATTR, -1, "", 0, attributes, sizeof attributes);
}
static long try_bpf(void)
{
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = attributes.value_size = 4;
  attributes.max_entries = 1;
  return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes);
}
static long try_perf(void)
{
  struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .exclude_kernel = 1};
  return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}
static long try_keyctl(void) { return syscall(SYS_keyctl, 0, -3, 0); }
static long try_add_key(void) { return syscall(SYS_add_key, "user", "caisson-probe", "x", 1, -2); }
static long try_request_key(void) { return syscall(SYS_request_key, "user", "caisson-no-such-key", NULL, 0); }
static long try_userfaultfd(void) { return syscall(SYS_userfaultfd, O_CLOEXEC); }
/* PTRACE_SEIZE does not stop the target, and ends with this process. */
static long try_ptrace_init(void) { return ptrace(PTRACE_SEIZE, 1, NULL, NULL); }
static long try_vm_read_init(void)
{
  char byte;
  struct iovec local = {&byte, 1}, remote = {NULL, 1};
  return process_vm_readv(1, &local, 1, &remote, 1, 0);
}
static long try_vm_write_init(void)
{
  char byte = 0;
  struct iovec local = {&byte, 1}, remote = {NULL, 1};
  return process_vm_writev(1, &local, 1, &remote, 1, 0);
}
static long try_proc_mem_init(void) { return open("/proc/1/mem", O_RDWR | O_CLOEXEC); }
static long try_pidfd_getfd_init(void)
{
  int fd = (int)syscall(CALL_PIDFD_OPEN, 1, 0);
  return fd < 0 ? -1 : syscall(CALL_PIDFD_GETFD, fd, 0, 0);
}
static long try_kcmp_init(void) { return syscall(SYS_kcmp, 1, getpid(), 0, 0, 0); }
static long try_move_pages_init(void) { return syscall(SYS_move_pages, 1, 0UL, NULL, NULL, NULL, 0); }
static long try_personality(void) { return syscall(SYS_personality, 0x0040000UL /* ADDR_NO_RANDOMIZE */); }
static long try_terminal_injection(void)
{
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
    return -1;
  int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  setsid();
  if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0)
    return -1;
  return ioctl(terminal, TIOCSTI, "x");
}
static long try_lookup_dcookie(void)
{
#ifdef SYS_lookup_dcookie
  char path[64];
  return syscall(SYS_lookup_dcookie, 0ULL, path, sizeof path);
#else
  errno = ENOSYS;
  return -1;
#endif
}
static long try_nfsservctl(void)
{
#ifdef SYS_nfsservctl
  return syscall(SYS_nfsservctl, 0, NULL, NULL);
#else
  errno = ENOSYS;
  return -1;
#endif
}
static long try_io_ports(void)
{
#ifdef SYS_iopl
  return syscall(SYS_iopl, 3) >= 0 ? 0 : syscall(SYS_ioperm, 0x80, 1, 1);
#else
  errno = ENOSYS;
  return -1;
#endif
}
/* The 32-bit entry point on x86_64, where the same numbers mean other calls. 425 is io_uring_setup on both. */
static long try_32_bit_door(void)
{
#ifdef __x86_64__
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(425), "b"(1), "c"(0) : "memory");
  if (result < 0) {
    errno = (int)-result;
    return -1;
  }
  return result;
#else
  errno = ENOSYS;
  return -1;
#endif
}
static long try_memfd_secret(void) { return syscall(CALL_MEMFD_SECRET, 0); }
static long try_landlock(void) { return syscall(444, NULL, 0UL, 1U); }
static long try_seccomp(void) { return syscall(SYS_seccomp, 2 /* GET_ACTION_AVAIL */, 0, &(uint32_t){0}); }

static const struct probe_call calls[] = {
    {"io_uring_setup", try_io_uring_setup}, {"io_uring_enter", try_io_uring_enter}, {"io_uring_register", try_io_uring_register},
    {"unshare_user", try_unshare_user}, {"unshare_mount", try_unshare_mount}, {"unshare_net", try_unshare_net},
    {"unshare_pid", try_unshare_pid}, {"unshare_ipc", try_unshare_ipc}, {"unshare_uts", try_unshare_uts},
    {"unshare_cgroup", try_unshare_cgroup}, {"clone_user", try_clone_user}, {"clone3_user", try_clone3_user}, {"setns", try_setns},
    {"setns_init", try_setns_init}, {"chroot", try_chroot}, {"mount", try_mount}, {"umount2", try_umount},
    {"pivot_root", try_pivot_root}, {"move_mount", try_move_mount}, {"open_tree", try_open_tree}, {"fsopen", try_fsopen},
    {"fsmount", try_fsmount}, {"fspick", try_fspick}, {"mount_setattr", try_mount_setattr}, {"bpf", try_bpf},
    {"perf_event_open", try_perf}, {"keyctl", try_keyctl}, {"add_key", try_add_key}, {"request_key", try_request_key},
    {"userfaultfd", try_userfaultfd}, {"ptrace_init", try_ptrace_init}, {"process_vm_readv_init", try_vm_read_init},
    {"process_vm_writev_init", try_vm_write_init}, {"proc_mem_init", try_proc_mem_init}, {"pidfd_getfd_init", try_pidfd_getfd_init},
    {"kcmp_init", try_kcmp_init}, {"move_pages_init", try_move_pages_init}, {"personality", try_personality},
    {"terminal_injection", try_terminal_injection}, {"lookup_dcookie", try_lookup_dcookie}, {"nfsservctl", try_nfsservctl},
    {"io_ports", try_io_ports}, {"32_bit_door", try_32_bit_door}, {"memfd_secret", try_memfd_secret}, {"landlock", try_landlock},
    {"seccomp", try_seccomp},
};

static const struct {
  const char *name;
  int family, type, protocol;
} sockets[] = {
    {"socket_vsock", 40, SOCK_STREAM, 0},        {"socket_alg", 38, SOCK_SEQPACKET, 0},      {"socket_packet", 17, SOCK_RAW, 0x0300},
    {"socket_packet_dgram", 17, SOCK_DGRAM, 0x0300}, {"socket_raw", 2, SOCK_RAW, 1},         {"socket_raw6", 10, SOCK_RAW, 58},
    {"socket_bluetooth", 31, SOCK_RAW, 1},       {"socket_can", 29, SOCK_RAW, 1},            {"socket_tipc", 30, SOCK_DGRAM, 0},
    {"socket_rds", 21, SOCK_SEQPACKET, 0},       {"socket_key", 15, SOCK_RAW, 2},            {"socket_xdp", 44, SOCK_RAW, 0},
    {"socket_ax25", 3, SOCK_DGRAM, 0},           {"socket_x25", 9, SOCK_SEQPACKET, 0},       {"socket_pppox", 24, SOCK_STREAM, 0},
    {"socket_llc", 26, SOCK_DGRAM, 0},           {"socket_smc", 43, SOCK_STREAM, 0},         {"socket_qipcrtr", 42, SOCK_DGRAM, 0},
    {"socket_nfc", 39, SOCK_SEQPACKET, 0},       {"socket_ieee802154", 36, SOCK_DGRAM, 0},   {"socket_mctp", 45, SOCK_DGRAM, 0},
    {"socket_netlink_route", 16, SOCK_RAW, 0},   {"socket_netlink_audit", 16, SOCK_RAW, 9},  {"socket_netlink_netfilter", 16, SOCK_RAW, 12},
    {"socket_netlink_xfrm", 16, SOCK_RAW, 6},    {"socket_netlink_uevent", 16, SOCK_RAW, 15}, {"socket_unix", 1, SOCK_STREAM, 0},
};

/*
 * Runs each attempt in a separate child: a successful one changes nothing for the next, and one that kills its process
 * is detected.
 */
static void attempt(const char *name, long (*call)(void), int family, int type, int protocol)
{
  int channel[2];
  long answer[2] = {-1, 0};
  if (pipe2(channel, O_CLOEXEC) < 0)
    return probe_report(name, -1, errno);
  pid_t child = fork();
  if (child == 0) {
    alarm(3);
    errno = 0;
    long result = call ? call() : socket(family, type | SOCK_CLOEXEC, protocol);
    long out[2] = {result, errno};
    ssize_t ignored = write(channel[1], out, sizeof out);
    (void)ignored;
    _exit(0);
  }
  close(channel[1]);
  int status = 0;
  ssize_t got = child < 0 ? 0 : read(channel[0], answer, sizeof answer);
  close(channel[0]);
  if (child > 0)
    waitpid(child, &status, 0);
  if (got == sizeof answer)
    return probe_report(name, answer[0], (int)answer[1]);
  if (WIFSIGNALED(status))
    printf("%s SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
  else
    printf("%s nothing\n", name);
}

int probe_syscalls(void)
{
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    attempt(calls[i].name, calls[i].attempt, 0, 0, 0);
  for (const struct probe_call *call = probe_administration_calls; call->name; call++)
    attempt(call->name, call->attempt, 0, 0, 0);
  for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++)
    attempt(sockets[i].name, NULL, sockets[i].family, sockets[i].type, sockets[i].protocol);
  puts("end ok");
  return 0;
}
