/* READ. */
#include "files/worker-content.h"
#include "wire/tags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int not_regular(const struct stat *status) {
  if (S_ISREG(status->st_mode)) return 0;
  return S_ISDIR(status->st_mode) ? EISDIR : EOPNOTSUPP;
}

void answer_not_regular(struct worker *worker, int error, const char *verb, const char *path) {
  if (error == EOPNOTSUPP) answer_error(worker, ERR_UNSUPPORTED, error, verb, path, "not a regular file");
  else answer_errno(worker, error, verb, path);
}

/*
 * Checks before it opens: opening a FIFO, even without blocking, would wake its writer and then break its pipe.
 * O_NONBLOCK covers a FIFO that appears between the check and the open.
 */
int open_regular(const char *path, int flags, struct stat *status) {
  if (stat(path, status) != 0) return -1;
  int fd = -1;
  if ((errno = not_regular(status)) == 0) fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, status) == 0 && (errno = not_regular(status)) == 0) return fd;
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
  cleanup_free char *path = request_path(worker, request, TAG_READ_PATH, "read");
  if (path == NULL || !request_number(worker, request, TAG_READ_OFFSET, 0, &offset) || !request_number(worker, request, TAG_READ_LENGTH, 0, &length)) return;
  cleanup_fd int fd = open_regular(path, O_RDONLY, &status);
  if (fd < 0) {
    answer_not_regular(worker, errno, "read", path);
    return;
  }
  if (offset > INT64_MAX || (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)) {
    answer_error(worker, ERR_INVALID, EINVAL, "read", path, "the offset is out of range");
    return;
  }
  answer_file(worker, FRAME_OK, path, &status, NULL);
  send_file(worker, fd, path, length);
}
