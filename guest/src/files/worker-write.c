/* WRITE. */
#include "base/privilege.h"
#include "files/worker-content.h"
#include "wire/tags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { LINKS_FOLLOWED_MAX = 40, APPEND_MEMORY = 1048576 };
/* No mode was requested; 0 is a valid mode. */
#define NO_MODE 0xffffffffu

/* Replaces the path of a link with the path it finally leads to. Returns 0 or an errno. */
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

static void answer_written(struct worker *worker, uint64_t bytes) {
  frame_begin(&worker->out, FRAME_OK, worker->stream);
  frame_field_u64(&worker->out, TAG_WRITTEN_BYTES, bytes);
  worker_queue(worker);
}

/* Gives the draft its mode and, if the user may, the owner of the file that it replaces. */
static int keep_attributes(const struct draft *draft, const struct target *target, mode_t mode) {
  if (target->exists && (target->status.st_uid != file_uid() || target->status.st_gid != getegid())) {
    if (fchown(draft->fd, target->status.st_uid, target->status.st_gid) != 0) errno = 0;
  }
  /* A default ACL of the folder, or the change of owner, may have altered the mode. */
  return fchmod(draft->fd, mode) == 0 ? 0 : errno;
}

/*
 * No fsync: these writes are as durable as those by the sandbox's own programs, and flushing each of a thousand small
 * files would cost far more than writing them. The rename makes the write atomic for every reader.
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

/* Bytes held back until their stream ends: in memory, or all in a draft if there are many. */
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

/* Appends all or nothing. If another process appended at the same time, a failure keeps what both wrote. */
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
    /* Created only at the end: a broken stream leaves no empty file. */
    fd = openat(target->folder_fd, target->base, O_CREAT | O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                asked != NO_MODE ? asked : 0644);
    if (fd < 0) error = errno;
    else if (fstat(fd, &status) != 0) error = errno;
    else error = not_regular(&status);
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
  int error = not_regular(&target->status);
  if (error) return error;
  /* A rename would replace a write-protected file, which a program that opens it for writing could not. */
  if (faccessat(target->folder_fd, target->base, W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == EROFS)) return errno;
  return 0;
}

void do_write(struct worker *worker, const struct request *request) {
  uint64_t mode, parents, how;
  struct target target = {.folder_fd = -1};
  cleanup_free char *path = request_path(worker, request, TAG_WRITE_PATH, "write");
  if (path == NULL || !request_number(worker, request, TAG_WRITE_MODE, NO_MODE, &mode) || !request_number(worker, request, TAG_WRITE_PARENTS, 0, &parents)) return;
  if (!request_number(worker, request, TAG_WRITE_HOW, REPLACE, &how)) return;
  if (how > CREATE) {
    answer_error(worker, ERR_INVALID, 0, "write", path, "unknown way of writing");
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
