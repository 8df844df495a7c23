#include "base/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

#define BIT(capability) (UINT64_C(1) << (capability))

uint64_t root_capabilities(void) {
  return BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
         BIT(CAP_KILL) | BIT(CAP_SETFCAP) | BIT(CAP_SYS_CHROOT) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE);
}

uint64_t guest_capabilities(bool allow_root, bool transparent) {
  /* To signal and become other users, to drop bounding sets, and to give a terminal to its user. */
  uint64_t own = BIT(CAP_KILL) | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_CHOWN);
  /* Most ports that are served at every address are privileged. */
  if (transparent) own |= BIT(CAP_NET_BIND_SERVICE);
  return allow_root ? own | root_capabilities() : own;
}

static int set_capabilities(uint64_t keep) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {
      {.effective = (uint32_t)keep, .permitted = (uint32_t)keep},
      {.effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32)},
  };
  return (int)syscall(SYS_capset, &header, data);
}

uint64_t held_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}};
  if (syscall(SYS_capget, &header, data) < 0) return 0;
  return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static void drop_bounding_set(uint64_t keep) {
  /*
   * Fails with EINVAL past the kernel's last capability, and with EPERM without SETPCAP. Then no_new_privs still
   * applies.
   */
  for (int capability = 0; capability < 64; capability++) {
    if (keep & BIT(capability)) continue;
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) break;
  }
}

bool limit_capabilities(uint64_t keep) {
  keep &= held_capabilities();
  drop_bounding_set(keep);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return set_capabilities(keep) == 0;
}

/* A user namespace with a single id forbids setgroups; there are then no groups we could drop. */
static bool setgroups_is_denied(void) {
  char text[8] = "";
  int fd = open("/proc/self/setgroups", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  return got >= 4 && memcmp(text, "deny", 4) == 0;
}

/*
 * Uses raw system calls: the C library's wrappers handle threads and touch memory that a vforked child shares with its
 * parent.
 */
static bool become_group(const struct identity *identity) {
  drop_bounding_set(identity->keep_caps);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  gid_t gid = identity->gid;
  if (syscall(SYS_setgroups, 1, &gid) < 0 && !(errno == EPERM && setgroups_is_denied())) return false;
  return syscall(SYS_setresgid, gid, gid, gid) == 0;
}

bool become(const struct identity *identity) {
  if (!identity->change) return true;
  if (!become_group(identity)) return false;
  uid_t uid = identity->uid;
  if (syscall(SYS_setresuid, uid, uid, uid) < 0) return false;
  if (set_capabilities(identity->keep_caps) < 0) return false;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool is_worker_uid(uint64_t uid) { return uid == WORKER_UID || uid == WORKER_UID_SPARE; }

uid_t file_uid(void) { return (uid_t)syscall(SYS_setfsuid, (uid_t)-1); }

bool become_for_files(const struct identity *identity) {
  if (!identity->change) return true;
  if (!become_group(identity)) return false;
  uid_t own = identity->uid == WORKER_UID ? WORKER_UID_SPARE : WORKER_UID;
  /* Keep the permitted set for the one step that needs it: setting a foreign fsuid after our own uids have changed. */
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) return false;
  /*
   * If the user namespace does not map this uid, root's uid is the only one available to us. Without capabilities, it
   * is like any other.
   */
  if (syscall(SYS_setresuid, own, own, own) < 0 && (errno != EINVAL || syscall(SYS_setresuid, 0, 0, 0) < 0)) return false;
  if (set_capabilities(identity->keep_caps | BIT(CAP_SETUID)) < 0) return false;
  syscall(SYS_setfsuid, identity->uid);
  if (file_uid() != identity->uid) {
    errno = EPERM;
    return false;
  }
  if (set_capabilities(identity->keep_caps) < 0) return false;
  prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

void hide_self(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

bool obey_filter(int fd) {
  static struct sock_filter instructions[BPF_MAXINSNS];
  ssize_t got = read_full(fd, instructions, sizeof instructions);
  if (got < 0) return false;
  errno = EINVAL;
  if (got == 0 || (size_t)got % sizeof instructions[0] != 0) return false;
  struct sock_fprog program = {.len = (unsigned short)((size_t)got / sizeof instructions[0]), .filter = instructions};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}
