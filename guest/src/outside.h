/*
 * The guest's descriptors that lead out of the sandbox: its listening socket and connections, its token, the cgroups.
 * No memory image may contain them. While one is taken, process 1 (see reaper.h) has them, and the guest waits.
 */
#pragma once

#include "connection/guest.h"
#include "spawner/order.h"

enum { OUTSIDE_MAX = MESSAGE_FDS_MAX };

enum outside_kind {
  OUTSIDE_PARKED, /* from the guest: keep these until the image is taken. To the guest: the same ones */
  OUTSIDE_FRESH,  /* to a restored guest: those of its new sandbox, without connections */
};

struct outside_message {
  uint8_t kind;
  uint8_t has_oom;
  uint8_t work_count;
};

#define GUEST_NAME "caisson-guest"

/* Gives the descriptors to process 1, and returns when it sent them, or fresh ones. */
void outside_park(struct guest *guest);
