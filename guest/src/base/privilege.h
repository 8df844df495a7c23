/* Who may do what: capabilities, identities, and what a process of the guest does not let others see. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Who a command or worker becomes. */
struct identity {
  uint32_t uid, gid;
  bool change;        /* false: stay what the guest is (--not-init) */
  uint64_t keep_caps; /* capability bits it may hold: none but for root */
};

/*
 * Of file workers; within the 65,536 ids that a sandbox usually has, in a range that distributions leave alone. The
 * spare one is for a sandbox whose own user is the first.
 */
enum { WORKER_UID = 65520, WORKER_UID_SPARE = 65521 };

/*
 * Reads a filter of system calls (struct sock_filter, one after the other) to the descriptor's end and obeys it from
 * now on, as does everything started later.
 */
bool obey_filter(int fd);
/* What root commands may hold; see docs/guest-protocol.md. */
uint64_t root_capabilities(void);
/* Bits this process holds and may use. */
uint64_t held_capabilities(void);
/* Keeps only these of its own, in every set. */
bool limit_capabilities(uint64_t keep);
/* What the guest itself needs. */
uint64_t guest_capabilities(bool allow_root, bool transparent);
/*
 * Becomes the identity for good: ids, groups, capability sets, bounding set, no_new_privs. False with errno set.
 * Async-signal-safe.
 */
bool become(const struct identity *identity);
/*
 * Becomes the identity for files alone. Its permissions there are the identity's, but its uids are nobody's: the kernel
 * lets no process of the identity signal it, trace it, or change its limits and its share of the processor. For good,
 * like `become`.
 */
bool become_for_files(const struct identity *identity);
/* Whose permissions the kernel goes by for files. */
uid_t file_uid(void);
/* Nothing else may run under the uids of file workers. */
bool is_worker_uid(uint64_t uid);
/* No ptrace, no /proc/<pid>/mem, no core for processes of the same uid. */
void hide_self(void);
