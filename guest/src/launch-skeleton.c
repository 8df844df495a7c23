/* A folder with the few files a template adds: owned by the sandbox's root, which the caller may not be. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *relative(const char *path) {
  while (*path == '/') path++;
  return *path ? path : ".";
}

static void own(struct launch *launch, int root, const char *path, const char *uid, const char *gid) {
  if (fchownat(root, path, outside_uid(launch, plan_number(uid)), outside_gid(launch, plan_number(gid)), AT_SYMLINK_NOFOLLOW) != 0)
    launch_fail("skeleton", "%s", path);
}

static void make_one(struct launch *launch, int root, const struct plan_record *record) {
  const char **fields = record->fields;
  if (strcmp(record->verb, "make-folder") == 0) {
    const char *path = relative(fields[0]);
    if (mkdirat(root, path, 0755) != 0 && errno != EEXIST) launch_fail("skeleton", "%s", path);
    own(launch, root, path, fields[2], fields[3]);
    if (fchmodat(root, path, (mode_t)strtoul(fields[1], NULL, 8), 0) != 0) launch_fail("skeleton", "%s", path);
  } else if (strcmp(record->verb, "make-file") == 0) {
    const char *path = relative(fields[0]);
    cleanup_fd int fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || !write_full(fd, fields[4], strlen(fields[4]))) launch_fail("skeleton", "%s", path);
    own(launch, root, path, fields[2], fields[3]);
    if (fchmod(fd, (mode_t)strtoul(fields[1], NULL, 8)) != 0) launch_fail("skeleton", "%s", path);
  } else if (strcmp(record->verb, "make-link") == 0) {
    if (symlinkat(fields[1], root, relative(fields[0])) != 0) launch_fail("skeleton", "%s", fields[0]);
    own(launch, root, relative(fields[0]), "0", "0");
  }
}

void make_skeleton(struct launch *launch, const struct plan *plan) {
  cleanup_fd int root = -1;
  umask(0);
  for (size_t i = 0; i < plan->count; i++) {
    const struct plan_record *record = &plan->records[i];
    if (strcmp(record->verb, "skeleton") == 0) {
      root = open(record->fields[0], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (root < 0) launch_fail("skeleton", "%s", record->fields[0]);
    } else if (root >= 0) {
      make_one(launch, root, record);
    }
  }
}
