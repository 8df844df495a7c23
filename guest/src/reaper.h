/*
 * Process 1 of a sandbox whose memory can be stored. The guest is its child, because a memory image can only be
 * restored into an existing sandbox if it does not contain process 1. It also has the guest's outside descriptors while
 * an image is taken, and gives a restored guest new ones.
 */
#pragma once

#include "connection/guest.h"
#include "options.h"

/* Returns in the child that becomes the guest. Process 1 stays here until the guest has ended. */
void become_reaper(struct guest *guest, const struct options *options);
/*
 * The process that starts a guest gets the guest's pid from the kernel, records it, and then releases the guest. If
 * that process dies first, nothing could ever find the guest, so the guest ends too. `passed`: a descriptor to pass to
 * that process, or -1.
 */
void wait_for_leash(int fd, int passed);
