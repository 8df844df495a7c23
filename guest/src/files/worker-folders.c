/* STAT, LISTDIR, MKDIR and REMOVE. */
#include "files/worker-tree.h"
#include "files/worker.h"
#include "wire/tags.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LISTDIR_ENTRIES_DEFAULT = 10000, LISTDIR_ENTRIES_MAX = 1000000 };

/* Returns a link's target, or NULL: the file may have changed since the stat. */
static const char *read_link(int folder_fd, const char *name, const struct stat *status, char target[PATH_BYTES_MAX + 1]) {
  if (!S_ISLNK(status->st_mode)) return NULL;
  ssize_t length = readlinkat(folder_fd, name, target, PATH_BYTES_MAX);
  if (length < 0) return NULL;
  target[length] = 0;
  return target;
}

void do_stat(struct worker *worker, const struct request *request) {
  uint64_t follow;
  char target[PATH_BYTES_MAX + 1];
  struct stat status;
  cleanup_free char *path = request_path(worker, request, TAG_STAT_PATH, "stat");
  if (path == NULL || !request_number(worker, request, TAG_STAT_FOLLOW, 0, &follow)) return;
  if (fstatat(AT_FDCWD, path, &status, follow ? 0 : AT_SYMLINK_NOFOLLOW) != 0) {
    answer_errno(worker, errno, "stat", path);
    return;
  }
  answer_file(worker, FRAME_OK, path, &status, read_link(AT_FDCWD, path, &status, target));
}

struct listing {
  struct worker *worker;
  struct tree tree;
  uint64_t depth;
  uint64_t left;
  bool truncated;
};

/* Sends one entry, and enters it if it is a folder to list. */
static int list_entry(struct listing *listing, const char *name) {
  struct tree *tree = &listing->tree;
  int fd = tree_top(tree)->fd;
  char target[PATH_BYTES_MAX + 1];
  struct stat status;
  if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    /* Removed since its name was read, or hidden by a folder that can be read but not searched. */
    if (errno != ENOENT) listing->truncated = true;
    return 0;
  }
  const char *path = tree_path(tree, name);
  if (path == NULL || strlen(path) > PATH_BYTES_MAX) {
    /* No request could name this path. */
    listing->truncated = true;
    return 0;
  }
  answer_file(listing->worker, FRAME_ENTRY, path, &status, read_link(fd, name, &status, target));
  listing->left--;
  if (!S_ISDIR(status.st_mode) || tree->count >= listing->depth) return 0;
  int error = tree_enter(tree, name);
  if (error == E2BIG || error == ENOMEM) return error;
  if (error) {
    listing->truncated = true;
    return 0;
  }
  error = tree_read_names(tree, listing->left + 1);
  if (error == 0) tree_sort_names(tree);
  return error;
}

static int list_tree(struct listing *listing, int folder_fd) {
  struct tree *tree = &listing->tree;
  int error = tree_start(tree, folder_fd);
  if (error == 0) error = tree_read_names(tree, listing->left + 1);
  if (error == 0) tree_sort_names(tree);
  while (error == 0) {
    unsigned char type;
    const char *name = tree_next(tree, &type);
    if (worker_cancelled(listing->worker)) return ECANCELED;
    if (name == NULL) {
      if (tree->count == 1) return 0;
      error = tree_leave(tree);
    } else if (listing->left == 0) {
      listing->truncated = true;
      return 0;
    } else {
      error = list_entry(listing, name);
    }
  }
  return error;
}

void do_listdir(struct worker *worker, const struct request *request) {
  struct listing listing = {.worker = worker};
  cleanup_free char *path = request_path(worker, request, TAG_LISTDIR_PATH, "list");
  if (path == NULL || !request_number(worker, request, TAG_LISTDIR_DEPTH, 1, &listing.depth)) return;
  if (!request_number(worker, request, TAG_LISTDIR_ENTRIES_MAX, 0, &listing.left)) return;
  if (listing.depth == 0) listing.depth = 1;
  if (listing.left == 0) listing.left = LISTDIR_ENTRIES_DEFAULT;
  if (listing.left > LISTDIR_ENTRIES_MAX) listing.left = LISTDIR_ENTRIES_MAX;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  int error = fd < 0 ? errno : list_tree(&listing, fd);
  tree_free(&listing.tree);
  if (error == ECANCELED) return;
  if (error) {
    answer_errno(worker, error, "list", path);
    return;
  }
  frame_begin(&worker->out, FRAME_OK, worker->stream);
  frame_field_u64(&worker->out, TAG_LISTED_TRUNCATED, listing.truncated);
  worker_queue(worker);
}

static int folder_there(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return errno == ENOENT ? EEXIST : errno;
  return S_ISDIR(status.st_mode) ? 0 : EEXIST;
}

/* mkdir ignores the set-id and sticky bits. */
static int make_folder(const char *path, mode_t mode) {
  if (mkdir(path, mode) != 0) return errno;
  return (mode & 07000) == 0 || chmod(path, mode) == 0 ? 0 : errno;
}

int make_folders(const char *path, mode_t mode) {
  int error = make_folder(path, mode);
  if (error == EEXIST) return folder_there(path);
  if (error != ENOENT) return error;
  char part[PATH_MAX];
  size_t length = strlen(path);
  if (length >= sizeof part) return ENAMETOOLONG;
  memcpy(part, path, length + 1);
  for (size_t at = 1; at < length; at++) {
    if (part[at] != '/') continue;
    part[at] = 0;
    if (mkdir(part, 0755) != 0 && errno != EEXIST) return errno;
    part[at] = '/';
  }
  error = make_folder(path, mode);
  return error == EEXIST ? folder_there(path) : error;
}

void do_mkdir(struct worker *worker, const struct request *request) {
  uint64_t parents, mode;
  cleanup_free char *path = request_path(worker, request, TAG_MKDIR_PATH, "make folder");
  if (path == NULL || !request_number(worker, request, TAG_MKDIR_PARENTS, 0, &parents) || !request_number(worker, request, TAG_MKDIR_MODE, 0, &mode)) return;
  mode_t bits = mode ? (mode_t)(mode & 07777) : 0755;
  int error = parents ? make_folders(path, bits) : make_folder(path, bits);
  if (error) answer_errno(worker, error, "make folder", path);
  else answer_ok(worker);
}

int open_parent(char *path, const char **base) {
  char *slash = strrchr(path, '/');
  *base = slash + 1;
  if (**base == 0 || strcmp(*base, ".") == 0 || strcmp(*base, "..") == 0) {
    errno = EINVAL;
    return -1;
  }
  if (slash == path) return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  *slash = 0;
  int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  *slash = '/';
  return fd;
}

static void remove_folder(struct worker *worker, int parent_fd, const char *base, const char *path) {
  cleanup_free char *failed = NULL;
  int fd = openat(parent_fd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  int error = fd < 0 ? errno : remove_contents(worker, fd, &failed);
  if (error == ECANCELED) return;
  if (error == 0 && unlinkat(parent_fd, base, AT_REMOVEDIR) != 0 && errno != ENOENT) error = errno;
  if (error == 0) {
    answer_ok(worker);
    return;
  }
  cleanup_free char *whole = NULL;
  if (failed != NULL && failed[0] && asprintf(&whole, "%s/%s", path, failed) < 0) whole = NULL;
  answer_errno(worker, error, "remove", whole != NULL ? whole : path);
}

void do_remove(struct worker *worker, const struct request *request) {
  uint64_t recursive;
  struct stat status;
  const char *base;
  cleanup_free char *path = request_path(worker, request, TAG_REMOVE_PATH, "remove");
  if (path == NULL || !request_number(worker, request, TAG_REMOVE_RECURSIVE, 0, &recursive)) return;
  cleanup_fd int parent_fd = open_parent(path, &base);
  if (parent_fd < 0 || fstatat(parent_fd, base, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    answer_errno(worker, errno, "remove", path);
    return;
  }
  if (unlinkat(parent_fd, base, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0) == 0) {
    answer_ok(worker);
    return;
  }
  int error = errno == EEXIST ? ENOTEMPTY : errno;
  if (S_ISDIR(status.st_mode) && recursive && error == ENOTEMPTY) remove_folder(worker, parent_fd, base, path);
  else answer_errno(worker, error, "remove", path);
}
