/* When a sandbox's work is ended as the disk below it fills, and when work may start again. */
#include <assert.h>
#include <stdio.h>

#include "processes/disk-guard.h"

enum { GIB = 1024 };

int main(void) {
  /* A large disk keeps its reserve; a small or full one keeps half of what is free. */
  assert(room_open(100 * GIB, 10 * GIB).floor == 10 * GIB);
  assert(room_open(8 * GIB, 10 * GIB).floor == 4 * GIB);

  struct room room = room_open(100 * GIB, 16 * GIB);
  assert(room_look(&room, 16 * GIB) == ROOM_ENOUGH);
  assert(room_left(&room, 20 * GIB) == 4 * GIB);
  /*
   * Below the floor, the guard ends all work once. Later work may use a sixteenth of the floor before the guard ends it
   * again, until half the floor is reached.
   */
  assert(room_look(&room, 16 * GIB - 1) == ROOM_SHORT);
  assert(room_look(&room, 16 * GIB - 1) == ROOM_ENOUGH);
  int ended = 0;
  uint64_t available = 16 * GIB - 1;
  for (; room_look(&room, available) != ROOM_NONE; available -= GIB / 8) {
    struct room same = room;
    ended += room_look(&same, available) == ROOM_SHORT;
  }
  assert(available < 8 * GIB && available > 7 * GIB);
  for (uint64_t more = available; more > 0; more /= 2) assert(room_look(&room, more) == ROOM_NONE);
  /* A little free space does not reset it; enough does. */
  assert(room_look(&room, 17 * GIB) == ROOM_ENOUGH && room.trigger < 16 * GIB);
  assert(room_look(&room, 18 * GIB) == ROOM_ENOUGH && room.trigger == 16 * GIB);

  /* However fast the space shrinks, work is ended at every check that finds less than before. */
  room = room_open(100 * GIB, 16 * GIB);
  assert(room_look(&room, 9 * GIB) == ROOM_SHORT);
  assert(room_look(&room, 2 * GIB) == ROOM_NONE);

  /* Nothing to guard: never short, and no reason to check soon. */
  room = room_open(0, 0);
  assert(room_look(&room, 0) == ROOM_ENOUGH && room_left(&room, 0) == UINT64_MAX);
  puts("ok");
  return 0;
}
