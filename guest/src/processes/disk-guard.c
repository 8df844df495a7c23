/*
 * A sandbox without a disk limit shares the disk below it with the whole machine. The disk guard ends the sandbox's
 * work before that disk is full. It checks the free space, more often the less there is, and never while nothing runs.
 * Process 1 does this because it is always running; a sandbox may outlive its creator.
 */
#include "processes/disk-guard.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include "processes/process.h"
#include "processes/processes.h"
#include "processes/supervisors.h"

#define MIB (UINT64_C(1) << 20)
#define RESERVE_BYTES_MIN (256 * MIB)
#define RESERVE_BYTES_MAX (10240 * MIB)
#define RESERVE_FILES_MAX UINT64_C(500000)
enum {
  RESERVE_SHARE = 20, /* the reserve is one part in this many of the disk */
  /*
   * Upper bounds on how fast programs can write or create files; the system call filter has no call that allocates
   * space at once.
   */
  BYTES_PER_MS_MAX = 4 << 20,
  FILES_PER_MS_MAX = 1000,
  CHECK_MS_MIN = 5,
  CHECK_MS_MAX = 2000,
  WATCHED = 2,
};

struct watched {
  const char *path;
  bool guarded;
  struct room bytes, files;
};

struct disk_guard {
  struct guest *guest;
  struct timer timer;
  struct watched watched[WATCHED];
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

struct room room_open(uint64_t available, uint64_t reserve) {
  uint64_t floor = least(reserve, available / 2);
  return (struct room){.floor = floor, .trigger = floor};
}

enum room_level room_look(struct room *room, uint64_t available) {
  if (available >= room->floor + room->floor / 8) room->trigger = room->floor;
  if (available < room->floor / 2) return ROOM_NONE;
  if (available >= room->trigger) return ROOM_ENOUGH;
  uint64_t step = room->floor / 16;
  room->trigger = most(room->floor / 2, available > step ? available - step : 0);
  return ROOM_SHORT;
}

uint64_t room_left(const struct room *room, uint64_t available) {
  if (room->floor == 0) return UINT64_MAX;
  return available > room->trigger ? available - room->trigger : 0;
}

/* A remote server may keep us waiting, and its disk is not the machine's. */
static bool is_remote(const struct statfs *found) {
  static const uint32_t types[] = {0x6969, 0x65735546, 0xff534d42, 0xfe534d42, 0x01021997, 0x00c36400, 0x5346414f, 0x517b};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
    if ((uint32_t)found->f_type == types[i]) return true;
  return false;
}

static void watch(struct watched *watched, const char *path) {
  struct statfs found;
  watched->path = path;
  watched->guarded = statfs(path, &found) == 0 && !is_remote(&found);
  if (!watched->guarded) return;
  uint64_t block = (uint64_t)found.f_bsize, share = (uint64_t)found.f_blocks * block / RESERVE_SHARE;
  watched->bytes = room_open((uint64_t)found.f_bavail * block, most(RESERVE_BYTES_MIN, least(share, RESERVE_BYTES_MAX)));
  /* Some file systems do not limit the number of files, and report a total of zero. Then there is nothing to guard. */
  watched->files = room_open((uint64_t)found.f_ffree, least((uint64_t)found.f_files / RESERVE_SHARE, RESERVE_FILES_MAX));
}

static enum room_level look(struct watched *watched, uint64_t *wait_ms) {
  struct statfs found;
  if (!watched->guarded || statfs(watched->path, &found) != 0) return ROOM_ENOUGH;
  uint64_t bytes = (uint64_t)found.f_bavail * (uint64_t)found.f_bsize, files = (uint64_t)found.f_ffree;
  enum room_level level = room_look(&watched->bytes, bytes);
  enum room_level of_files = room_look(&watched->files, files);
  *wait_ms = least(*wait_ms, least(room_left(&watched->bytes, bytes) / BYTES_PER_MS_MAX, room_left(&watched->files, files) / FILES_PER_MS_MAX));
  return of_files > level ? of_files : level;
}

static void end_all_work(struct guest *guest) {
  for (struct supervisor *s = guest->processes->supervisors, *next; s; s = next) {
    next = s->next;
    if (s->process) process_kill(s->process, KIND_DISK);
  }
}

static enum room_level check(struct disk_guard *guard) {
  enum room_level level = ROOM_ENOUGH;
  uint64_t wait_ms = CHECK_MS_MAX;
  for (size_t i = 0; i < WATCHED; i++) {
    enum room_level found = look(&guard->watched[i], &wait_ms);
    if (found > level) level = found;
  }
  if (level != ROOM_ENOUGH) end_all_work(guard->guest);
  timer_set(&guard->guest->loop, &guard->timer, guard->guest->loop.now + most(wait_ms, CHECK_MS_MIN));
  return level;
}

static void on_check(struct timer *timer) {
  struct disk_guard *guard = container_of(timer, struct disk_guard, timer);
  if (supervisors_busy(guard->guest)) check(guard);
}

bool disk_guard_admits(struct guest *guest) {
  if (!guest->guards_disk) return true;
  struct disk_guard *guard = guest->processes->disk_guard;
  if (guard == NULL) {
    guard = guest->processes->disk_guard = xalloc(sizeof *guard);
    guard->guest = guest;
    guard->timer.fire = on_check;
    watch(&guard->watched[0], "/");
    watch(&guard->watched[1], "/workspace");
  }
  return check(guard) != ROOM_NONE;
}
