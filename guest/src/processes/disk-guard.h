/* What a sandbox leaves free of a disk that is not its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of bytes, or of files: how many stay free, and where work is ended next. */
struct room {
  uint64_t floor, trigger;
};

enum room_level {
  ROOM_ENOUGH,
  ROOM_SHORT, /* work is to be ended, and may be started again to make room */
  ROOM_NONE,  /* and not even that */
};

/* `reserve` is what should stay free; where there is not even twice that, half of what there is. */
struct room room_open(uint64_t available, uint64_t reserve);
/* Short once for each sixteenth below the floor, and none below half of it. */
enum room_level room_look(struct room *room, uint64_t available);
/* How much may be used up before there is anything to be done. */
uint64_t room_left(const struct room *room, uint64_t available);

struct guest;
/* Before a command starts: whether there is room for it at all. Looks again by itself as long as anything runs. */
bool disk_guard_admits(struct guest *guest);
