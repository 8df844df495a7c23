/* Copies entries of a layer with everything that the overlay shows of them. */
#include "launch/layers.h"

#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

struct linked_file {
  uint64_t inode;
  char *path;
};

/*
 * A file that a program writes through a mapping gets a new change time only with the first write after its pages were
 * written back. Small files are seldom mapped for writing.
 */
enum { MAPPED_BYTES_MIN = 64 * 1024, ATTRIBUTES_MAX = 64 * 1024 };

static const char trusted_prefix[] = "trusted.overlay.", user_prefix[] = "user.overlay.";

bool is_whiteout(const struct stat *status) { return S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0); }

bool is_opaque(int folder, bool rootless) {
  char value = 0;
  return fgetxattr(folder, rootless ? "user.overlay.opaque" : "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
}

bool is_moved(int folder) { return fgetxattr(folder, "trusted.overlay.redirect", NULL, 0) > 0; }

void set_opaque(int folder, bool rootless) {
  if (fsetxattr(folder, rootless ? "user.overlay.opaque" : "trusted.overlay.opaque", "y", 1, 0) != 0)
    launch_fail("point", "cannot mark a folder as opaque");
}

void make_whiteout(int folder, const char *name) {
  if (mknodat(folder, name, S_IFCHR, makedev(0, 0)) != 0) launch_fail("point", "cannot mark a file as deleted");
}

static bool is_overlays_own(const char *name) {
  return strncmp(name, trusted_prefix, sizeof trusted_prefix - 1) == 0 || strncmp(name, user_prefix, sizeof user_prefix - 1) == 0;
}

static void copy_attributes(int from, int to) {
  char names[ATTRIBUTES_MAX];
  ssize_t length = flistxattr(from, names, sizeof names);
  if (length < 0 && (errno == ENOTSUP || errno == EBADF)) return;
  if (length < 0) launch_fail("point", "cannot list the attributes of a file");
  static char value[XATTR_VALUE_MAX];
  for (const char *name = names; name < names + length; name += strlen(name) + 1) {
    if (is_overlays_own(name)) continue;
    ssize_t size = fgetxattr(from, name, value, sizeof value);
    /* Without root, some attributes of the host cannot be read or set. */
    if (size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) != 0 && errno != EPERM && errno != ENOTSUP)
      launch_fail("point", "cannot copy the attribute %s", name);
  }
}

void copy_metadata(int from, int to, const struct stat *status) {
  if (fchown(to, status->st_uid, status->st_gid) != 0 || fchmod(to, status->st_mode & 07777) != 0)
    launch_fail("point", "cannot copy the owner of a file");
  copy_attributes(from, to);
}

void set_times(int fd, const struct stat *status) {
  const struct timespec times[] = {status->st_atim, status->st_mtim};
  if (futimens(fd, times) != 0) launch_fail("point", "cannot copy the times of a file");
}

static void copy_range(int from, int to, off_t at, off_t end) {
  static char buffer[256 * 1024];
  bool in_kernel = true;
  while (at < end) {
    size_t want = (size_t)(end - at) < sizeof buffer || in_kernel ? (size_t)(end - at) : sizeof buffer;
    off_t from_at = at, to_at = at;
    ssize_t got = in_kernel ? copy_file_range(from, &from_at, to, &to_at, want, 0) : pread(from, buffer, want, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && in_kernel && errno != ENOSPC && errno != EDQUOT) {
      in_kernel = false;
      continue;
    }
    if (got < 0) launch_fail("point", "cannot copy a file");
    /* The file became shorter meanwhile. */
    if (got == 0) return;
    if (!in_kernel && pwrite(to, buffer, (size_t)got, at) != got) launch_fail("point", "cannot write a copy");
    at += got;
  }
}

static void copy_content(struct copying *copying, int from, int to, const struct stat *status) {
  if (status->st_size >= MAPPED_BYTES_MIN) sync_file_range(from, 0, 0, SYNC_FILE_RANGE_WRITE);
  if (status->st_size == 0) return;
  if (!copying->no_clone && ioctl(to, FICLONE, from) == 0) return;
  copying->no_clone = true;
  off_t at = 0;
  while (at < status->st_size) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    if (data < 0 || hole < 0) {
      data = at;
      hole = status->st_size;
    }
    copy_range(from, to, data, hole < status->st_size ? hole : status->st_size);
    at = hole;
  }
  if (ftruncate(to, status->st_size) != 0) launch_fail("point", "cannot copy a file");
}

static void count(struct copying *copying, const struct stat *status) {
  copying->files++;
  copying->bytes += (uint64_t)status->st_blocks * 512;
  if (copying->bytes > copying->bytes_max) launch_fail("too-large", "%llu", (unsigned long long)copying->bytes_max);
}

static size_t slot_of(const struct copying *copying, uint64_t inode) {
  size_t slot = (size_t)(inode * 0x9e3779b97f4a7c15u) & (copying->link_room - 1);
  while (copying->links[slot].path != NULL && copying->links[slot].inode != inode) slot = (slot + 1) & (copying->link_room - 1);
  return slot;
}

static bool link_again(const struct copying *copying, int root, int to, const char *name, const struct stat *status) {
  if (copying->link_room == 0) return false;
  const char *path = copying->links[slot_of(copying, status->st_ino)].path;
  return path != NULL && linkat(root, path, to, name, 0) == 0;
}

static void grow_links(struct copying *copying) {
  struct copying old = *copying;
  copying->link_room = old.link_room == 0 ? 1024 : old.link_room * 2;
  copying->links = xalloc(copying->link_room * sizeof *copying->links);
  for (size_t i = 0; i < old.link_room; i++)
    if (old.links[i].path != NULL) copying->links[slot_of(copying, old.links[i].inode)] = old.links[i];
  free(old.links);
}

static void remember_link(struct copying *copying, const char *path, const struct stat *status) {
  if ((copying->link_count + 1) * 2 > copying->link_room) grow_links(copying);
  struct linked_file *file = &copying->links[slot_of(copying, status->st_ino)];
  if (file->path == NULL) copying->link_count++;
  free(file->path);
  *file = (struct linked_file){.inode = status->st_ino, .path = strdup(path)};
  if (file->path == NULL) launch_fail("point", "out of memory");
}

void forget_links(struct copying *copying) {
  for (size_t i = 0; i < copying->link_room; i++) free(copying->links[i].path);
  free(copying->links);
  copying->links = NULL;
  copying->link_count = copying->link_room = 0;
}

static void copy_file(struct copying *copying, int from, int to, const char *name) {
  cleanup_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat status;
  if (in < 0 || fstat(in, &status) != 0 || !S_ISREG(status.st_mode)) launch_fail("point", "cannot read a file");
  cleanup_fd int out = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out < 0) launch_fail("point", "cannot create a copy");
  copy_content(copying, in, out, &status);
  copy_metadata(in, out, &status);
  set_times(out, &status);
}

static void copy_link(int from, int to, const char *name, const struct stat *status) {
  char target[4097];
  ssize_t length = readlinkat(from, name, target, sizeof target - 1);
  if (length < 0) launch_fail("point", "cannot read a link");
  target[length] = 0;
  if (symlinkat(target, to, name) != 0) launch_fail("point", "cannot create a link");
  const struct timespec times[] = {status->st_atim, status->st_mtim};
  if (fchownat(to, name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) != 0 || utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) != 0)
    launch_fail("point", "cannot copy the owner of a link");
}

static void copy_special(int to, const char *name, const struct stat *status) {
  if (mknodat(to, name, status->st_mode & S_IFMT, status->st_rdev) != 0) launch_fail("point", "cannot create a special file");
  const struct timespec times[] = {status->st_atim, status->st_mtim};
  if (fchownat(to, name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) != 0 || fchmodat(to, name, status->st_mode & 07777, 0) != 0 ||
      utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) != 0)
    launch_fail("point", "cannot copy the owner of a special file");
}

void copy_entry(struct copying *copying, int from, int root, int to, const char *name, const char *path, const struct stat *status) {
  bool linked = status->st_nlink > 1 && S_ISREG(status->st_mode);
  if (linked && link_again(copying, root, to, name, status)) {
    copying->files++;
    return;
  }
  count(copying, status);
  if (S_ISREG(status->st_mode)) copy_file(copying, from, to, name);
  else if (S_ISLNK(status->st_mode)) copy_link(from, to, name, status);
  else copy_special(to, name, status);
  if (linked) remember_link(copying, path, status);
}
