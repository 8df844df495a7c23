/* Reads a plan, the launcher's only input: nothing depends on argument lengths or quoting. */
#include "launch/launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
  const char *verb;
  size_t fields;
} verbs[] = {
    {"mode", 1},         {"map-uid", 4},     {"map-gid", 4},    {"userns-fd", 1},      {"netns-fd", 1},   {"newuidmap", 1},
    {"newgidmap", 1},    {"folder", 1},      {"listen", 1},     {"cgroup-join", 1},    {"cgroup-work", 1}, {"cgroup-oom", 1},
    {"mkdir", 4},        {"disk-image", 1},  {"disk-tmpfs", 1}, {"disk-keep", 1},    {"disk-live", 1},
    {"disk-inside", 1},  {"disk-hide", 0},  {"layer", 4},          {"overlay", 4},    {"bind", 4},
    {"config", 1},       {"runtime", 1},     {"option", 1},     {"id", 1},             {"hide", 1},       {"read-only", 1},       {"mount-pid", 1},
    {"remove", 1},       {"argument", 1},    {"network", 1},        {"token", 1},          {"mask", 5},         {"cover", 4},
    {"hold", 2},         {"userns-limit", 2}, {"keyring", 1},     {"cgroup-view", 2},  {"filter", 1},         {"home", 4},
    {"part", 6},         {"bytes-max", 1},   {"subvolume", 1}, {"snapshot", 2},       {"since", 2},         {"volume", 2},
    {"mask-path", 1},    {"freeze-path", 1},
    {"restore", 3},      {"dump", 3},
};

static size_t arity(const char *verb) {
  for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
    if (strcmp(verbs[i].verb, verb) == 0) return verbs[i].fields;
  launch_fail("plan", "unknown verb %s", verb);
}

static const char *next_field(const char **at, const char *end) {
  const char *field = *at;
  const char *stop = memchr(field, 0, (size_t)(end - field));
  if (stop == NULL) launch_fail("plan", "the plan ends within a record");
  *at = stop + 1;
  return field;
}

static size_t read_all(int fd, char **text) {
  size_t length = 0, room = 256 * 1024;
  char *buffer = xalloc(room);
  for (;;) {
    ssize_t got = read(fd, buffer + length, room - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) launch_fail("plan", "cannot read the plan");
    if (got == 0) break;
    length += (size_t)got;
    if (length == room) {
      if (room >= PLAN_BYTES_MAX) launch_fail("plan", "the plan is longer than %d bytes", PLAN_BYTES_MAX);
      room *= 2;
      buffer = realloc(buffer, room);
      if (buffer == NULL) launch_fail("plan", "out of memory");
    }
  }
  *text = buffer;
  return length;
}

struct plan read_plan(int fd) {
  struct plan plan = {0};
  size_t length = read_all(fd, &plan.text);
  size_t nuls = 0;
  for (size_t i = 0; i < length; i++) nuls += plan.text[i] == 0;
  plan.records = xalloc((nuls + 1) * sizeof *plan.records);
  const char *at = plan.text, *end = plan.text + length;
  while (at < end) {
    struct plan_record *record = &plan.records[plan.count++];
    record->verb = next_field(&at, end);
    size_t fields = arity(record->verb);
    record->fields = xalloc((fields + 1) * sizeof *record->fields);
    for (size_t i = 0; i < fields; i++) record->fields[i] = next_field(&at, end);
  }
  return plan;
}

uint64_t plan_bytes(const char *text) {
  char *stop = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &stop, 10);
  if (errno != 0 || stop == text || *stop != 0 || text[0] == '-') launch_fail("plan", "%s is not a number", text);
  return value;
}

uint32_t plan_number(const char *text) {
  uint64_t value = plan_bytes(text);
  if (value > UINT32_MAX) launch_fail("plan", "%s is too large", text);
  return (uint32_t)value;
}

static void add_line(struct id_range *lines, size_t *count, const char **fields) {
  if (*count == ID_MAP_LINES_MAX) launch_fail("plan", "more than %d lines in a map", ID_MAP_LINES_MAX);
  lines[(*count)++] = (struct id_range){plan_number(fields[1]), plan_number(fields[2]), plan_number(fields[3])};
}

bool take_identity(struct launch *launch, const struct plan_record *record) {
  const char *verb = record->verb, **fields = record->fields;
  if (strcmp(verb, "mode") == 0) {
    launch->rootless = strcmp(fields[0], "rootless") == 0;
  } else if (strcmp(verb, "map-uid") == 0) {
    struct id_map *map = map_named(launch, fields[0]);
    add_line(map->uids, &map->uid_lines, fields);
  } else if (strcmp(verb, "map-gid") == 0) {
    struct id_map *map = map_named(launch, fields[0]);
    add_line(map->gids, &map->gid_lines, fields);
  } else if (strcmp(verb, "userns-fd") == 0) {
    map_named(launch, "sandbox")->fd = (int)plan_number(fields[0]);
  } else if (strcmp(verb, "netns-fd") == 0) {
    launch->netns_fd = (int)plan_number(fields[0]);
  } else if (strcmp(verb, "network") == 0) {
    if (strcmp(fields[0], "transparent") != 0) launch_fail("plan", "unknown network %s", fields[0]);
    launch->transparent = true;
  } else if (strcmp(verb, "userns-limit") == 0) {
    if (launch->userns_limit_count == USERNS_LIMITS_MAX) launch_fail("plan", "more than %d limits", USERNS_LIMITS_MAX);
    launch->userns_limits[launch->userns_limit_count].name = fields[0];
    launch->userns_limits[launch->userns_limit_count++].most = fields[1];
  } else if (strcmp(verb, "newuidmap") == 0) {
    launch->newuidmap = fields[0];
  } else if (strcmp(verb, "newgidmap") == 0) {
    launch->newgidmap = fields[0];
  } else {
    return false;
  }
  return true;
}
