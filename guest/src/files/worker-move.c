/* MOVE: a rename, or a copy to a temporary name beside the target, a rename there, and the removal of the original. */
#include "files/worker-tree.h"
#include "files/worker.h"
#include "wire/tags.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

enum { COPY_BYTES = 8 * 1024 * 1024, XATTR_BYTES_MAX = 65536 };

struct move {
  struct worker *worker;
  int from_fd;
  const char *from_base;
  int to_fd;
  const char *to_base;
  bool replace;
  struct stat status;
  struct links links;
  struct tree source;
  struct tree copy;
};

/*
 * Returns 0 or an errno. On a file system without RENAME_NOREPLACE, other calls give the same guarantee, or this fails.
 */
static int rename_once(int from_fd, const char *from, int to_fd, const char *to, bool replace, bool folder) {
  if (replace) return renameat(from_fd, from, to_fd, to) == 0 ? 0 : errno;
  if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (folder) {
    /* An empty folder that we created is the only thing that the rename can replace. */
    if (mkdirat(to_fd, to, 0700) != 0) return errno;
    if (renameat(from_fd, from, to_fd, to) == 0) return 0;
    int error = errno;
    unlinkat(to_fd, to, AT_REMOVEDIR);
    return error;
  }
  if (linkat(from_fd, from, to_fd, to, 0) != 0) return errno == EPERM ? EOPNOTSUPP : errno;
  return unlinkat(from_fd, from, 0) == 0 ? 0 : errno;
}

static int copy_bytes(struct worker *worker, int from, int to) {
  char buffer[65536];
  bool by_kernel = true;
  for (;;) {
    if (termination_wanted() || worker_cancelled_now(worker)) return ECANCELED;
    ssize_t got = by_kernel ? copy_file_range(from, NULL, to, NULL, COPY_BYTES, 0) : read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && by_kernel && errno != ENOSPC && errno != EDQUOT && errno != EFBIG) {
      by_kernel = false;
      continue;
    }
    if (got < 0) return errno;
    if (got == 0 && !by_kernel) return 0;
    /* Some kernels return 0 if they cannot copy at all; a read tells the difference. */
    if (got == 0) by_kernel = false;
    else if (!by_kernel && !write_full(to, buffer, (size_t)got)) return errno;
  }
}

static void copy_attributes_extended(int from, int to) {
  char names[4096], value[XATTR_BYTES_MAX];
  ssize_t length = flistxattr(from, names, sizeof names);
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
    if (strncmp(names + at, "user.", 5) != 0) continue;
    ssize_t size = fgetxattr(from, names + at, value, sizeof value);
    if (size >= 0) (void)fsetxattr(to, names + at, value, (size_t)size, 0);
  }
}

/* Copies the owner if the user may set it; a set-id bit does not survive a change of owner. */
static int copy_attributes(int from, int to, const struct stat *status) {
  mode_t mode = status->st_mode & 07777;
  const struct timespec times[2] = {status->st_atim, status->st_mtim};
  copy_attributes_extended(from, to);
  if (fchown(to, status->st_uid, status->st_gid) != 0) {
    struct stat made;
    if (fstat(to, &made) == 0 && (made.st_uid != status->st_uid || made.st_gid != status->st_gid)) mode &= 01777;
  }
  if (fchmod(to, mode) != 0 || futimens(to, times) != 0) return errno;
  return 0;
}

static int copy_regular(struct move *move, int from_folder, const char *from, int to_folder, const char *to) {
  struct stat status;
  cleanup_fd int source = openat(from_folder, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (source < 0 || fstat(source, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return ESTALE;
  cleanup_fd int made = openat(to_folder, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (made < 0) return errno;
  int error = copy_bytes(move->worker, source, made);
  return error ? error : copy_attributes(source, made, &status);
}

static int copy_special(int from_folder, const char *from, int to_folder, const char *to, const struct stat *status) {
  const struct timespec times[2] = {status->st_atim, status->st_mtim};
  if (S_ISLNK(status->st_mode)) {
    char target[PATH_BYTES_MAX + 1];
    ssize_t length = readlinkat(from_folder, from, target, PATH_BYTES_MAX);
    if (length < 0) return errno;
    target[length] = 0;
    if (symlinkat(target, to_folder, to) != 0) return errno;
  } else if (mknodat(to_folder, to, status->st_mode, status->st_rdev) != 0) {
    return errno;
  }
  if (fchownat(to_folder, to, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) != 0) errno = 0;
  if (utimensat(to_folder, to, times, AT_SYMLINK_NOFOLLOW) != 0) errno = 0;
  return 0;
}

/* Copies anything but a folder. */
static int copy_file(struct move *move, int from_folder, const char *from, int to_folder, const char *to, const struct stat *status) {
  if (!S_ISREG(status->st_mode)) return copy_special(from_folder, from, to_folder, to, status);
  if (status->st_nlink > 1 && move->copy.count > 0) {
    const char *path = tree_path(&move->copy, to);
    const char *seen = path != NULL ? links_seen(&move->links, status, path) : NULL;
    if (seen != NULL && linkat(move->copy.levels[0].fd, seen, to_folder, to, 0) == 0) return 0;
  }
  return copy_regular(move, from_folder, from, to_folder, to);
}

static int copy_entry(struct move *move, const char *name) {
  int from_fd = tree_top(&move->source)->fd, to_fd = tree_top(&move->copy)->fd;
  struct stat status;
  if (fstatat(from_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) return copy_file(move, from_fd, name, to_fd, name, &status);
  /* The copy itself: a folder is being moved into its own tree. */
  if (status.st_dev == move->copy.levels[0].device && status.st_ino == move->copy.levels[0].inode) return EINVAL;
  if (mkdirat(to_fd, name, 0700) != 0) return errno;
  int error = tree_enter(&move->source, name);
  if (error == 0) error = tree_enter(&move->copy, name);
  return error ? error : tree_read_names(&move->source, SIZE_MAX);
}

static int copy_leave(struct move *move) {
  struct stat status;
  int from_fd = tree_top(&move->source)->fd;
  if (fstat(from_fd, &status) != 0) return errno;
  int error = copy_attributes(from_fd, tree_top(&move->copy)->fd, &status);
  if (error == 0 && move->source.count > 1) error = tree_leave(&move->copy);
  return error ? error : tree_leave(&move->source);
}

static int copy_folder(struct move *move, const char *temporary) {
  int from_fd = openat(move->from_fd, move->from_base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (from_fd < 0) return errno;
  int error = tree_start(&move->source, from_fd);
  if (error) return error;
  if (mkdirat(move->to_fd, temporary, 0700) != 0) return errno;
  int to_fd = openat(move->to_fd, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (to_fd < 0) return errno;
  error = tree_start(&move->copy, to_fd);
  if (error == 0) error = tree_read_names(&move->source, SIZE_MAX);
  while (error == 0 && move->source.count > 0) {
    unsigned char type;
    if (termination_wanted() || worker_cancelled(move->worker)) return ECANCELED;
    const char *name = tree_next(&move->source, &type);
    error = name != NULL ? copy_entry(move, name) : copy_leave(move);
  }
  return error;
}

static int remove_tree(struct worker *worker, int folder_fd, const char *name, bool folder) {
  if (unlinkat(folder_fd, name, folder ? AT_REMOVEDIR : 0) == 0 || !folder) return 0;
  cleanup_free char *failed = NULL;
  int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = remove_contents(worker, fd, &failed);
  if (error) return error;
  return unlinkat(folder_fd, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

/* Removes what a copy left behind, even after a cancellation. */
static void remove_leftover(struct move *move, const char *temporary, bool folder) {
  bool cancelled = move->worker->cancelled, closed = move->worker->input_closed;
  struct worker quiet = {.in_fd = -1, .out_fd = -1};
  remove_tree(&quiet, move->to_fd, temporary, folder);
  move->worker->cancelled = cancelled;
  move->worker->input_closed = closed;
}

/* Copies everything before touching the original; the copy appears in one step. */
static int move_by_copy(struct move *move, bool *copied) {
  char temporary[TEMPORARY_NAME_BYTES];
  bool folder = S_ISDIR(move->status.st_mode);
  struct stat there;
  if (!move->replace && fstatat(move->to_fd, move->to_base, &there, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  if (faccessat(move->from_fd, ".", W_OK, AT_EACCESS) != 0) return errno;
  temporary_name(temporary);
  int error = folder ? copy_folder(move, temporary)
                     : copy_file(move, move->from_fd, move->from_base, move->to_fd, temporary, &move->status);
  tree_free(&move->source);
  tree_free(&move->copy);
  links_free(&move->links);
  if (error == 0) error = rename_once(move->to_fd, temporary, move->to_fd, move->to_base, move->replace, folder);
  if (error) {
    remove_leftover(move, temporary, folder);
    return error;
  }
  *copied = true;
  return remove_tree(move->worker, move->from_fd, move->from_base, folder);
}

void do_move(struct worker *worker, const struct request *request) {
  uint64_t replace;
  bool copied = false;
  struct move move = {.worker = worker};
  cleanup_free char *from = request_path(worker, request, TAG_MOVE_FROM, "move");
  if (from == NULL) return;
  cleanup_free char *to = request_path(worker, request, TAG_MOVE_TO, "move");
  if (to == NULL || !request_number(worker, request, TAG_MOVE_REPLACE, 0, &replace)) return;
  move.replace = replace != 0;
  cleanup_fd int from_fd = move.from_fd = open_parent(from, &move.from_base);
  if (from_fd < 0 || fstatat(from_fd, move.from_base, &move.status, AT_SYMLINK_NOFOLLOW) != 0) {
    answer_errno(worker, errno, "move", from);
    return;
  }
  cleanup_fd int to_fd = move.to_fd = open_parent(to, &move.to_base);
  if (to_fd < 0) {
    answer_errno(worker, errno, "move to", to);
    return;
  }
  int error = rename_once(from_fd, move.from_base, to_fd, move.to_base, move.replace, S_ISDIR(move.status.st_mode));
  if (error == EXDEV) {
    termination_defer();
    error = move_by_copy(&move, &copied);
    termination_allow();
  }
  if (worker->cancelled) return;
  if (error && copied) answer_error(worker, error_code_of(error), error, "move", from, "copied, but the original could not be removed completely");
  else if (error == EEXIST || error == ENOTEMPTY || error == EISDIR) answer_errno(worker, error, "move to", to);
  else if (error) answer_errno(worker, error, "move", from);
  else answer_ok(worker);
}
