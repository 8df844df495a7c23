/*
 * User and network namespaces. The parent of a short-lived child writes a mapping, since a process cannot map itself.
 */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/privilege.h"

extern char **environ;

struct id_map *map_named(struct launch *launch, const char *name) {
  for (size_t i = 0; i < launch->map_count; i++)
    if (strcmp(launch->maps[i].name, name) == 0) return &launch->maps[i];
  if (launch->map_count == ID_MAPS_MAX) launch_fail("plan", "more than %d maps", ID_MAPS_MAX);
  struct id_map *map = &launch->maps[launch->map_count++];
  *map = (struct id_map){.name = name, .fd = -1};
  return map;
}

void die_with_parent(void) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) launch_fail("namespace", "cannot request to die with the parent");
}

static uint32_t outside(const struct id_range *lines, size_t count, uint32_t inside) {
  for (size_t i = 0; i < count; i++)
    if (inside >= lines[i].inside && inside - lines[i].inside < lines[i].count) return lines[i].outside + (inside - lines[i].inside);
  launch_fail("plan", "id %u is not mapped", inside);
}

static void loopback_up(void) {
  cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo"};
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0) launch_fail("network", "cannot bring up loopback");
}

static void write_map(pid_t pid, const char *file, const struct id_range *lines, size_t count) {
  char path[64], text[ID_MAP_LINES_MAX * 40];
  int length = 0;
  for (size_t i = 0; i < count; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%u %u %u\n", lines[i].inside, lines[i].outside, lines[i].count);
  snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, (size_t)length) != length) launch_fail("map", "the kernel refused %s", file);
}

/* Starts newuidmap or newgidmap: set-user-id programs that check /etc/subuid and /etc/subgid. */
static pid_t start_mapper(const char *program, pid_t pid, const struct id_range *lines, size_t count) {
  static char numbers[ID_MAP_LINES_MAX * 3 + 1][16];
  char *argv[ID_MAP_LINES_MAX * 3 + 3];
  size_t n = 0;
  argv[n++] = (char *)program;
  snprintf(numbers[0], sizeof numbers[0], "%d", pid);
  argv[n++] = numbers[0];
  for (size_t i = 0; i < count; i++) {
    const uint32_t values[] = {lines[i].inside, lines[i].outside, lines[i].count};
    for (size_t v = 0; v < 3; v++) {
      snprintf(numbers[i * 3 + v + 1], sizeof numbers[0], "%u", values[v]);
      argv[n++] = numbers[i * 3 + v + 1];
    }
  }
  argv[n] = NULL;
  pid_t mapper;
  int error = posix_spawn(&mapper, program, NULL, NULL, argv, environ);
  if (error != 0) {
    errno = error;
    launch_fail("mapper", "cannot start %s", program);
  }
  return mapper;
}

static void finish_mapper(pid_t mapper, const char *program) {
  int status = 0;
  while (waitpid(mapper, &status, 0) < 0 && errno == EINTR) continue;
  errno = EPERM;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) launch_fail("mapper", "%s refused the mapping", program);
}

static void write_maps(struct launch *launch, const struct id_map *map, pid_t pid) {
  if (!launch->rootless) {
    write_map(pid, "uid_map", map->uids, map->uid_lines);
    write_map(pid, "gid_map", map->gids, map->gid_lines);
    return;
  }
  if (launch->newuidmap == NULL || launch->newgidmap == NULL) launch_fail("mapper", "newuidmap and newgidmap are required");
  pid_t uids = start_mapper(launch->newuidmap, pid, map->uids, map->uid_lines);
  pid_t gids = start_mapper(launch->newgidmap, pid, map->gids, map->gid_lines);
  finish_mapper(uids, launch->newuidmap);
  finish_mapper(gids, launch->newgidmap);
}

/*
 * The kernel also charges a namespace's usage to its creator. If we are root, the sandbox's own root id creates it, not
 * the machine's. That id keeps its capabilities, since some machines do not let unprivileged users create namespaces.
 */
static bool become_maker(const struct id_map *map) {
  uid_t uid = outside(map->uids, map->uid_lines, 0);
  gid_t gid = outside(map->gids, map->gid_lines, 0);
  uint64_t held = held_capabilities();
  return prctl(PR_SET_KEEPCAPS, 1) == 0 && setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0 &&
         limit_capabilities(held);
}

/*
 * Sets the limits from inside, before the namespace has any other process. If /proc/sys is not writable, only the
 * machine's own limits apply.
 */
static bool limit_namespace(const struct launch *launch) {
  for (size_t i = 0; i < launch->userns_limit_count; i++) {
    char path[64];
    const char *most = launch->userns_limits[i].most;
    snprintf(path, sizeof path, "/proc/sys/user/%s", launch->userns_limits[i].name);
    cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != EROFS) return false;
    if (fd >= 0 && !write_full(fd, most, strlen(most))) return false;
  }
  return true;
}

/*
 * Starts a child in new namespaces. It stays until `hold` is closed. `ready` tells the parent that the namespaces
 * exist.
 */
static pid_t start_holder(struct launch *launch, const struct id_map *map, int flags, int *hold) {
  int ready[2], held[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(held, O_CLOEXEC) != 0) launch_fail("namespace", "cannot create a pipe");
  pid_t pid = fork();
  if (pid < 0) launch_fail("namespace", "cannot fork");
  if (pid == 0) {
    close(ready[0]);
    close(held[1]);
    bool sandbox = strcmp(map->name, "sandbox") == 0;
    bool made = (!sandbox || launch->rootless || become_maker(map)) && unshare(flags) == 0 && (!sandbox || limit_namespace(launch));
    int error = made ? 0 : errno;
    if (error == 0 && (flags & CLONE_NEWNET)) loopback_up();
    if (!write_full(ready[1], &error, sizeof error)) _exit(1);
    char byte;
    while (read(held[0], &byte, 1) < 0 && errno == EINTR) continue;
    _exit(0);
  }
  close(ready[1]);
  close(held[0]);
  int error = 0;
  if (read_full(ready[0], &error, sizeof error) != sizeof error) error = EIO;
  close(ready[0]);
  if (error != 0) {
    errno = error;
    launch_fail("userns", "cannot create a user namespace");
  }
  write_maps(launch, map, pid);
  *hold = held[1];
  return pid;
}

int user_namespace(struct launch *launch, struct id_map *map) {
  if (map->fd >= 0) return map->fd;
  int hold = -1;
  pid_t pid = start_holder(launch, map, CLONE_NEWUSER, &hold);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
  map->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (map->fd < 0) launch_fail("namespace", "%s", path);
  close(hold);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  return map->fd;
}

pid_t hold_namespaces(struct launch *launch, int *release) {
  return start_holder(launch, map_named(launch, "sandbox"), CLONE_NEWUSER | CLONE_NEWNET, release);
}

void enter_user_namespace(struct launch *launch) {
  int fd = user_namespace(launch, map_named(launch, "sandbox"));
  if (setns(fd, CLONE_NEWUSER) != 0) launch_fail("userns", "cannot enter the user namespace");
  if (setresgid(0, 0, 0) != 0 || setgroups(0, NULL) != 0 || setresuid(0, 0, 0) != 0) launch_fail("userns", "cannot become root inside");
  /* A change of identity clears the parent-death signal. */
  die_with_parent();
}

void enter_network(struct launch *launch) {
  if (launch->netns_fd >= 0) {
    if (setns(launch->netns_fd, CLONE_NEWNET) != 0) launch_fail("network", "cannot enter the network namespace");
  } else {
    if (unshare(CLONE_NEWNET) != 0) launch_fail("network", "cannot create a network namespace");
    loopback_up();
  }
  if (launch->transparent) route_everything_here();
}

/* A rootless launcher is already in the namespace, and uses the ids inside. */
uid_t outside_uid(struct launch *launch, uint32_t inside) {
  const struct id_map *map = map_named(launch, "sandbox");
  return launch->rootless ? inside : outside(map->uids, map->uid_lines, inside);
}
gid_t outside_gid(struct launch *launch, uint32_t inside) {
  const struct id_map *map = map_named(launch, "sandbox");
  return launch->rootless ? inside : outside(map->gids, map->gid_lines, inside);
}
