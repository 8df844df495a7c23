/*
 * The clocks that count from the machine's start. Restored processes wait for times on them, so their sandbox gets a
 * time namespace in which these clocks continue from the image, whatever the machine did since.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "launch/launch.h"

#define CLOCK_NAME "clock"

enum { CLOCK_COUNT = 2 };
static const struct {
  const char *name;
  clockid_t id;
} clocks[CLOCK_COUNT] = {{"monotonic", CLOCK_MONOTONIC}, {"boottime", CLOCK_BOOTTIME}};

static const int64_t second = 1000000000;

static int64_t now_ns(clockid_t id) {
  struct timespec now;
  if (clock_gettime(id, &now) != 0) launch_fail("clock", "cannot read a clock");
  return now.tv_sec * second + now.tv_nsec;
}

/* Returns how far a clock of the process is ahead of the machine's. */
static int64_t offset_of(pid_t process, const char *name) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/timens_offsets", process);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return 0;
  const char *line = strstr(text, name);
  long long seconds = 0, nanoseconds = 0;
  if (line == NULL || sscanf(line + strlen(name), "%lld %lld", &seconds, &nanoseconds) != 2) return 0;
  return seconds * second + nanoseconds;
}

void store_clocks(pid_t process, int folder) {
  cleanup_fd int fd = openat(folder, CLOCK_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  bool stored = fd >= 0;
  for (size_t i = 0; i < CLOCK_COUNT; i++)
    stored = stored && dprintf(fd, "%lld\n", (long long)(now_ns(clocks[i].id) + offset_of(process, clocks[i].name))) > 0;
  if (!stored) launch_fail("dump", "%s", CLOCK_NAME);
}

int open_offsets(void) { return open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC); }

void continue_clocks(int images, int offsets) {
  char text[256] = "", lines[256];
  long long stored[CLOCK_COUNT];
  cleanup_fd int fd = openat(images, CLOCK_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%lld %lld", &stored[0], &stored[1]) != CLOCK_COUNT)
    launch_fail("restore", "%s", CLOCK_NAME);
  /* A kernel without time namespaces. */
  if (offsets < 0 || unshare(CLONE_NEWTIME) != 0) return;
  int length = 0;
  for (size_t i = 0; i < CLOCK_COUNT; i++) {
    int64_t ahead = stored[i] - now_ns(clocks[i].id), seconds = ahead / second;
    if (ahead % second < 0) seconds--;
    length += snprintf(lines + length, sizeof lines - (size_t)length, "%s %lld %lld\n", clocks[i].name, (long long)seconds,
                       (long long)(ahead - seconds * second));
  }
  if (write(offsets, lines, (size_t)length) != length) launch_fail("restore", "the clocks cannot continue");
}
