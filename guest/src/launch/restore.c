/*
 * Restores processes from a memory image into a new sandbox. Records: `restore IMAGES TOOL SOCKET`, where TOOL is a
 * folder with `criu`, its libraries and their loader `ld.so`, and SOCKET is the inode of the guest's socket to process
 * 1 when the image was taken. CRIU runs inside all of the sandbox's namespaces, because it interprets what the
 * processes of another sandbox made it store.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launch/launch.h"

#define WORK_NAME "restore"

enum { ENTERED_COUNT = 7, CRIU_PID_FIRST = 300, ERROR_TEXT_MAX = 1500 };

static int open_below(pid_t pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) launch_fail("restore", "%s", path);
  return fd;
}

/* CRIU itself has a pid in the sandbox, which none of the restored processes may need. */
static pid_t unused_pid(int images) {
  for (pid_t pid = CRIU_PID_FIRST;; pid++) {
    char name[32];
    snprintf(name, sizeof name, "core-%d.img", pid);
    if (faccessat(images, name, F_OK, 0) != 0) return pid;
  }
}

static pid_t fork_with_pid(pid_t wanted) {
  struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted, .set_tid_size = 1};
  return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

static void enter_all(pid_t process) {
  static const char *const names[ENTERED_COUNT] = {"ns/cgroup", "ns/ipc", "ns/uts", "ns/net", "ns/pid", "ns/mnt", "ns/user"};
  int fds[ENTERED_COUNT];
  for (size_t i = 0; i < ENTERED_COUNT; i++) fds[i] = open_below(process, names[i]);
  for (size_t i = 0; i < ENTERED_COUNT; i++) {
    if (setns(fds[i], 0) != 0) launch_fail("restore", "cannot enter %s", names[i]);
    close(fds[i]);
  }
  if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) launch_fail("restore", "cannot become root inside");
}

static int at_least(int fd, int lowest) {
  int high = fcntl(fd, F_DUPFD, lowest);
  if (high < 0) launch_fail("restore", "cannot duplicate a descriptor");
  return high;
}

__attribute__((noreturn)) static void exec_criu(int tool, int images, int work, int socket, const char *inode, const int *namespaces) {
  char loader[64], criu[64], libraries[64], image_dir[64], work_dir[64], inherited[96], pid_namespace[32], network[32];
  snprintf(libraries, sizeof libraries, "/proc/self/fd/%d", tool);
  snprintf(criu, sizeof criu, "/proc/self/fd/%d/criu", tool);
  snprintf(loader, sizeof loader, "/proc/self/fd/%d/ld.so", tool);
  snprintf(image_dir, sizeof image_dir, "/proc/self/fd/%d", images);
  snprintf(work_dir, sizeof work_dir, "/proc/self/fd/%d", work);
  snprintf(inherited, sizeof inherited, "fd[%d]:socket:[%s]", socket, inode);
  snprintf(pid_namespace, sizeof pid_namespace, "fd[%d]:pid", namespaces[0]);
  snprintf(network, sizeof network, "fd[%d]:net", namespaces[1]);
  char *argv[] = {loader, "--inhibit-cache", "--library-path", libraries, criu, "--no-default-config", "restore", "--unprivileged", "--restore-detached", "--images-dir", image_dir,
                  "--work-dir", work_dir, "--log-file", "restore.log", "--shell-job", "--tcp-close", "--ext-unix-sk", "--link-remap", "--manage-cgroups=ignore",
                  "--file-locks", "--libdir", work_dir, "--inherit-fd", inherited, "--inherit-fd", pid_namespace, "--inherit-fd", network, NULL};
  char *environment[] = {"PATH=/nonexistent", NULL};
  execve(loader, argv, environment);
  launch_fail("restore", "cannot start CRIU");
}

/* Fails with the errors in CRIU's log. */
__attribute__((noreturn)) static void criu_failed(int work, int status) {
  char text[ERROR_TEXT_MAX] = "";
  size_t length = 0;
  int fd = openat(work, "restore.log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *log = fd < 0 ? NULL : fdopen(fd, "r");
  char line[512];
  while (log && fgets(line, sizeof line, log)) {
    char *error = strstr(line, "Error ");
    if (error == NULL) continue;
    error[strcspn(error, "\n")] = 0;
    int more = snprintf(text + length, sizeof text - length, "%s; ", error);
    if (more < 0 || (size_t)more >= sizeof text - length) break;
    length += (size_t)more;
  }
  errno = 0;
  launch_fail("restore", "status %d: %s", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text);
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

void enter_ids(pid_t process) {
  cleanup_fd int namespace = open_below(process, "ns/user");
  if (setns(namespace, CLONE_NEWUSER) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) launch_fail("namespace", "cannot enter ns/user");
  die_with_parent();
}

/*
 * Fills a folder in memory with what it had. `tar` runs with the sandbox's ids, and nothing runs in the sandbox yet
 * that could change the folder.
 */
static void unpack(pid_t reaper, int images, const char *archive, const char *folder) {
  cleanup_fd int from = openat(images, archive, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (from < 0) launch_fail("restore", "%s", archive);
  pid_t child = fork();
  if (child < 0) launch_fail("restore", "cannot fork");
  if (child == 0) {
    if (dup2(from, 0) < 0) launch_fail("restore", "%s", archive);
    enter_ids(reaper);
    char target[64];
    snprintf(target, sizeof target, "/proc/%d/root/%s", reaper, folder);
    execlp("tar", "tar", "--extract", "--preserve-permissions", "--numeric-owner", "--directory", target, NULL);
    launch_fail("restore", "cannot start tar");
  }
  int status = wait_for(child);
  errno = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) launch_fail("restore", "tar could not unpack /%s", folder);
}

static pid_t only_child(pid_t parent) {
  char path[64], text[32] = "";
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) launch_fail("restore", "the restored guest has ended");
  return (pid_t)strtol(text, NULL, 10);
}

/* For CRIU's log, in the sandbox's folder. */
static int work_folder(struct launch *launch) {
  int fd = remove_tree(WORK_NAME) == 0 && mkdir(WORK_NAME, 0700) == 0 ? open(WORK_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (fd < 0 || fchown(fd, outside_uid(launch, 0), outside_gid(launch, 0)) != 0) launch_fail("restore", "%s", WORK_NAME);
  return fd;
}

pid_t restore_memory(struct launch *launch, const struct plan_record *record, pid_t reaper, int socket, const int *work_cgroups, size_t work_count) {
  const char **fields = record->fields;
  cleanup_fd int images = clone_tree(fields[0], false, "restore");
  cleanup_fd int tool = clone_tree(fields[1], false, "restore");
  cleanup_fd int work = work_folder(launch);
  unpack(reaper, images, "tmp.tar", "tmp");
  unpack(reaper, images, "shm.tar", "dev/shm");
  pid_t entering = fork();
  if (entering < 0) launch_fail("restore", "cannot fork");
  if (entering == 0) {
    die_with_parent();
    for (size_t i = 0; i < work_count; i++)
      if (write(work_cgroups[i], "0", 1) < 0) launch_fail("cgroup", "cannot join a work cgroup");
    int fds[] = {at_least(tool, 100), at_least(images, 100), at_least(work, 100), at_least(socket, 100)};
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0) launch_fail("restore", "/dev/null");
    int namespaces[] = {at_least(open_below(reaper, "ns/pid"), 100), at_least(open_below(reaper, "ns/net"), 100)};
    pid_t own = unused_pid(images);
    int offsets = open_offsets();
    enter_all(reaper);
    continue_clocks(images, offsets);
    pid_t criu = fork_with_pid(own);
    if (criu < 0) launch_fail("restore", "cannot fork inside");
    if (criu == 0) {
      die_with_parent();
      for (int fd = 0; fd < 3; fd++) dup2(nothing, fd);
      close_range(3, 99, 0);
      if (setsid() < 0) _exit(125);
      exec_criu(fds[0], fds[1], fds[2], fds[3], fields[2], namespaces);
    }
    int status = wait_for(criu);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) criu_failed(work, status);
    _exit(0);
  }
  int status = wait_for(entering);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) _exit(125);
  if (remove_tree(WORK_NAME) != 0) launch_fail("restore", "%s", WORK_NAME);
  return only_child(reaper);
}
