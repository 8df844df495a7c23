/* The space that a sandbox leaves free on a disk that it does not own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes or files: how many must stay free, and below how many work is ended next. */
struct room {
  uint64_t floor, trigger;
};

enum room_level {
  ROOM_ENOUGH,
  ROOM_SHORT, /* work must end, and may be started again to make room */
  ROOM_NONE,  /* no work may start either */
};

/* `reserve` is what should stay free; if less than twice that is available, half of what is available stays free. */
struct room room_open(uint64_t available, uint64_t reserve);
/* Returns ROOM_SHORT once for each sixteenth below the floor, and ROOM_NONE below half of it. */
enum room_level room_look(struct room *room, uint64_t available);
/* Returns how much may be used up before work has to end. */
uint64_t room_left(const struct room *room, uint64_t available);

struct guest;
/* Returns whether there is room to start a command. Keeps checking as long as anything runs. */
bool disk_guard_admits(struct guest *guest);
