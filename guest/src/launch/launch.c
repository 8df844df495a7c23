/*
 * `caisson-guest launch <what>`: performs the steps of a sandbox's life on the host that Node cannot perform. It reads
 * a plan from stdin (see plan.c), writes lines to stdout and ends.
 *
 *   run         builds and starts a sandbox: `listening`, then `pid N`
 *   attach      mounts a workspace into a live sandbox
 *   new-root    gives a live sandbox another root
 *   namespaces  creates a user and a network namespace: `pid N`, which holds them until descriptor 3 ends
 *   remove      removes trees that an agent wrote
 *   measure     `bytes N` below the given trees
 *   inside      runs a program as root of the user namespace
 *   mappable    checks that the owners of files in a folder can be mapped
 *   point       stores what changed in writable layers since their last point: `part NAME FILES BYTES CHANGED`
 *   snapshot    copies a subvolume, and says what changed in it: `transaction N`, `part tree FILES BYTES CHANGED`
 *   volume      mounts an image of the state folder, if it is not mounted
 *   dump        stores the processes of a sandbox and leaves them stopped: `socket INODE`, which a restore needs
 *   merge       makes one layer, the first argument, of the others, topmost first
 *
 * A failure is one line, `fail STEP ERRNO TEXT`, and status 125. A root launcher keeps the host's identity until it has
 * created the mounts; a rootless one enters the user namespace first. If its caller dies before the OCI runtime has
 * detached, the launcher dies too. Since every mount is in its own namespace, only files and cgroups can remain.
 */
#include "launch/launch.h"
#include "launch/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

void launch_fail(const char *step, const char *format, ...) {
  int error = errno;
  char line[4096];
  int length = snprintf(line, sizeof line, "fail %s %d ", step, error);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  write_full(STDOUT_FILENO, line, (size_t)length);
  _exit(125);
}

static int hold(struct launch *launch) {
  int release = -1;
  pid_t pid = hold_namespaces(launch, &release);
  dprintf(STDOUT_FILENO, "pid %d\n", pid);
  char byte;
  /*
   * The plan came from a separate file or pipe; a byte or the end on descriptor 3 means that the caller has opened the
   * namespaces.
   */
  while (read(3, &byte, 1) < 0 && errno == EINTR) continue;
  close(release);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  return 0;
}

static int remove_all(const struct plan *plan) {
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "remove") == 0 && remove_tree(plan->records[i].fields[0]) != 0)
      launch_fail("remove", "%s", plan->records[i].fields[0]);
  return 0;
}

static char **arguments(const struct plan *plan, size_t *count) {
  char **list = xalloc((plan->count + 1) * sizeof *list);
  *count = 0;
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "argument") == 0) list[(*count)++] = (char *)plan->records[i].fields[0];
  return list;
}

static int run_inside(const struct plan *plan) {
  size_t count;
  char **argv = arguments(plan, &count);
  if (count == 0) launch_fail("plan", "nothing to run");
  execvp(argv[0], argv);
  launch_fail("inside", "%s", argv[0]);
}

static int measure(const struct plan *plan) {
  size_t count;
  cleanup_free char **paths = arguments(plan, &count);
  return measure_main(paths);
}

static int merge(const struct launch *launch, const struct plan *plan) {
  size_t count;
  cleanup_free char **paths = arguments(plan, &count);
  if (count < 2) launch_fail("plan", "nothing to merge");
  merge_layers(paths[0], paths + 1, count - 1, launch->rootless);
  return 0;
}

static int map_all(struct launch *launch, const struct plan *plan) {
  for (size_t i = 0; i < plan->count; i++)
    if (strcmp(plan->records[i].verb, "layer") == 0)
      close(prepared_tree(launch, plan->records[i].fields[1], plan->records[i].fields[2], plan->records[i].fields[3]));
  return 0;
}

int launch_main(int argc, char **argv) {
  pid_t parent = getppid();
  die_with_parent();
  if (getppid() != parent) _exit(125);
  signal(SIGPIPE, SIG_IGN);
  if (argc != 2) die("usage: caisson-guest launch run|attach|new-root|namespaces|remove|measure|inside|mappable|point|snapshot|volume|merge|dump < plan");
  const char *what = argv[1];
  struct launch launch = {.netns_fd = -1};
  /* Static: it is needed until the process ends, which is soon. */
  static struct plan plan;
  plan = read_plan(STDIN_FILENO);
  for (size_t i = 0; i < plan.count; i++) take_identity(&launch, &plan.records[i]);
  if (strcmp(what, "run") == 0) return run_sandbox(&launch, &plan);
  if (strcmp(what, "namespaces") == 0) return hold(&launch);
  if (strcmp(what, "attach") == 0) return attach_workspace(&launch, &plan);
  if (strcmp(what, "new-root") == 0) return give_new_root(&launch, &plan);
  if (strcmp(what, "mappable") == 0) return map_all(&launch, &plan);
  if (strcmp(what, "dump") == 0) return dump_memory(&launch, &plan);
  int mounts = -1;
  char *disk = NULL;
  dev_t device = 0;
  for (size_t i = 0; i < plan.count; i++)
    if (strcmp(plan.records[i].verb, "disk-inside") == 0) join_disk(&launch, plan.records[i].fields[0], &mounts, &disk, &device);
  if (launch.rootless) enter_user_namespace(&launch);
  if (mounts >= 0) open_inside(&launch, mounts, disk, device);
  if (strcmp(what, "remove") == 0) return remove_all(&plan);
  if (strcmp(what, "measure") == 0) return measure(&plan);
  if (strcmp(what, "merge") == 0) return merge(&launch, &plan);
  if (strcmp(what, "point") == 0) return take_point(&launch, &plan);
  if (strcmp(what, "volume") == 0) return mount_volume(&plan);
  if (strcmp(what, "snapshot") == 0) return take_snapshots(&plan);
  if (strcmp(what, "inside") == 0) return run_inside(&plan);
  die("launch: unknown command %s", what);
}
