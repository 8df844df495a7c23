/*
 * Hides host folders in the folders that a sandbox shares: in a layer by a whiteout in a layer above it, in a bind by
 * an empty folder mounted over it. Each host folder is identified by its path and inode: if one was moved, we do not
 * create the sandbox.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

static int open_below(int parent, const char *name) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  return (int)syscall(CALL_OPENAT2, parent, name, &how, sizeof how);
}

static void require_same(int fd, const char **identity, const char *path) {
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) launch_fail("cover", "%s", path);
  errno = ESTALE;
  if (status.st_dev != plan_bytes(identity[0]) || status.st_ino != plan_bytes(identity[1])) launch_fail("cover", "%s", path);
}

/* Cuts the next part off a path and returns it. */
static const char *next_part(char **rest) {
  char *part;
  do part = strsep(rest, "/");
  while (part != NULL && *part == 0);
  return part;
}

static void copy_path(char out[static PATH_MAX], const char *path) {
  if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX) launch_fail("plan", "a path is too long");
}

/* Makes a folder of the mask look like the one below it: in the overlay, the mask's folder is the visible one. */
static int make_like(int parent, const char *name, int original) {
  struct stat status;
  if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return -1;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(original, &status) != 0) return -1;
  return fchown(fd, status.st_uid, status.st_gid) == 0 && fchmod(fd, status.st_mode & 07777) == 0 ? fd : -1;
}

void mask_below(struct launch *launch, const char **fields) {
  const char *name = fields[0], *of = fields[1], *path = fields[2];
  char layers[64], copy[PATH_MAX];
  snprintf(layers, sizeof layers, "%s/l", launch->stage);
  copy_path(copy, path);
  cleanup_fd int folder = open(layers, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int original = open_below(folder, of);
  int mask = original < 0 ? -1 : make_like(folder, name, original);
  char *rest = copy;
  for (const char *part = next_part(&rest), *following; part != NULL; part = following) {
    following = next_part(&rest);
    int below = original < 0 ? -1 : open_below(original, part);
    if (below < 0 || mask < 0) launch_fail("cover", "%s", path);
    if (following == NULL) {
      require_same(below, fields + 3, path);
      if (mknodat(mask, part, S_IFCHR, makedev(0, 0)) != 0 && errno != EEXIST) launch_fail("cover", "%s", path);
    }
    int next = following == NULL ? -1 : make_like(mask, part, below);
    close(original);
    close(mask);
    original = below;
    mask = next;
  }
  if (original >= 0) close(original);
}

static int clone_onto_itself(int point) {
  int tree = (int)syscall(CALL_OPEN_TREE, point, "", TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH | RECURSIVE);
  if (tree >= 0 && syscall(CALL_MOVE_MOUNT, tree, "", point, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) != 0) return -1;
  return tree;
}

void hold_below(int root, const char **fields) {
  const char *target = fields[0], *path = fields[1];
  char copy[PATH_MAX];
  copy_path(copy, path);
  int parent = open_in_root(root, target, O_PATH | O_DIRECTORY);
  char *rest = copy;
  for (const char *part = next_part(&rest); part != NULL; part = next_part(&rest)) {
    cleanup_fd int point = parent < 0 ? -1 : open_below(parent, part);
    if (point < 0) launch_fail("hold", "%s/%s", target, path);
    close(parent);
    parent = clone_onto_itself(point);
    if (parent < 0) launch_fail("hold", "%s/%s", target, path);
  }
  if (parent >= 0) close(parent);
}

int empty_tree(struct launch *launch) {
  char path[64];
  snprintf(path, sizeof path, "%s/empty", launch->stage);
  return prepared_tree(launch, path, "ro,noexec", "-");
}

void cover_below(int root, int empty, const char **fields) {
  const char *target = fields[0], *path = fields[1];
  char copy[PATH_MAX];
  copy_path(copy, path);
  int parent = open_in_root(root, target, O_PATH | O_DIRECTORY);
  char *rest = copy;
  for (const char *part = next_part(&rest), *following; part != NULL; part = following) {
    following = next_part(&rest);
    cleanup_fd int point = parent < 0 ? -1 : open_below(parent, part);
    if (point < 0) launch_fail("cover", "%s/%s", target, path);
    close(parent);
    /* A mount point cannot be moved or removed: that protects the folders on the way. */
    if (following != NULL) parent = clone_onto_itself(point);
    else require_same(point, fields + 2, path);
    if (following == NULL && syscall(CALL_MOVE_MOUNT, empty, "", point, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) != 0)
      launch_fail("cover", "%s/%s", target, path);
  }
}
