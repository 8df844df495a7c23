/* Request fields and answers, and the only table from errno to the protocol's codes. */
#include "files/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/tags.h"

enum error_code error_code_of(int error) {
  switch (error) {
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EBADMSG: return ERR_INVALID;
    case ENOENT: return ERR_NOT_FOUND;
    case EEXIST: return ERR_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS: return ERR_DENIED;
    case ENOTDIR: return ERR_NOT_DIRECTORY;
    case EISDIR: return ERR_IS_DIRECTORY;
    case ENOTEMPTY: return ERR_NOT_EMPTY;
    case ENOSPC:
    case EDQUOT: return ERR_NO_SPACE;
    case EBUSY:
    case ETXTBSY:
    case EAGAIN:
    case EMFILE:
    case ENFILE: return ERR_BUSY;
    case EOPNOTSUPP:
    case ENOSYS:
    case ENXIO: return ERR_UNSUPPORTED;
    case EFBIG:
    case EOVERFLOW:
    case ENOMEM:
    case E2BIG: return ERR_TOO_LARGE;
    case ESTALE: return ERR_UNSAFE;
    default: return ERR_IO;
  }
}

static void show_path(char *into, size_t size, const char *path) {
  size_t length = strlen(path);
  size_t tail = 0;
  if (length >= size) {
    /* The end is more useful than the beginning: it names the file. */
    tail = length - (size - 5);
    memcpy(into, "...", 3);
    into += 3;
  }
  const char *from = path + tail;
  for (; *from; from++) *into++ = (unsigned char)*from < 0x20 || *from == 0x7f ? '?' : *from;
  *into = 0;
}

void answer_error(struct worker *worker, enum error_code code, int error, const char *verb, const char *path, const char *reason) {
  char shown[MESSAGE_PATH_BYTES];
  char message[MESSAGE_PATH_BYTES + 256];
  shown[0] = 0;
  if (path != NULL) show_path(shown, sizeof shown, path);
  snprintf(message, sizeof message, "%s%s%s: %s", verb, shown[0] ? " " : "", shown, reason);
  if (!frame_error(&worker->out, worker->stream, code, error, message)) worker->input_closed = true;
}

void answer_errno(struct worker *worker, int error, const char *verb, const char *path) {
  answer_error(worker, error_code_of(error), error, verb, path, strerror(error));
}

void answer_ok(struct worker *worker) {
  frame_begin(&worker->out, FRAME_OK, worker->stream);
  worker_queue(worker);
}

static uint64_t kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return 1;
    case S_IFDIR: return 2;
    case S_IFLNK: return 3;
    case S_IFIFO: return 4;
    case S_IFSOCK: return 5;
    default: return 6;
  }
}

/* The host accepts no number past 2^53, but a file can claim a larger size or a later time. */
static uint64_t bounded(int64_t value) {
  const int64_t max = ((int64_t)1 << 53) - 1;
  return value < 0 ? 0 : value > max ? (uint64_t)max : (uint64_t)value;
}

void answer_file(struct worker *worker, uint8_t type, const char *name, const struct stat *status, const char *link_target) {
  uint64_t seconds = bounded(status->st_mtim.tv_sec);
  uint64_t modified = seconds > (uint64_t)INT64_MAX / 1000 - 1 ? bounded(INT64_MAX) : bounded((int64_t)seconds * 1000 + status->st_mtim.tv_nsec / 1000000);
  struct frame_writer *out = &worker->out;
  frame_begin(out, type, worker->stream);
  frame_field_text(out, TAG_FILE_NAME, name);
  frame_field_u64(out, TAG_FILE_KIND, kind_of(status->st_mode));
  frame_field_u64(out, TAG_FILE_SIZE_BYTES, bounded(status->st_size));
  frame_field_u64(out, TAG_FILE_MODE, status->st_mode & 07777);
  frame_field_u64(out, TAG_FILE_UID, status->st_uid);
  frame_field_u64(out, TAG_FILE_GID, status->st_gid);
  frame_field_u64(out, TAG_FILE_MODIFIED_MS, modified);
  if (link_target != NULL) frame_field_text(out, TAG_FILE_LINK_TARGET, link_target);
  worker_queue(worker);
}

char *request_path(struct worker *worker, const struct request *request, uint8_t tag, const char *verb) {
  struct field field;
  const char *problem = NULL;
  if (!field_find(request->payload, request->length, tag, &field) || field.length == 0) problem = "the path is missing";
  else if (memchr(field.data, 0, field.length) != NULL) problem = "the path contains NUL";
  else if (field.length > PATH_BYTES_MAX) problem = "the path is longer than 4,095 bytes";
  else if (field.data[0] != '/') problem = "the path is not absolute";
  char *path = problem == NULL ? field_text(&field) : NULL;
  if (path == NULL) {
    answer_error(worker, ERR_INVALID, 0, verb, NULL, problem ? problem : "out of memory");
    return NULL;
  }
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') path[--length] = 0;
  return path;
}

bool request_number(struct worker *worker, const struct request *request, uint8_t tag, uint64_t fallback, uint64_t *out) {
  if (field_find_u64(request->payload, request->length, tag, fallback, out)) return true;
  answer_error(worker, ERR_INVALID, 0, "request", NULL, "a number does not have 8 bytes");
  return false;
}
