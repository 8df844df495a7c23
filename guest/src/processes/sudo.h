/*
 * The address where the `sudo` client and the guest meet: a name in the sandbox's network namespace, so no file can be
 * replaced.
 */
#pragma once

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "wire/frame.h"

#define SUDO_NAME "caisson-sudo"

struct sudo_session;

/* sudo-server.c: tell a client what happened to its command. */
void sudo_leader_ended(struct sudo_session *session, int status);
void sudo_started(struct sudo_session *session, pid_t pid);
void sudo_failed(struct sudo_session *session, enum error_code code, const char *message);

/* The address starts with a NUL: it is not a path. */
static inline socklen_t sudo_address(struct sockaddr_un *address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path + 1, SUDO_NAME, sizeof SUDO_NAME - 1);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof SUDO_NAME);
}
