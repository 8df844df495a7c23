/* Builds the parts of a sandbox's root that the records of its plan request. */
#include "launch/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void add_overlay(struct launch *launch, const char **fields) {
  char root[64];
  snprintf(root, sizeof root, "%s/bundle/rootfs", launch->stage);
  if (strcmp(fields[3], "/") == 0) {
    mount_overlay(launch, fields, root);
    return;
  }
  cleanup_fd int tree = overlay_tree(launch, fields);
  attach_at(launch, tree, root, fields[3], false);
}

/*
 * `home LAYERS UPPER WORK TARGET`: mounts an overlay over the root's existing folder at the target. That folder becomes
 * the lowest layer. Its lookup never leaves the root, wherever links lead.
 */
static void add_home(struct launch *launch, const char **fields) {
  char root[64], point[64], layers[4096];
  snprintf(root, sizeof root, "%s/bundle/rootfs", launch->stage);
  snprintf(point, sizeof point, "%s/l/home", launch->stage);
  cleanup_fd int base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  cleanup_fd int below = base < 0 ? -1 : open_in_root(base, fields[3], O_PATH | O_DIRECTORY);
  if (below < 0) launch_fail("target", "%s", fields[3]);
  cleanup_fd int lower = (int)syscall(CALL_OPEN_TREE, below, "", TREE_CLONE | O_CLOEXEC | AT_EMPTY_PATH);
  if (lower < 0) launch_fail("overlay", "%s", fields[3]);
  if (mkdir(point, 0755) != 0) launch_fail("stage", "%s", point);
  attach_at(launch, lower, "/", point, false);
  const char *separator = fields[0][0] == 0 ? "" : ":";
  if (snprintf(layers, sizeof layers, "%s%shome", fields[0], separator) >= (int)sizeof layers) launch_fail("plan", "too many layers");
  const char *overlay[] = {layers, fields[1], fields[2], fields[3]};
  cleanup_fd int tree = overlay_tree(launch, overlay);
  attach_at(launch, tree, root, fields[3], false);
}

static void add_bind(struct launch *launch, const char **fields) {
  char root[64];
  snprintf(root, sizeof root, "%s/bundle/rootfs", launch->stage);
  cleanup_fd int tree = prepared_tree(launch, fields[0], fields[2], fields[3]);
  attach_at(launch, tree, root, fields[1], has_option(fields[2], "file"));
}

static void add_cover(struct launch *launch, const char **fields) {
  char path[64];
  snprintf(path, sizeof path, "%s/bundle/rootfs", launch->stage);
  cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  cleanup_fd int empty = empty_tree(launch);
  cover_below(root, empty, fields);
}

static void add_hold(struct launch *launch, const char **fields) {
  char path[64];
  snprintf(path, sizeof path, "%s/bundle/rootfs", launch->stage);
  cleanup_fd int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  hold_below(root, fields);
}

static void add_disk(struct launch *launch, const struct plan_record *record) {
  char target[64], options[128];
  snprintf(target, sizeof target, "%s/disk", launch->stage);
  if (strcmp(record->verb, "disk-keep") == 0) {
    if (remove_others(target, record->fields[0]) != 0) launch_fail("disk", "cannot remove what an earlier sandbox left");
    return;
  }
  if (strcmp(record->verb, "disk-image") == 0) {
    mount_image(record->fields[0], target, "ext4");
    return;
  }
  if (strcmp(record->verb, "disk-live") == 0) {
    mount_live(launch, record->fields[0]);
    return;
  }
  if (strcmp(record->verb, "disk-hide") == 0) {
    hide_disk(launch);
    return;
  }
  /* Opened before: it needs no mount. */
  if (strcmp(record->verb, "disk-inside") == 0) return;
  if (snprintf(options, sizeof options, "mode=755,%s", record->fields[0]) >= (int)sizeof options) launch_fail("plan", "a disk size is too long");
  if (mount("caisson-disk", target, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0) launch_fail("disk", "%s", options);
}

/* Mounts of the host cannot be unmounted in a user namespace, only covered. A missing path needs neither. */
static void hide(const char *path) {
  if (umount2(path, MNT_DETACH) != 0) mount("caisson", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k");
}

void build_part(struct launch *launch, const struct plan_record *record) {
  const char **fields = record->fields;
  if (strcmp(record->verb, "mkdir") == 0) make_owned_folder(launch, fields);
  else if (strncmp(record->verb, "disk-", 5) == 0) add_disk(launch, record);
  else if (strcmp(record->verb, "layer") == 0) add_layer(launch, fields);
  else if (strcmp(record->verb, "overlay") == 0) add_overlay(launch, fields);
  else if (strcmp(record->verb, "home") == 0) add_home(launch, fields);
  else if (strcmp(record->verb, "bind") == 0) add_bind(launch, fields);
  else if (strcmp(record->verb, "mask") == 0) mask_below(launch, fields);
  else if (strcmp(record->verb, "cover") == 0) add_cover(launch, fields);
  else if (strcmp(record->verb, "hold") == 0) add_hold(launch, fields);
  else if (strcmp(record->verb, "hide") == 0) hide(fields[0]);
  else if (strcmp(record->verb, "read-only") == 0) make_read_only(fields[0]);
}
