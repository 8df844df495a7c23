/*
 * Stores what changed in writable layers since their last point: `part NAME UPPER OLD-INDEX NEW-INDEX OUT VIEW`. If the
 * plan also mounts the layers over what is below them, VIEW is where: moved folders are complete only there.
 */
#include "launch/launch.h"
#include "launch/layers.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { TICKS_MAX = 100, TICK_WAIT_US = 250 };

uint64_t coarse_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t next_tick(uint64_t since_ns) {
  uint64_t now = coarse_ns();
  for (int waited = 0; now == since_ns && waited < TICKS_MAX; waited++) {
    usleep(TICK_WAIT_US);
    now = coarse_ns();
  }
  return now;
}

static bool mount_view(struct launch *launch, const struct plan *plan) {
  bool viewed = false;
  bool mounted = false;
  for (size_t i = 0; i < plan->count; i++) {
    viewed = viewed || strcmp(plan->records[i].verb, "overlay") == 0;
    mounted = mounted || strcmp(plan->records[i].verb, "disk-live") == 0;
  }
  if (!viewed && !mounted) return false;
  private_mounts();
  mount_stage(launch, plan);
  for (size_t i = 0; i < plan->count; i++) build_part(launch, &plan->records[i]);
  return viewed;
}

static int open_view(struct launch *launch, const char *path) {
  char root[64];
  snprintf(root, sizeof root, "%s/bundle/rootfs", launch->stage);
  cleanup_fd int base = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int view = base < 0 ? -1 : open_in_root(base, path, O_PATH | O_DIRECTORY);
  if (view < 0) launch_fail("point", "%s", path);
  return view;
}

int take_point(struct launch *launch, const struct plan *plan) {
  struct copying copying = {.bytes_max = UINT64_MAX, .rootless = launch->rootless};
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "bytes-max") == 0) copying.bytes_max = plan_bytes(plan->records[i].fields[0]);
  bool viewed = mount_view(launch, plan);
  uint64_t now_ns = next_tick(coarse_ns());
  for (size_t i = 0; i < plan->count; i++) {
    if (strcmp(plan->records[i].verb, "part") != 0) continue;
    const char **fields = plan->records[i].fields;
    char upper[PATH_MAX];
    place(launch, fields[1], upper);
    /* A disk has only the parts to which a sandbox has written. */
    if (launch->live[0] != 0 && access(upper, F_OK) != 0) continue;
    struct take take = {.upper = upper, .old_index = fields[2], .new_index = fields[3], .out = fields[4], .view = -1};
    if (viewed) take.view = open_view(launch, fields[5]);
    uint64_t files = copying.files, bytes = copying.bytes;
    take_layer(&take, &copying, now_ns);
    struct stat status;
    bool changed = lstat(take.out, &status) == 0;
    dprintf(STDOUT_FILENO, "part %s %llu %llu %d\n", fields[0], (unsigned long long)(copying.files - files),
            (unsigned long long)(copying.bytes - bytes), changed);
    close_fd(&take.view);
  }
  return 0;
}
