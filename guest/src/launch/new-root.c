/*
 * Gives a sandbox that waited the root of its user: builds it as for a new sandbox, moves the mounts of the OCI runtime
 * into it, and lets the kernel change the root of every process inside. The old root disappears.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* What the OCI runtime mounted, with everything below it; see bundle.ts. */
static const char *const runtime_mounts[] = {"/proc", "/dev", "/sys", "/tmp"};
enum { RUNTIME_MOUNTS = sizeof runtime_mounts / sizeof runtime_mounts[0], PROCESSES_MAX = 256 };

static void build_root(struct launch *launch, const struct plan *plan) {
  char path[64];
  for (size_t i = 0; i < plan->count; i++) build_part(launch, &plan->records[i]);
  snprintf(path, sizeof path, "%s/bundle/rootfs", launch->stage);
  cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) launch_fail("target", "%s", path);
  for (size_t i = 0; i < RUNTIME_MOUNTS; i++) close(open_target(launch, root, runtime_mounts[i], false));
}

/*
 * Copies the mounts from a namespace that belongs to the sandbox's user namespace: nothing inside can remove a part of
 * the copy.
 */
static int locked_root(struct launch *launch) {
  char path[64];
  if (!launch->rootless) {
    enter_user_namespace(launch);
    if (unshare(CLONE_NEWNS) != 0) launch_fail("mount", "cannot create the sandbox's mount namespace");
  }
  snprintf(path, sizeof path, "%s/bundle/rootfs", launch->stage);
  return clone_tree(path, true, "mount");
}

static void move_runtime_mounts(int root) {
  for (size_t i = 0; i < RUNTIME_MOUNTS; i++) {
    const char *name = runtime_mounts[i];
    cleanup_fd int from = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_fd int to = open_in_root(root, name, O_PATH | O_DIRECTORY);
    if (from < 0 || to < 0 || syscall(CALL_MOVE_MOUNT, from, "", to, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) != 0) launch_fail("mount", "%s", name);
  }
}

/* Opens what a path shows inside. Returns -1 for a missing path, which needs no protection. */
static int open_protected(int root, const char *path) {
  int fd = open_in_root(root, path, O_PATH);
  if (fd < 0 && errno != ENOENT && errno != ENOTDIR) launch_fail("mount", "%s", path);
  return fd;
}

static void mask_path(int root, int empty, const char *path) {
  struct stat status;
  cleanup_fd int point = open_protected(root, path);
  if (point < 0) return;
  if (fstat(point, &status) != 0) launch_fail("mount", "%s", path);
  cleanup_fd int null = S_ISDIR(status.st_mode) ? -1 : open_in_root(root, "/dev/null", O_PATH);
  cleanup_fd int file = null < 0 ? -1 : (int)syscall(CALL_OPEN_TREE, null, "", TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH);
  int cover = S_ISDIR(status.st_mode) ? empty : file;
  if (syscall(CALL_MOVE_MOUNT, cover, "", point, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) != 0) launch_fail("mount", "%s", path);
}

static void freeze_path(int root, const char *path) {
  cleanup_fd int point = open_protected(root, path);
  if (point < 0) return;
  cleanup_fd int tree = (int)syscall(CALL_OPEN_TREE, point, "", TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | RECURSIVE);
  if (tree < 0) launch_fail("mount", "%s", path);
  make_tree_read_only(tree, path);
  if (syscall(CALL_MOVE_MOUNT, tree, "", point, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) != 0) launch_fail("mount", "%s", path);
}

/* The same order as the OCI runtime's: what is hidden stays hidden below a read-only path. */
static void protect_paths(const struct plan *plan, int root, const int *empty) {
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "freeze-path") == 0) freeze_path(root, plan->records[i].fields[0]);
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "mask-path") == 0) mask_path(root, empty[i], plan->records[i].fields[0]);
}

/*
 * The kernel gives the new root to every process whose root is the old one, this one included. The old one's last
 * reference is ours: giving it up takes the kernel a while, so that waits for our end.
 */
static void change_root(int root) {
  int old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (old < 0 || fchdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) launch_fail("mount", "cannot change the root");
  if (fchdir(old) != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) launch_fail("mount", "cannot remove the old root");
}

/*
 * A process that was being forked while the root changed may have kept the old one. The guest starts its processes
 * before the sandbox waits, so this practically never happens; then the sandbox cannot be used.
 */
static void check_roots(int proc, const char *guest, const struct stat *root) {
  char queue[PROCESSES_MAX][16], path[64], text[4096];
  size_t count = 1;
  snprintf(queue[0], sizeof queue[0], "%s", guest);
  for (size_t at = 0; at < count; at++) {
    struct stat seen;
    snprintf(path, sizeof path, "%.15s/root/.", queue[at]);
    if (fstatat(proc, path, &seen, 0) != 0) {
      if (errno == ENOENT || errno == ESRCH) continue;
      launch_fail("root", "cannot look at process %s", queue[at]);
    }
    errno = EBUSY;
    if (seen.st_dev != root->st_dev || seen.st_ino != root->st_ino) launch_fail("root", "process %s has another root", queue[at]);
    snprintf(path, sizeof path, "%.15s/task/%.15s/children", queue[at], queue[at]);
    cleanup_fd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read_full(fd, text, sizeof text - 1);
    if (got <= 0) continue;
    text[got] = 0;
    char *rest = text;
    for (char *pid = strsep(&rest, " "); pid != NULL; pid = strsep(&rest, " ")) {
      if (*pid == 0) continue;
      errno = E2BIG;
      if (count == PROCESSES_MAX || snprintf(queue[count++], sizeof queue[0], "%s", pid) >= (int)sizeof queue[0]) launch_fail("root", "too many processes");
    }
  }
}

int give_new_root(struct launch *launch, const struct plan *plan) {
  const char *guest = NULL;
  int mounts = open_sandbox(launch, plan, &guest);
  cleanup_fd int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (launch->rootless) enter_user_namespace(launch);
  private_mounts();
  mount_stage(launch, plan);
  build_root(launch, plan);
  cleanup_free int *empty = empty_trees(launch, plan, "mask-path");
  cleanup_fd int root = locked_root(launch);
  if (setns(mounts, CLONE_NEWNS) != 0) launch_fail("attach", "cannot enter the sandbox's mount namespace");
  attach_at(launch, root, "/", "/", false);
  move_runtime_mounts(root);
  protect_paths(plan, root, empty);
  change_root(root);
  struct stat status;
  if (fstat(root, &status) != 0) launch_fail("root", "cannot look at the new root");
  check_roots(proc, guest, &status);
  dprintf(STDOUT_FILENO, "attached\n");
  return 0;
}
