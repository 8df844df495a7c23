/*
 * Stores the processes of a sandbox. Record: `dump GUEST CRIU IMAGES`, the guest's pid, the program and an empty
 * folder. The processes stay stopped, so that the caller can store the files as they are now; process 1 continues them
 * on SIGUSR1. CRIU runs outside the sandbox, as the owner of its user namespace: that id has all rights over the
 * sandbox, and none of root's over files. It enters no namespace of the sandbox.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/parked.h"
#include "base/privilege.h"
#include "launch/launch.h"

enum { EXTERNALS_MAX = 600, FIXED_ARGUMENTS = 40, PARK_WAIT_MS = 5000, LINE_MAX_BYTES = 4096 };

#define OUTPUT_NAME "output"
#define BIT(capability) (UINT64_C(1) << (capability))
static const uint64_t dump_capabilities = BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN) | BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_DAC_READ_SEARCH) |
                                          BIT(CAP_NET_ADMIN) | BIT(CAP_KILL) | BIT(CAP_SETUID) | BIT(CAP_SETGID);

struct arguments {
  char *list[2 * EXTERNALS_MAX + FIXED_ARGUMENTS];
  size_t count;
};

static void add(struct arguments *arguments, const char *text) {
  if (arguments->count + 1 >= sizeof arguments->list / sizeof arguments->list[0]) launch_fail("dump", "too many mounts");
  arguments->list[arguments->count] = strdup(text);
  if (arguments->list[arguments->count++] == NULL) launch_fail("dump", "out of memory");
}

static void add_external(struct arguments *arguments, const char *text) {
  add(arguments, "--external");
  add(arguments, text);
}

/* The kernel writes spaces and line ends in paths as octal numbers. */
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
      *to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
      from += 3;
    } else {
      *to++ = *from;
    }
  }
  *to = 0;
}

/* All mounts are external: the new sandbox has its own. */
static void add_mounts(struct arguments *arguments, pid_t guest) {
  char path[64], line[LINE_MAX_BYTES], external[LINE_MAX_BYTES + 32];
  snprintf(path, sizeof path, "/proc/%d/mountinfo", guest);
  FILE *mounts = fopen(path, "re");
  if (mounts == NULL) launch_fail("dump", "%s", path);
  for (size_t number = 0; fgets(line, sizeof line, mounts); number++) {
    char *rest, *field = strtok_r(line, " ", &rest);
    for (int i = 0; field && i < 4; i++) field = strtok_r(NULL, " ", &rest);
    if (field == NULL) launch_fail("dump", "%s has an unknown format", path);
    unescape(field);
    snprintf(external, sizeof external, "mnt[%s]:m%zu", field, number);
    add_external(arguments, external);
  }
  fclose(mounts);
}

static void add_namespace(struct arguments *arguments, pid_t guest, const char *name) {
  char path[64], external[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/ns/%s", guest, name);
  if (stat(path, &status) != 0) launch_fail("dump", "%s", path);
  snprintf(external, sizeof external, "%s[%lu]:%s", name, (unsigned long)status.st_ino, name);
  add_external(arguments, external);
}

static unsigned long reaper_socket(pid_t guest) {
  char path[64], target[64] = "";
  snprintf(path, sizeof path, "/proc/%d/fd/%d", guest, REAPER_FD);
  unsigned long inode = 0;
  if (readlink(path, target, sizeof target - 1) < 0 || sscanf(target, "socket:[%lu]", &inode) != 1) launch_fail("dump", "%s", path);
  return inode;
}

static bool is_parked(pid_t guest) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/%d/comm", guest);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, name, sizeof name - 1) <= 0) launch_fail("dump", "the guest has ended");
  return strncmp(name, PARKED_NAME "\n", sizeof PARKED_NAME) == 0;
}

static void park(pid_t guest) {
  if (kill(guest, SIGUSR1) != 0) launch_fail("dump", "the guest has ended");
  struct timespec pause = {.tv_nsec = 1000000};
  for (uint64_t end = now_ms() + PARK_WAIT_MS; !is_parked(guest); nanosleep(&pause, NULL)) {
    errno = ETIMEDOUT;
    if (now_ms() > end) launch_fail("dump", "the guest does not answer");
  }
}

/* Becomes an id without root's rights over files, and keeps the capabilities that CRIU needs, across its execution. */
static void become_owner(uid_t uid, gid_t gid) {
  uint64_t keep = dump_capabilities & held_capabilities();
  if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
    launch_fail("dump", "cannot become the owner of the namespace");
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2];
  for (int i = 0; i < 2; i++) {
    uint32_t part = (uint32_t)(keep >> (32 * i));
    data[i] = (struct __user_cap_data_struct){.effective = part, .permitted = part, .inheritable = part};
  }
  if (syscall(SYS_capset, &header, data) != 0) launch_fail("dump", "cannot keep capabilities");
  for (int capability = 0; capability < 64; capability++)
    if (keep & BIT(capability) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
      launch_fail("dump", "cannot keep capabilities");
  die_with_parent();
}

/* Appends the name of a process that a line of CRIU's log refers to. */
static void name_process(const char *line, char *name, size_t room) {
  const char *at = strstr(line, "pid: ");
  int pid = 0;
  char path[64];
  name[0] = 0;
  if (at == NULL || sscanf(at, "pid: %d", &pid) != 1) return;
  snprintf(path, sizeof path, "/proc/%d/comm", pid);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? 0 : read(fd, name, room - 1);
  name[got > 0 ? got : 0] = 0;
  name[strcspn(name, "\n")] = 0;
}

/* Fails with the reasons that CRIU gave, and the process that it could not store. */
__attribute__((noreturn)) static void dump_failed(int folder, int status) {
  char text[1500] = "", line[1024], name[32], last_name[32] = "";
  size_t length = 0;
  int fd = openat(folder, "dump.log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *log = fd < 0 ? NULL : fdopen(fd, "r");
  while (log && fgets(line, sizeof line, log)) {
    char *error = strstr(line, "Error (");
    error = error ? strstr(error, "): ") : NULL;
    if (error == NULL || strstr(line, "rlimit: ") || strstr(line, "Dumping FAILED")) continue;
    error += 3;
    error[strcspn(error, "\n")] = 0;
    name_process(error, name, sizeof name);
    if (name[0]) memcpy(last_name, name, sizeof name);
    int more = snprintf(text + length, sizeof text - length, "%s%s", length ? "; " : "", error);
    if (more < 0 || (size_t)more >= sizeof text - length) break;
    length += (size_t)more;
  }
  errno = 0;
  if (last_name[0]) launch_fail("dump", "%s: %s", last_name, text);
  if (length) launch_fail("dump", "%s", text);
  /* What is wrong with CRIU itself is not in its log. */
  cleanup_fd int output = openat(folder, OUTPUT_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t got = output < 0 ? 0 : read(output, text, sizeof text - 1);
  text[got > 0 ? got : 0] = 0;
  text[strcspn(text, "\n")] = 0;
  launch_fail("dump", "CRIU ended with status %d: %s", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text);
}

static void run_criu(struct launch *launch, struct arguments *arguments, int folder) {
  uid_t uid = outside_uid(launch, 0);
  gid_t gid = outside_gid(launch, 0);
  if (fchown(folder, uid, gid) != 0) launch_fail("dump", "cannot give the folder to the namespace's owner");
  pid_t child = fork();
  if (child < 0) launch_fail("dump", "cannot fork");
  if (child == 0) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int output = openat(folder, OUTPUT_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (nothing < 0 || output < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || dup2(folder, 3) < 0 || fcntl(3, F_SETFD, 0) < 0) _exit(125);
    close_range(4, ~0U, 0);
    become_owner(uid, gid);
    char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    execve(arguments->list[0], arguments->list, environment);
    _exit(127);
  }
  int status = wait_for(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) dump_failed(folder, status);
}

/* Nothing of the images may remain with an id that another sandbox gets later. */
static void take_ownership(int folder) {
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy < 0 ? NULL : fdopendir(copy);
  if (entries == NULL) launch_fail("dump", "cannot read the images");
  struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    if (strcmp(entry->d_name, "..") == 0) continue;
    bool self = strcmp(entry->d_name, ".") == 0;
    if (fchownat(folder, entry->d_name, 0, 0, AT_SYMLINK_NOFOLLOW) != 0 || fchmodat(folder, entry->d_name, self ? 0755 : 0644, 0) != 0)
      launch_fail("dump", "cannot take over the images");
  }
  closedir(entries);
}

/* Archives a folder in memory, with the sandbox's ids. */
static void pack(pid_t guest, int folder, const char *archive, const char *source) {
  cleanup_fd int to = openat(folder, archive, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (to < 0) launch_fail("dump", "%s", archive);
  pid_t child = fork();
  if (child < 0) launch_fail("dump", "cannot fork");
  if (child == 0) {
    char from[64];
    snprintf(from, sizeof from, "/proc/%d/root/%s", guest, source);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(to, 1) < 0 || dup2(nothing, 2) < 0) _exit(125);
    enter_ids(guest);
    execlp("tar", "tar", "--create", "--numeric-owner", "--directory", from, ".", NULL);
    _exit(127);
  }
  int status = wait_for(child);
  errno = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) launch_fail("dump", "tar could not pack /%s", source);
}

int dump_memory(struct launch *launch, const struct plan *plan) {
  const char **fields = NULL;
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "dump") == 0) fields = plan->records[i].fields;
  if (fields == NULL) launch_fail("plan", "nothing to dump");
  pid_t guest = (pid_t)plan_number(fields[0]);
  cleanup_fd int folder = open(fields[2], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) launch_fail("dump", "%s", fields[2]);
  park(guest);
  static struct arguments arguments;
  char text[64];
  const char *fixed[] = {fields[1], "--no-default-config", "dump", "--unprivileged", "--images-dir", "/proc/self/fd/3", "--log-file", "dump.log",
                         "--leave-stopped", "--tcp-close", "--ext-unix-sk", "--link-remap", "--shell-job", "--file-locks",
                         "--manage-cgroups=ignore", "--network-lock", "skip", "--ghost-limit", "256M", "--force-irmap", "--irmap-scan-path", "/workspace", "--irmap-scan-path", "/home/user", "--tree"};
  for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) add(&arguments, fixed[i]);
  snprintf(text, sizeof text, "%d", guest);
  add(&arguments, text);
  add_mounts(&arguments, guest);
  add_namespace(&arguments, guest, "pid");
  add_namespace(&arguments, guest, "net");
  unsigned long inode = reaper_socket(guest);
  snprintf(text, sizeof text, "unix[%lu]", inode);
  add_external(&arguments, text);
  run_criu(launch, &arguments, folder);
  store_clocks(guest, folder);
  pack(guest, folder, "tmp.tar", "tmp");
  pack(guest, folder, "shm.tar", "dev/shm");
  take_ownership(folder);
  dprintf(STDOUT_FILENO, "socket %lu\n", inode);
  return 0;
}
