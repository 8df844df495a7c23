/* Mounts a workspace into a running sandbox that was started before its workspace was known. */
#include "launch/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static int open_namespace(const char *pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/ns/%s", plan_number(pid), name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) launch_fail("attach", "%s", path);
  return fd;
}

static int workspace_tree(struct launch *launch, const struct plan *plan, const char **target) {
  int tree = -1;
  for (size_t i = 0; i < plan->count; i++) {
    const char *verb = plan->records[i].verb, **fields = plan->records[i].fields;
    if (strcmp(verb, "mkdir") == 0) make_owned_folder(launch, fields);
    else if (strcmp(verb, "layer") == 0) add_layer(launch, fields);
    else if (strcmp(verb, "mask") == 0) mask_below(launch, fields);
    else if (strcmp(verb, "overlay") == 0) {
      tree = overlay_tree(launch, fields);
      *target = fields[3];
    } else if (strcmp(verb, "bind") == 0) {
      tree = prepared_tree(launch, fields[0], fields[2], fields[3]);
      *target = fields[1];
    }
  }
  if (tree < 0) launch_fail("plan", "nothing to attach");
  return tree;
}

int *empty_trees(struct launch *launch, const struct plan *plan, const char *verb) {
  int *trees = xalloc((plan->count + 1) * sizeof *trees);
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, verb) == 0) trees[i] = empty_tree(launch);
  return trees;
}

static void add_covers(const struct plan *plan, const int *trees) {
  cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "cover") == 0) cover_below(root, trees[i], plan->records[i].fields);
}

int open_sandbox(struct launch *launch, const struct plan *plan, const char **pid) {
  int mounts = -1;
  for (size_t i = 0; i < plan->count; i++) {
    const struct plan_record *record = &plan->records[i];
    if (strcmp(record->verb, "folder") == 0 && chdir(record->fields[0]) != 0) launch_fail("folder", "%s", record->fields[0]);
    if (strcmp(record->verb, "mount-pid") != 0) continue;
    *pid = record->fields[0];
    mounts = open_namespace(*pid, "mnt");
    map_named(launch, "sandbox")->fd = open_namespace(*pid, "user");
  }
  if (mounts < 0) launch_fail("plan", "mount-pid is missing");
  return mounts;
}

int attach_workspace(struct launch *launch, const struct plan *plan) {
  const char *pid = NULL;
  int mounts = open_sandbox(launch, plan, &pid);
  if (launch->rootless) enter_user_namespace(launch);
  private_mounts();
  mount_stage(launch, plan);
  const char *target = NULL;
  int tree = workspace_tree(launch, plan, &target);
  cleanup_free int *covers = empty_trees(launch, plan, "cover");
  if (setns(mounts, CLONE_NEWNS) != 0) launch_fail("attach", "cannot enter the sandbox's mount namespace");
  attach_at(launch, tree, "/", target, false);
  add_covers(plan, covers);
  dprintf(STDOUT_FILENO, "attached\n");
  return 0;
}
