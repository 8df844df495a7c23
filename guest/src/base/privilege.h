/* Privileges: capabilities, identities, and hiding the guest's processes from others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The identity that a command or file worker takes on. */
struct identity {
  uint32_t uid, gid;
  bool change;        /* false: keep the guest's own identity (--not-init) */
  uint64_t keep_caps; /* capability bits it may hold: none unless the identity is root */
};

/*
 * The uids of file workers: within the 65,536 ids that a sandbox usually has, in a range that distributions leave
 * alone. The spare one is for a sandbox whose own user has the first.
 */
enum { WORKER_UID = 65520, WORKER_UID_SPARE = 65521 };

/*
 * Reads a system call filter (an array of struct sock_filter) to the descriptor's end and installs it for this process
 * and everything it starts later.
 */
bool obey_filter(int fd);
/* The capabilities that root commands may hold; see docs/guest-protocol.md. */
uint64_t root_capabilities(void);
/* The permitted capabilities of this process. */
uint64_t held_capabilities(void);
/* Keeps only these capabilities, in every set. */
bool limit_capabilities(uint64_t keep);
/* The capabilities that the guest itself needs. */
uint64_t guest_capabilities(bool allow_root, bool transparent);
/*
 * Becomes the identity permanently: ids, groups, capability sets, bounding set and no_new_privs. Returns false with
 * errno set on failure. Async-signal-safe.
 */
bool become(const struct identity *identity);
/*
 * Becomes the identity for file access only. The process gets the identity's file permissions, but runs under a uid
 * that no command has. So the kernel does not let the identity's processes signal it, trace it, or change its limits or
 * CPU share. Permanent, like `become`.
 */
bool become_for_files(const struct identity *identity);
/* The uid whose permissions the kernel checks for files. */
uid_t file_uid(void);
/* Whether a uid is reserved for file workers; nothing else may run under it. */
bool is_worker_uid(uint64_t uid);
/* Denies processes of the same uid ptrace, /proc/<pid>/mem and core dumps of this process. */
void hide_self(void);
