/*
 * The host side of a sandbox's start: namespaces, mounts and cgroups, then the OCI runtime. See launch.c for the plan
 * it reads.
 */
#pragma once

#include "base/base.h"

#define ID_MAP_LINES_MAX 8
#define ID_MAPS_MAX 80
#define PASSED_FDS_MAX 16
#define USERNS_LIMITS_MAX 8
#define PLAN_BYTES_MAX (8 * 1024 * 1024)

/* The kernel's numbers, since C libraries older than the calls are common; every architecture shares them. */
enum { CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_OPENAT2 = 437, CALL_MOUNT_SETATTR = 442 };
enum { TREE_CLONE = 1, MOVE_FROM_EMPTY = 0x4, MOVE_TO_EMPTY = 0x40, RECURSIVE = 0x8000 };

struct id_range {
  uint32_t inside, outside, count;
};
/*
 * A mapping of user and group ids, named in the plan. The one named `sandbox` is that of the sandbox's user namespace.
 */
struct id_map {
  const char *name;
  struct id_range uids[ID_MAP_LINES_MAX], gids[ID_MAP_LINES_MAX];
  size_t uid_lines, gid_lines;
  int fd; /* a user namespace with this mapping, once it was needed */
};

struct plan_record {
  const char *verb;
  const char **fields;
};
struct plan {
  char *text;
  struct plan_record *records;
  size_t count;
};

struct launch {
  bool rootless;
  /* Every address is to lead to the sandbox itself. */
  bool transparent;
  struct id_map maps[ID_MAPS_MAX];
  size_t map_count;
  /*
   * What the kernel is to count for each id of the sandbox's user namespace: the name in /proc/sys/user, and the most.
   */
  struct {
    const char *name, *most;
  } userns_limits[USERNS_LIMITS_MAX];
  size_t userns_limit_count;
  int netns_fd;
  const char *newuidmap, *newgidmap;
  /* Where the private tmpfs with bundle and layers is mounted; seen by nobody outside this mount namespace. */
  const char *stage;
};

/* Tells the caller which step failed, with errno and a text, on stdout, and ends with status 125. */
__attribute__((noreturn, format(printf, 2, 3))) void launch_fail(const char *step, const char *format, ...);

/* plan.c: `verb` and its fields, each ended by NUL, up to the end of the input. */
struct plan read_plan(int fd);
uint32_t plan_number(const char *text);
uint64_t plan_bytes(const char *text);
/* Takes the records about identity: mode, maps, descriptors of namespaces, programs. */
bool take_identity(struct launch *launch, const struct plan_record *record);

/* namespace.c */
struct id_map *map_named(struct launch *launch, const char *name);
/* Gives the descriptor of a user namespace with that map, making one when there is none yet. */
int user_namespace(struct launch *launch, struct id_map *map);
/*
 * Makes the sandbox's user namespace and a network namespace that belongs to it, held by a child until `release` is
 * closed.
 */
pid_t hold_namespaces(struct launch *launch, int *release);
/* Becomes root inside the sandbox's user namespace. */
void enter_user_namespace(struct launch *launch);
/* Goes into the network namespace given, or a new one with loopback up. */
void enter_network(struct launch *launch);
void die_with_parent(void);
/* route.c: in the network namespace we are in, makes every address one of its own. Nothing leaves it all the same. */
void route_everything_here(void);
/* The host's id of an id inside. */
uid_t outside_uid(struct launch *launch, uint32_t inside);
gid_t outside_gid(struct launch *launch, uint32_t inside);

/* mount.c */
void private_mounts(void);
/* With all mounts below it; what is not a mount point is left alone. */
void make_read_only(const char *path);
int clone_tree(const char *path, bool recursive, const char *step);
/* Options: ro, noexec, rec, file, dev, suid; a map's name or "-". */
int prepared_tree(struct launch *launch, const char *source, const char *options, const char *map);
void attach_at(struct launch *launch, int tree, const char *root, const char *target, bool file);
/*
 * Records of the plan: `mkdir PATH MODE UID GID`, `layer NAME SOURCE OPTIONS MAP`, `overlay LAYERS UPPER WORK TARGET`.
 */
void make_owned_folder(struct launch *launch, const char **fields);
void add_layer(struct launch *launch, const char **fields);
void mount_overlay(struct launch *launch, const char **fields, const char *target);
/* The same overlay as a tree that is mounted nowhere yet. */
int overlay_tree(struct launch *launch, const char **fields);
/* A path as it is below a root, links included; nothing leaves it. */
int open_in_root(int root, const char *path, uint64_t flags);
/* Nothing that the plan names is hidden by it. */
void mount_stage(struct launch *launch, const struct plan *plan);
void mount_image(const char *image, const char *target);
bool has_option(const char *options, const char *name);

/*
 * cover.c: `mask NAME OF PATH DEVICE INODE`: in the layer NAME, which is to go above the layer OF, that path of OF is
 * as if it were not there.
 */
void mask_below(struct launch *launch, const char **fields);
/* An empty folder that nobody can write to, to be mounted once. */
int empty_tree(struct launch *launch);
/*
 * `cover TARGET PATH DEVICE INODE`: mounts it over that path of what is mounted at the target, which is a path below
 * the root.
 */
void cover_below(int root, int empty, const char **fields);
/*
 * `hold TARGET PATH`: what is at that path of what is mounted at the target, and every folder on the way, becomes a
 * mount point: nobody inside can move it away and put another in its place.
 */
void hold_below(int root, const char **fields);

/*
 * cgroup.c: a cgroup namespace whose root are the groups of the work. It is made by a child, beside the mounts: to join
 * a group takes a while.
 */
struct work_namespace {
  pid_t holder;
  int ready, release;
};
/* The caller must have the capabilities that the namespace is to belong to. */
struct work_namespace start_work_namespace(const struct plan *plan);
/* Gives its descriptor, or -1 where the plan has no groups. */
int finish_work_namespace(struct work_namespace *made);
void enter_work_namespace(int fd);
/*
 * Records `cgroup-view NAME DIR`: prepares a read-only folder `cgroup` in the bundle, with DIR as NAME in it, or as
 * itself where NAME is a dot.
 */
void show_cgroups(struct launch *launch, const struct plan *plan);

/* tree.c: trees written by agents. Links are never followed, depth does not matter. */
int remove_tree(const char *path);
/* Removes what is in a folder, but for names with the prefix. */
int remove_others(const char *folder, const char *prefix);
int measure_main(char **paths);

/* build.c: does what a record asks for, when it is about the sandbox's root; others are left alone. */
void build_part(struct launch *launch, const struct plan_record *record);

/*
 * leash.c: the guest waits for its number to be written down, and says so by a socket that tells who wrote. Our end is
 * the second.
 */
void make_leash(int leash[2]);
/*
 * Gives the guest's number as soon as it runs; `runtime` becomes 0 when it ended before that. Fails for whichever
 * fails.
 */
pid_t await_guest(struct launch *launch, int leash, pid_t *runtime);
/*
 * Writes the number down in the sandbox's folder, lets the guest go on, and tells the caller. From here on nothing dies
 * with the caller.
 */
void let_go(int leash, pid_t guest);
int finish_runtime(struct launch *launch, pid_t pid);

/*
 * sealed.c: the filter of system calls for the guest, and a copy of the OCI runtime, or -1 where it is better started
 * as it is.
 */
int filter_file(const char *hex);
int sealed_copy(const char *path);

/* run.c, attach.c */
int run_sandbox(struct launch *launch, const struct plan *plan);
int attach_workspace(struct launch *launch, const struct plan *plan);
