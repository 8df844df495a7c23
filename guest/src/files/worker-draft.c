/* Drafts: files that appear in their place only when they are complete. */
#include "files/worker-content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int draft_open_named(struct draft *draft, int folder_fd, mode_t mode) {
  temporary_name(draft->name);
  temporary_set(folder_fd, draft->name);
  draft->fd = openat(folder_fd, draft->name, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, mode);
  if (draft->fd >= 0) return 0;
  int error = errno;
  temporary_clear();
  draft->name[0] = 0;
  return error;
}

int draft_open(struct draft *draft, int folder_fd, mode_t mode) {
  draft->name[0] = 0;
  /* An unnamed file leaves nothing behind, even after SIGKILL; it gets its name through /proc. */
  static int proc_there = -1;
  if (proc_there < 0) proc_there = access("/proc/self/fd", X_OK) == 0;
  draft->fd = proc_there ? openat(folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode) : -1;
  return draft->fd >= 0 ? 0 : draft_open_named(draft, folder_fd, mode);
}

void draft_drop(struct draft *draft, int folder_fd) {
  if (draft->name[0]) unlinkat(folder_fd, draft->name, 0);
  temporary_clear();
  draft->name[0] = 0;
  close_fd(&draft->fd);
}

static int draft_link(const struct draft *draft, int folder_fd, const char *name) {
  char descriptor[64];
  snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", draft->fd);
  return linkat(AT_FDCWD, descriptor, folder_fd, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* Returns 0 or an errno; `written` includes what a failed call wrote. */
int write_all(int fd, const uint8_t *bytes, size_t length, uint64_t *written) {
  while (length > 0) {
    ssize_t put = write(fd, bytes, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    *written += (uint64_t)put;
    bytes += put;
    length -= (size_t)put;
  }
  return 0;
}

/* Gives a draft a name if the kernel refuses to link it: copies it to a file that had a name from the start. */
static int draft_materialise(struct draft *draft, int folder_fd) {
  struct stat status;
  uint8_t buffer[65536];
  uint64_t copied = 0;
  cleanup_fd int nameless = steal_fd(&draft->fd);
  if (fstat(nameless, &status) != 0 || lseek(nameless, 0, SEEK_SET) != 0) return errno;
  int error = draft_open_named(draft, folder_fd, status.st_mode & 07777);
  while (error == 0) {
    ssize_t got = read(nameless, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    error = write_all(draft->fd, buffer, (size_t)got, &copied);
  }
  if (error == 0 && fchown(draft->fd, status.st_uid, status.st_gid) == 0) error = fchmod(draft->fd, status.st_mode & 07777) == 0 ? 0 : errno;
  return error;
}

/* Puts the draft in its place in one step. Returns 0 or an errno; the draft no longer exists in either case. */
int draft_publish(struct draft *draft, const struct target *target, enum how how) {
  int folder_fd = target->folder_fd, error = 0;
  if (!draft->name[0]) {
    error = how == CREATE || !target->exists ? draft_link(draft, folder_fd, target->base) : EEXIST;
    if (error == 0 || (error == EEXIST && how == CREATE)) {
      draft_drop(draft, folder_fd);
      return error;
    }
    if (error == EEXIST) {
      temporary_name(draft->name);
      temporary_set(folder_fd, draft->name);
      error = draft_link(draft, folder_fd, draft->name);
    }
    if (error && error != ENOSPC && error != EDQUOT) error = draft_materialise(draft, folder_fd);
  }
  if (error == 0 && how == CREATE) {
    error = renameat2(folder_fd, draft->name, folder_fd, target->base, RENAME_NOREPLACE) == 0 ? 0 : errno;
    if (error == 0) draft->name[0] = 0;
    else if (error == EINVAL || error == ENOSYS) error = linkat(folder_fd, draft->name, folder_fd, target->base, 0) == 0 ? 0 : errno;
  } else if (error == 0) {
    error = renameat(folder_fd, draft->name, folder_fd, target->base) == 0 ? 0 : errno;
    if (error == 0) draft->name[0] = 0;
  }
  draft_drop(draft, folder_fd);
  return error;
}
