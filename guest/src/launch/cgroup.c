/*
 * The cgroups that a sandbox sees: those of its work, read-only, as if nothing were above them. A program finds the
 * limits it runs under and can size itself by them, but learns nothing about the machine.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Joins the work cgroups, creates a namespace there, and holds it until the parent has opened it. */
__attribute__((noreturn)) static void hold_namespace(const struct plan *plan, int ready, int release) {
  die_with_parent();
  for (size_t i = 0; i < plan->count; i++) {
    if (strcmp(plan->records[i].verb, "cgroup-work") != 0) continue;
    const char *path = plan->records[i].fields[0];
    cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) launch_fail("cgroup", "%s", path);
  }
  if (unshare(CLONE_NEWCGROUP) != 0) launch_fail("cgroup", "cannot create a cgroup namespace");
  /* After a change of identity, not even the parent may look into this process. */
  if (prctl(PR_SET_DUMPABLE, 1) != 0) launch_fail("cgroup", "cannot let the parent open the namespace");
  if (!write_full(ready, "r", 1)) _exit(1);
  char byte;
  while (read(release, &byte, 1) < 0 && errno == EINTR) continue;
  _exit(0);
}

struct work_namespace start_work_namespace(const struct plan *plan) {
  struct work_namespace made = {.ready = -1, .release = -1};
  bool wanted = false;
  for (size_t i = 0; i < plan->count; i++) wanted = wanted || strcmp(plan->records[i].verb, "cgroup-work") == 0;
  if (!wanted) return made;
  int ready[2], release[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(release, O_CLOEXEC) != 0) launch_fail("cgroup", "cannot create a pipe");
  made.holder = fork();
  if (made.holder < 0) launch_fail("cgroup", "cannot fork");
  if (made.holder == 0) {
    close(ready[0]);
    close(release[1]);
    hold_namespace(plan, ready[1], release[0]);
  }
  close(ready[1]);
  close(release[0]);
  made.ready = ready[0];
  made.release = release[1];
  return made;
}

int finish_work_namespace(struct work_namespace *made) {
  if (made->holder == 0) return -1;
  char byte, path[64];
  /* The child has reported what failed. */
  if (read_full(made->ready, &byte, 1) != 1) _exit(125);
  snprintf(path, sizeof path, "/proc/%d/ns/cgroup", made->holder);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) launch_fail("cgroup", "%s", path);
  close(made->ready);
  close(made->release);
  while (waitpid(made->holder, NULL, 0) < 0 && errno == EINTR) continue;
  made->holder = 0;
  return fd;
}

void enter_work_namespace(int fd) {
  if (fd >= 0 && setns(fd, CLONE_NEWCGROUP) != 0) launch_fail("cgroup", "cannot enter the cgroup namespace");
}

static void show_at(struct launch *launch, const char *source, const char *point) {
  cleanup_fd int tree = prepared_tree(launch, source, "ro,noexec", "-");
  attach_at(launch, tree, "/", point, false);
}

void show_cgroups(struct launch *launch, const struct plan *plan) {
  char folder[64], point[128];
  snprintf(folder, sizeof folder, "%s/bundle/cgroup", launch->stage);
  bool made = false;
  for (size_t i = 0; i < plan->count; i++) {
    const struct plan_record *record = &plan->records[i];
    if (strcmp(record->verb, "cgroup-view") != 0) continue;
    if (!made && mkdir(folder, 0755) != 0) launch_fail("stage", "%s", folder);
    made = true;
    if (strcmp(record->fields[0], ".") == 0) {
      show_at(launch, record->fields[1], folder);
      return;
    }
    if (snprintf(point, sizeof point, "%s/%s", folder, record->fields[0]) >= (int)sizeof point) launch_fail("plan", "a controller name is too long");
    if (mkdir(point, 0755) != 0) launch_fail("stage", "%s", point);
  }
  if (!made) return;
  /* The folder that contains the hierarchies is as read-only as they are. */
  show_at(launch, folder, folder);
  for (size_t i = 0; i < plan->count; i++) {
    const struct plan_record *record = &plan->records[i];
    if (strcmp(record->verb, "cgroup-view") != 0) continue;
    snprintf(point, sizeof point, "%s/%s", folder, record->fields[0]);
    show_at(launch, record->fields[1], point);
  }
}
