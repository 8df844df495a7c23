/* READ and WRITE. */
#include "base/privilege.h"
#include "files/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LINKS_FOLLOWED_MAX = 40, APPEND_MEMORY = 1048576 };
/* No mode was asked for; 0 is one that can be. */
#define NO_MODE 0xffffffffu
enum how { REPLACE = 0, APPEND = 1, CREATE = 2 };

/* 0, or why it is not a regular file. */
static int regular(const struct stat *status) {
  if (S_ISREG(status->st_mode)) return 0;
  return S_ISDIR(status->st_mode) ? EISDIR : EOPNOTSUPP;
}

static void answer_not_regular(struct worker *worker, int error, const char *verb, const char *path) {
  if (error == EOPNOTSUPP) answer_error(worker, ERR_UNSUPPORTED, error, verb, path, "not a regular file");
  else answer_errno(worker, error, verb, path);
}

/*
 * Looks before it opens: to open a FIFO, even without blocking, would wake its writer and then break its pipe. O_NONBLOCK is for what is put
 * there between the look and the open.
 */
static int open_regular(const char *path, int flags, struct stat *status) {
  if (stat(path, status) != 0) return -1;
  int fd = -1;
  if ((errno = regular(status)) == 0) fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, status) == 0 && (errno = regular(status)) == 0) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static void send_file(struct worker *worker, int fd, const char *path, uint64_t length) {
  uint64_t left = length == 0 ? UINT64_MAX : length;
  while (left > 0) {
    ssize_t room = worker_data_room(worker, left);
    if (room < 0) return;
    ssize_t got = read(fd, worker_data(worker), (size_t)room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      answer_errno(worker, errno, "read", path);
      return;
    }
    if (got == 0) break;
    if (!worker_data_send(worker, (size_t)got)) return;
    left -= (uint64_t)got;
  }
  worker_data_end(worker);
}

void do_read(struct worker *worker, const struct request *request) {
  uint64_t offset, length;
  struct stat status;
  cleanup_free char *path = request_path(worker, request, 1, "read");
  if (path == NULL || !request_number(worker, request, 2, 0, &offset) || !request_number(worker, request, 3, 0, &length)) return;
  cleanup_fd int fd = open_regular(path, O_RDONLY, &status);
  if (fd < 0) {
    answer_not_regular(worker, errno, "read", path);
    return;
  }
  if (offset > INT64_MAX || (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)) {
    answer_error(worker, ERR_INVALID, EINVAL, "read", path, "the offset is not one");
    return;
  }
  answer_file(worker, FRAME_OK, path, &status, NULL);
  send_file(worker, fd, path, length);
}

/* Where a write ends up: the folder, the name in it and what is there now. */
struct target {
  char path[PATH_MAX];
  int folder_fd;
  const char *base;
  bool exists;
  struct stat status;
};

/* Replaces a link's path by what it points to, as far as links go. 0 or an errno. */
static int follow_links(struct target *target) {
  char link[PATH_MAX], joined[2 * PATH_MAX];
  for (int followed = 0;; followed++) {
    target->exists = lstat(target->path, &target->status) == 0;
    if (!target->exists) return errno == ENOENT ? 0 : errno;
    if (!S_ISLNK(target->status.st_mode)) return 0;
    if (followed == LINKS_FOLLOWED_MAX) return ELOOP;
    ssize_t length = readlink(target->path, link, sizeof link - 1);
    if (length < 0) return errno;
    link[length] = 0;
    int folder_length = link[0] == '/' ? 0 : (int)(strrchr(target->path, '/') + 1 - target->path);
    int size = snprintf(joined, sizeof joined, "%.*s%s", folder_length, target->path, link);
    while (size > 1 && joined[size - 1] == '/') joined[--size] = 0;
    if (size > PATH_BYTES_MAX) return ENAMETOOLONG;
    memcpy(target->path, joined, (size_t)size + 1);
  }
}

static int open_target_folder(struct target *target, bool parents) {
  target->folder_fd = open_parent(target->path, &target->base);
  if (target->folder_fd >= 0) return 0;
  if (errno != ENOENT || !parents) return errno;
  char *slash = strrchr(target->path, '/');
  *slash = 0;
  int error = make_folders(target->path, 0755);
  *slash = '/';
  if (error) return error;
  target->folder_fd = open_parent(target->path, &target->base);
  return target->folder_fd < 0 ? errno : 0;
}

/* A file that is not there yet for anybody else. `name` is empty when it has none at all. */
struct draft {
  int fd;
  char name[TEMPORARY_NAME_BYTES];
};

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

static int draft_open(struct draft *draft, int folder_fd, mode_t mode) {
  draft->name[0] = 0;
  /* Without a name nothing is left behind even by SIGKILL; it gets its name through /proc. */
  static int proc_there = -1;
  if (proc_there < 0) proc_there = access("/proc/self/fd", X_OK) == 0;
  draft->fd = proc_there ? openat(folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode) : -1;
  return draft->fd >= 0 ? 0 : draft_open_named(draft, folder_fd, mode);
}

static void draft_drop(struct draft *draft, int folder_fd) {
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

/* 0 or an errno; `written` counts also what a failed call wrote. */
static int write_all(int fd, const uint8_t *bytes, size_t length, uint64_t *written) {
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

/* Gives a draft a name where the kernel would not link it: copies it to one that has a name from the beginning. */
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

/* Puts the draft in its place in one step. 0 or an errno; the draft is gone in either case. */
static int draft_publish(struct draft *draft, const struct target *target, enum how how) {
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

static void answer_written(struct worker *worker, uint64_t bytes) {
  frame_begin(&worker->out, FRAME_OK, worker->stream);
  frame_field_u64(&worker->out, 1, bytes);
  worker_queue(worker);
}

/* The draft takes over mode and owner of what it replaces, as far as the user may. */
static int keep_attributes(const struct draft *draft, const struct target *target, mode_t mode) {
  if (target->exists && (target->status.st_uid != file_uid() || target->status.st_gid != getegid())) {
    if (fchown(draft->fd, target->status.st_uid, target->status.st_gid) != 0) errno = 0;
  }
  /* A default ACL of the folder, or the change of owner, may have altered what the creation asked for. */
  return fchmod(draft->fd, mode) == 0 ? 0 : errno;
}

/*
 * No fsync: what a sandbox writes is as durable as what its own programs write, and a flush for each of a thousand small files would cost
 * far more than the writing. The rename makes it whole or not at all for every reader.
 */
static void write_new(struct worker *worker, struct target *target, mode_t asked, enum how how, const char *path) {
  mode_t mode = asked != NO_MODE ? asked : target->exists ? target->status.st_mode & 0777 : 0644;
  struct draft draft;
  int error = draft_open(&draft, target->folder_fd, mode);
  const uint8_t *bytes;
  size_t length;
  uint64_t total = 0;
  int got = 0;
  while (error == 0 && (got = worker_receive(worker, &bytes, &length)) == 1) {
    error = write_all(draft.fd, bytes, length, &total);
  }
  if (error == 0 && got == 0) error = keep_attributes(&draft, target, mode);
  if (error == 0 && got == 0) error = draft_publish(&draft, target, how);
  else if (draft.fd >= 0) draft_drop(&draft, target->folder_fd);
  if (got < 0) return;
  if (error) answer_errno(worker, error, "write", path);
  else answer_written(worker, total);
}

/* Bytes that wait for the end of their stream: the first in memory, all of them in a draft when there are many. */
struct spool {
  uint8_t *memory;
  size_t held;
  uint64_t total;
  uint64_t appended;
  struct draft draft;
  int folder_fd;
};

static int spool_add(struct spool *spool, const uint8_t *bytes, size_t length) {
  if (spool->draft.fd < 0 && spool->held + length <= APPEND_MEMORY) {
    memcpy(spool->memory + spool->held, bytes, length);
    spool->held += length;
    spool->total = spool->held;
    return 0;
  }
  if (spool->draft.fd < 0) {
    spool->total = 0;
    int error = draft_open(&spool->draft, spool->folder_fd, 0600);
    if (error == 0) error = write_all(spool->draft.fd, spool->memory, spool->held, &spool->total);
    if (error) return error;
  }
  return write_all(spool->draft.fd, bytes, length, &spool->total);
}

static int spool_copy(struct spool *spool, int fd) {
  if (spool->draft.fd < 0) return write_all(fd, spool->memory, spool->held, &spool->appended);
  if (lseek(spool->draft.fd, 0, SEEK_SET) < 0) return errno;
  for (;;) {
    ssize_t got = read(spool->draft.fd, spool->memory, APPEND_MEMORY);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? 0 : errno;
    int error = write_all(fd, spool->memory, (size_t)got, &spool->appended);
    if (error) return error;
  }
}

/* All or nothing; when somebody else appended at the same time, a failure keeps what both wrote. */
static int append_spool(struct spool *spool, int fd) {
  struct stat before, after;
  if (fstat(fd, &before) != 0) return errno;
  int error = spool_copy(spool, fd);
  if (error && fstat(fd, &after) == 0 && (uint64_t)(after.st_size - before.st_size) == spool->appended) {
    if (ftruncate(fd, before.st_size) != 0) return errno;
  }
  return error;
}

static void write_append(struct worker *worker, struct target *target, mode_t asked, const char *path) {
  cleanup_free uint8_t *memory = malloc(APPEND_MEMORY);
  struct spool spool = {.memory = memory, .draft = {.fd = -1}, .folder_fd = target->folder_fd};
  struct stat status;
  cleanup_fd int fd = target->exists ? open_regular(target->path, O_WRONLY | O_APPEND, &status) : -1;
  int error = memory == NULL ? ENOMEM : target->exists && fd < 0 ? errno : 0;
  const uint8_t *bytes;
  size_t length;
  int got = 0;
  while (error == 0 && (got = worker_receive(worker, &bytes, &length)) == 1) {
    error = spool_add(&spool, bytes, length);
  }
  if (error == 0 && got == 0 && fd < 0) {
    /* Made at the end only: a broken stream leaves no empty file. */
    fd = openat(target->folder_fd, target->base, O_CREAT | O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                asked != NO_MODE ? asked : 0644);
    if (fd < 0) error = errno;
    else if (fstat(fd, &status) != 0) error = errno;
    else error = regular(&status);
  }
  if (error == 0 && got == 0) error = append_spool(&spool, fd);
  draft_drop(&spool.draft, target->folder_fd);
  if (got < 0) return;
  if (error) answer_not_regular(worker, error, "append to", path);
  else answer_written(worker, spool.total);
}

static int check_target(const struct target *target, enum how how) {
  if (!target->exists) return 0;
  if (how == CREATE) return EEXIST;
  int error = regular(&target->status);
  if (error) return error;
  /* A rename would replace a file that its mode protects; a program that opens it for writing could not. */
  if (faccessat(target->folder_fd, target->base, W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EROFS)) return errno;
  return 0;
}

void do_write(struct worker *worker, const struct request *request) {
  uint64_t mode, parents, how;
  struct target target = {.folder_fd = -1};
  cleanup_free char *path = request_path(worker, request, 1, "write");
  if (path == NULL || !request_number(worker, request, 2, NO_MODE, &mode) || !request_number(worker, request, 3, 0, &parents)) return;
  if (!request_number(worker, request, 4, REPLACE, &how)) return;
  if (how > CREATE) {
    answer_error(worker, ERR_INVALID, 0, "write", path, "there is no such way of writing");
    return;
  }
  mode_t asked = mode == NO_MODE ? NO_MODE : (mode_t)(mode & 07777);
  memcpy(target.path, path, strlen(path) + 1);
  int error;
  if (how == CREATE) {
    target.exists = lstat(target.path, &target.status) == 0;
    error = target.exists || errno == ENOENT ? 0 : errno;
  } else {
    error = follow_links(&target);
  }
  if (error == 0) error = open_target_folder(&target, parents != 0);
  if (error == 0) error = check_target(&target, (enum how)how);
  if (error) answer_not_regular(worker, error, "write", path);
  else if (how == APPEND) write_append(worker, &target, asked, path);
  else write_new(worker, &target, asked, (enum how)how, path);
  close_fd(&target.folder_fd);
}
