#include "spawner/order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
  struct cmsghdr align;
  char bytes[CMSG_SPACE(MESSAGE_FDS_MAX * sizeof(int))];
};

bool message_send(int socket, const void *head, size_t head_length, const void *body, size_t body_length, const int *fds, size_t fd_count,
                  int flags) {
  struct iovec parts[2] = {{(void *)head, head_length}, {(void *)body, body_length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = body_length > 0 ? 2 : 1};
  union control control;
  if (fd_count > 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == (ssize_t)(head_length + body_length);
}

ssize_t message_receive(int socket, void *head, size_t head_length, void *body, size_t body_length, int *fds, size_t *fd_count, int flags) {
  struct iovec parts[2] = {{head, head_length}, {body, body_length}};
  union control control;
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = body_length > 0 ? 2 : 1};
  size_t most = fd_count ? *fd_count : 0;
  if (fd_count) {
    *fd_count = 0;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
  }
  ssize_t got;
  do {
    got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return -1;
  for (struct cmsghdr *header = fd_count ? CMSG_FIRSTHDR(&message) : NULL; header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      if (*fd_count < most)
        fds[(*fd_count)++] = fd;
      else
        close(fd);
    }
  }
  return got;
}
