/* Who may do what: capabilities, identities, and what a process of the guest does not let others see. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "order.h"

/* What root commands may hold; see docs/guest-protocol.md. */
uint64_t root_capabilities(void);
/* Bits this process holds and may use. */
uint64_t held_capabilities(void);
/* Keeps only these of its own, in every set. */
bool limit_capabilities(uint64_t keep);
/* What the guest itself needs. */
uint64_t guest_capabilities(bool allow_root, bool transparent);
/* Becomes the identity for good: ids, groups, capability sets, bounding set, no_new_privs. False with errno set. Async-signal-safe. */
bool become(const struct identity *identity);
/* No ptrace, no /proc/<pid>/mem, no core for processes of the same uid. */
void hide_self(void);
