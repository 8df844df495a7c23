/*
 * `volume IMAGE STATE FOLDER…`: mounts a btrfs image for the host, and its folders over those of the state folder. The
 * caller's mount namespace is used: unlike a sandbox's mounts, these stay. Once the first is mounted, so are all.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static void join(char out[static PATH_MAX], const char *folder, const char *name) {
  if (snprintf(out, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX) launch_fail("plan", "a path is too long");
}

static bool is_mounted(const char *path) {
  struct statfs status;
  return statfs(path, &status) == 0 && status.f_type == BTRFS_SUPER_MAGIC;
}

static void make_folder(const char *path) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) launch_fail("volume", "%s", path);
}

int mount_volume(const struct plan *plan) {
  const char *image = NULL, *state = NULL;
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "volume") == 0) image = plan->records[i].fields[0], state = plan->records[i].fields[1];
  if (image == NULL) launch_fail("plan", "no volume");
  char path[PATH_MAX], inside[PATH_MAX], top[PATH_MAX];
  join(path, state, "volume.lock");
  /* Others that open the state folder at the same moment wait. */
  cleanup_fd int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) launch_fail("volume", "%s", path);
  join(top, state, "volume");
  make_folder(top);
  if (!is_mounted(top)) mount_image(image, top, "btrfs");
  for (size_t i = 0; i < plan->count; i++) {
    if (strcmp(plan->records[i].verb, "argument") != 0) continue;
    join(path, state, plan->records[i].fields[0]);
    join(inside, top, plan->records[i].fields[0]);
    make_folder(path);
    make_folder(inside);
    if (!is_mounted(path) && mount(inside, path, NULL, MS_BIND, NULL) != 0) launch_fail("volume", "%s", path);
  }
  return 0;
}
