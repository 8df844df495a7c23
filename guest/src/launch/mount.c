/* Mounts, all in a private mount namespace: none is visible on the host, and all disappear with the sandbox. */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { ATTR_RDONLY = 0x1, ATTR_NOSUID = 0x2, ATTR_NODEV = 0x4, ATTR_NOEXEC = 0x8, ATTR_IDMAP = 0x100000 };
struct mount_attributes {
  uint64_t set, clear, propagation, userns_fd;
};

bool has_option(const char *options, const char *name) {
  size_t length = strlen(name);
  for (const char *at = options; at != NULL && *at != 0; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
    if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
  return false;
}

void private_mounts(void) {
  if (unshare(CLONE_NEWNS) != 0) launch_fail("mount", "cannot create a mount namespace");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) launch_fail("mount", "cannot make the mounts private");
}

int clone_tree(const char *path, bool recursive, const char *step) {
  unsigned flags = TREE_CLONE | O_CLOEXEC | AT_SYMLINK_NOFOLLOW | (recursive ? RECURSIVE : 0);
  int fd = (int)syscall(CALL_OPEN_TREE, AT_FDCWD, path, flags);
  if (fd < 0) launch_fail(step, "%s", path);
  return fd;
}

static void set_attributes(int tree, uint64_t set, int userns_fd, const char *what) {
  struct mount_attributes attributes = {.set = set};
  if (userns_fd >= 0) {
    attributes.set |= ATTR_IDMAP;
    attributes.userns_fd = (uint64_t)userns_fd;
  }
  if (syscall(CALL_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH | RECURSIVE, &attributes, sizeof attributes) != 0)
    launch_fail(userns_fd >= 0 ? "idmap" : "mount", "%s", what);
}

void make_tree_read_only(int tree, const char *what) {
  set_attributes(tree, ATTR_RDONLY, -1, what);
}

void make_read_only(const char *path) {
  struct mount_attributes attributes = {.set = ATTR_RDONLY};
  if (syscall(CALL_MOUNT_SETATTR, AT_FDCWD, path, RECURSIVE, &attributes, sizeof attributes) != 0 && errno != ENOENT && errno != EINVAL)
    launch_fail("mount", "cannot make %s read-only", path);
}

int prepared_tree(struct launch *launch, const char *source, const char *options, const char *map) {
  int tree = clone_tree(source, has_option(options, "rec"), "source");
  uint64_t set = 0;
  if (has_option(options, "ro")) set |= ATTR_RDONLY;
  if (has_option(options, "noexec")) set |= ATTR_NOEXEC;
  if (!has_option(options, "suid")) set |= ATTR_NOSUID;
  if (!has_option(options, "dev")) set |= ATTR_NODEV;
  bool mapped = strcmp(map, "-") != 0 && !launch->rootless;
  set_attributes(tree, set, mapped ? user_namespace(launch, map_named(launch, map)) : -1, source);
  return tree;
}

int open_in_root(int root, const char *path, uint64_t flags) {
  struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  return (int)syscall(CALL_OPENAT2, root, path, &how, sizeof how);
}

int open_target(struct launch *launch, int root, const char *target, bool file) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s", target) >= (int)sizeof path) launch_fail("plan", "the path of a mount point is too long");
  int found = open_in_root(root, path, O_PATH);
  if (found >= 0) return found;
  uid_t uid = outside_uid(launch, 0);
  gid_t gid = outside_gid(launch, 0);
  for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
    if (slash != NULL) *slash = 0;
    cleanup_fd int have = open_in_root(root, path, O_PATH);
    if (have < 0) {
      char *name = strrchr(path, '/');
      *name = 0;
      cleanup_fd int parent = open_in_root(root, path[0] ? path : "/", O_PATH | O_DIRECTORY);
      *name = '/';
      if (parent < 0) launch_fail("target", "%s", target);
      bool made;
      if (slash == NULL && file) {
        cleanup_fd int fresh = openat(parent, name + 1, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
        made = fresh >= 0;
      } else {
        made = mkdirat(parent, name + 1, 0755) == 0;
      }
      if (!made || fchownat(parent, name + 1, uid, gid, AT_SYMLINK_NOFOLLOW) != 0) launch_fail("target", "%s", target);
    }
    if (slash == NULL) break;
    *slash = '/';
  }
  found = open_in_root(root, path, O_PATH);
  if (found < 0) launch_fail("target", "%s", target);
  return found;
}

void attach_at(struct launch *launch, int tree, const char *root, const char *target, bool file) {
  cleanup_fd int base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base < 0) launch_fail("target", "%s", root);
  cleanup_fd int point = open_target(launch, base, target, file);
  if (syscall(CALL_MOVE_MOUNT, tree, "", point, "", MOVE_FROM_EMPTY | MOVE_TO_EMPTY) != 0) launch_fail("mount", "%s", target);
}

void place(const struct launch *launch, const char *path, char out[static PATH_MAX]) {
  bool on_stage = strncmp(path, "disk/", 5) == 0 || strncmp(path, "l/", 2) == 0, live = strncmp(path, "live/", 5) == 0;
  const char *before = on_stage ? launch->stage : live ? launch->live : "";
  const char *rest = live ? path + 5 : path;
  if (snprintf(out, PATH_MAX, "%s%s%s", before, on_stage || live ? "/" : "", rest) >= PATH_MAX) launch_fail("plan", "a path is too long");
}

void make_owned_folder(struct launch *launch, const char **fields) {
  char path[PATH_MAX];
  place(launch, fields[0], path);
  if (mkdir(path, 0700) != 0 && errno != EEXIST) launch_fail("folder", "%s", path);
  mode_t mode = (mode_t)strtoul(fields[1], NULL, 8);
  if (chown(path, outside_uid(launch, plan_number(fields[2])), outside_gid(launch, plan_number(fields[3]))) != 0 || chmod(path, mode) != 0)
    launch_fail("folder", "%s", path);
}

void add_layer(struct launch *launch, const char **fields) {
  char point[64], source[PATH_MAX];
  place(launch, fields[1], source);
  cleanup_fd int tree = prepared_tree(launch, source, fields[2], fields[3]);
  if (snprintf(point, sizeof point, "%s/l/%s", launch->stage, fields[0]) >= (int)sizeof point) launch_fail("plan", "a layer name is too long");
  if (mkdir(point, 0755) != 0) launch_fail("stage", "%s", point);
  attach_at(launch, tree, "/", point, false);
}

void mount_overlay(struct launch *launch, const char **fields, const char *target) {
  char upper[PATH_MAX], work[PATH_MAX], options[4096];
  place(launch, fields[1], upper);
  place(launch, fields[2], work);
  int length = snprintf(options, sizeof options, "%s,lowerdir=", launch->rootless ? "userxattr" : "redirect_dir=on");
  const char *separator = "";
  for (const char *at = fields[0]; at != NULL && *at != 0 && length < (int)sizeof options; separator = ":") {
    int name = (int)strcspn(at, ":");
    length += snprintf(options + length, sizeof options - (size_t)length, "%s%s/l/%.*s", separator, launch->stage, name, at);
    at = at[name] ? at + name + 1 : NULL;
  }
  if (length < (int)sizeof options)
    length += snprintf(options + length, sizeof options - (size_t)length, ",upperdir=%s,workdir=%s", upper, work);
  errno = E2BIG;
  if (length >= (int)sizeof options) launch_fail("overlay", "too many layers");
  if (mount("caisson", target, "overlay", MS_NOSUID | MS_NODEV, options) != 0) launch_fail("overlay", "%s (%s)", target, options);
}

int overlay_tree(struct launch *launch, const char **fields) {
  char point[64];
  snprintf(point, sizeof point, "%s/overlay", launch->stage);
  if (mkdir(point, 0755) != 0 && errno != EEXIST) launch_fail("stage", "%s", point);
  mount_overlay(launch, fields, point);
  int tree = clone_tree(point, false, "overlay");
  if (umount2(point, MNT_DETACH) != 0) launch_fail("overlay", "%s", point);
  return tree;
}

static bool is_below(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/*
 * Whether the plan needs anything in the folder, which the stage would hide: a workspace, the state folder, the guest
 * itself.
 */
static bool is_needed(const struct plan *plan, const char *folder) {
  for (size_t i = 0; i < plan->count; i++)
    for (const char **field = plan->records[i].fields; *field != NULL; field++)
      if (is_below(*field, folder)) return true;
  return false;
}

/* Any existing folder will do in which the plan needs nothing: its content is hidden only from the OCI runtime. */
static const char *stage_folder(const struct plan *plan) {
  static const char *const candidates[] = {"/mnt", "/media", "/srv", "/boot", "/opt", "/run"};
  struct stat status;
  for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++)
    if (stat(candidates[i], &status) == 0 && S_ISDIR(status.st_mode) && !is_needed(plan, candidates[i])) return candidates[i];
  launch_fail("stage", "each of /mnt, /media, /srv, /boot, /opt and /run is missing or in use");
}

void mount_stage(struct launch *launch, const struct plan *plan) {
  launch->stage = stage_folder(plan);
  if (mount("caisson", launch->stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=8m") != 0) launch_fail("stage", "%s", launch->stage);
  static const char *const folders[] = {"l", "bundle", "bundle/rootfs", "state", "disk", "live", "empty"};
  char path[64];
  for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", launch->stage, folders[i]);
    if (mkdir(path, 0755) != 0) launch_fail("stage", "%s", path);
  }
  /* The OCI runtime keeps its state here; as root it runs as the sandbox's own root, not as the host's. */
  static const char *const owned[] = {"", "bundle", "state"};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", launch->stage, owned[i]);
    if (chown(path, outside_uid(launch, 0), outside_gid(launch, 0)) != 0) launch_fail("stage", "%s", path);
  }
}
