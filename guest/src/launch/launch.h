/*
 * The host side of a sandbox's start: namespaces, mounts and cgroups, then the OCI runtime. See launch.c for the plan
 * it reads.
 */
#pragma once

#include "base/base.h"

#include <limits.h>
#include <sys/types.h>

#define ID_MAP_LINES_MAX 8
#define ID_MAPS_MAX 80
#define PASSED_FDS_MAX 16
#define USERNS_LIMITS_MAX 8
#define PLAN_BYTES_MAX (8 * 1024 * 1024)

/* System call numbers, because C libraries older than the calls are common; all architectures share them. */
enum { CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_OPENAT2 = 437, CALL_MOUNT_SETATTR = 442 };
enum { TREE_CLONE = 1, MOVE_FROM_EMPTY = 0x4, MOVE_TO_EMPTY = 0x40, RECURSIVE = 0x8000 };

struct id_range {
  uint32_t inside, outside, count;
};
/*
 * A mapping of user and group ids, named in the plan. The mapping named `sandbox` belongs to the sandbox's user
 * namespace.
 */
struct id_map {
  const char *name;
  struct id_range uids[ID_MAP_LINES_MAX], gids[ID_MAP_LINES_MAX];
  size_t uid_lines, gid_lines;
  int fd; /* a user namespace with this mapping; -1 until it is needed */
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
  /* Whether every address leads to the sandbox itself. */
  bool transparent;
  struct id_map maps[ID_MAPS_MAX];
  size_t map_count;
  /*
   * Limits for each id of the sandbox's user namespace: the name in /proc/sys/user, and the most that the kernel
   * allows.
   */
  struct {
    const char *name, *most;
  } userns_limits[USERNS_LIMITS_MAX];
  size_t userns_limit_count;
  int netns_fd;
  const char *newuidmap, *newgidmap;
  /* The mount point of the private tmpfs with bundle and layers; invisible outside this mount namespace. */
  const char *stage;
  /* Where the disk of a sandbox or session can be read: below the stage, or by a descriptor. */
  char live[64];
};

/* Reports the failed step with errno and a text on stdout, and ends with status 125. */
__attribute__((noreturn, format(printf, 2, 3))) void launch_fail(const char *step, const char *format, ...);

/* plan.c: reads each `verb` and its fields, terminated by NUL, up to the end of the input. */
struct plan read_plan(int fd);
uint32_t plan_number(const char *text);
uint64_t plan_bytes(const char *text);
/* Applies a record about identity: mode, maps, namespace descriptors, programs. Returns false for any other record. */
bool take_identity(struct launch *launch, const struct plan_record *record);

/* namespace.c */
struct id_map *map_named(struct launch *launch, const char *name);
/* Returns the descriptor of a user namespace with that map; creates it on first use. */
int user_namespace(struct launch *launch, struct id_map *map);
/*
 * Creates the sandbox's user namespace and a network namespace that belongs to it. A child holds them until `release`
 * is closed.
 */
pid_t hold_namespaces(struct launch *launch, int *release);
/* Becomes root inside the sandbox's user namespace. */
void enter_user_namespace(struct launch *launch);
/* Enters the given network namespace, or a new one with loopback up. */
void enter_network(struct launch *launch);
void die_with_parent(void);
/* route.c: makes every address local in the current network namespace. Still nothing leaves it. */
void route_everything_here(void);
/* Returns the host's id for an id inside. */
uid_t outside_uid(struct launch *launch, uint32_t inside);
gid_t outside_gid(struct launch *launch, uint32_t inside);

/* mount.c */
void private_mounts(void);
/* Includes all mounts below it; ignores a path that is not a mount point. */
void make_read_only(const char *path);
/* The same for a tree that is not mounted anywhere yet. */
void make_tree_read_only(int tree, const char *what);
int clone_tree(const char *path, bool recursive, const char *step);
/* Options: ro, noexec, rec, file, dev, suid. `map` is the name of a map or "-". */
int prepared_tree(struct launch *launch, const char *source, const char *options, const char *map);
void attach_at(struct launch *launch, int tree, const char *root, const char *target, bool file);
/* Opens a mount point below the root, and creates what is missing. Links of an image are resolved inside the root. */
int open_target(struct launch *launch, int root, const char *target, bool file);
/* Plan records: `mkdir PATH MODE UID GID`, `layer NAME SOURCE OPTIONS MAP`, `overlay LAYERS UPPER WORK TARGET`. */
void make_owned_folder(struct launch *launch, const char **fields);
void add_layer(struct launch *launch, const char **fields);
void mount_overlay(struct launch *launch, const char **fields, const char *target);
/* Returns the same overlay as a tree that is not mounted anywhere yet. */
int overlay_tree(struct launch *launch, const char **fields);
/* Opens a path as it is below a root, including links; nothing leads out of the root. */
int open_in_root(int root, const char *path, uint64_t flags);
/* Mounts the stage over a folder in which the plan needs nothing. */
void mount_stage(struct launch *launch, const struct plan *plan);
/* Resolves a path of a plan: `disk/…` is on the sandbox's own limited disk, `live/…` on a disk that is only read. */
void place(const struct launch *launch, const char *path, char out[static PATH_MAX]);

/* disk.c */
void mount_image(const char *image, const char *target, const char *type);
/* `disk-live IMAGE`: mounts a disk to read it, even while a sandbox uses it. */
void mount_live(struct launch *launch, const char *image);
/* Puts the disk in memory into the sandbox's root, where nothing inside can reach it: `disk-inside` finds it there. */
void hide_disk(struct launch *launch);
/* `disk-inside PID`: opens the disk of a living sandbox. Call it before its user namespace is entered. */
void join_disk(struct launch *launch, const char *pid, int *mounts, char **path, dev_t *device);
void open_inside(struct launch *launch, int mounts, const char *path, dev_t device);
bool has_option(const char *options, const char *name);

/*
 * cover.c: `mask NAME OF PATH DEVICE INODE`: hides PATH of the layer OF by a whiteout in the layer NAME, which goes
 * above it.
 */
void mask_below(struct launch *launch, const char **fields);
/* Returns an empty read-only folder that can be mounted once. */
int empty_tree(struct launch *launch);
/* `cover TARGET PATH DEVICE INODE`: mounts the empty folder over PATH in the mount at TARGET, a path below the root. */
void cover_below(int root, int empty, const char **fields);
/*
 * `hold TARGET PATH`: makes PATH in the mount at TARGET, and every folder on the way, a mount point, so that code
 * inside cannot move it away and put another in its place.
 */
void hold_below(int root, const char **fields);

/*
 * cgroup.c: a cgroup namespace whose roots are the work cgroups. A child creates it while the mounts are built, because
 * joining a cgroup takes a while.
 */
struct work_namespace {
  pid_t holder;
  int ready, release;
};
/* The caller must have the capabilities of the user namespace that is to own the cgroup namespace. */
struct work_namespace start_work_namespace(const struct plan *plan);
/* Returns its descriptor, or -1 if the plan has no work cgroups. */
int finish_work_namespace(struct work_namespace *made);
void enter_work_namespace(int fd);
/*
 * Records `cgroup-view NAME DIR`: prepares a read-only folder `cgroup` in the bundle, with DIR as NAME in it, or as the
 * folder itself if NAME is a dot.
 */
void show_cgroups(struct launch *launch, const struct plan *plan);

/* tree.c: trees that agents wrote. Links are never followed, and depth does not matter. */
int remove_tree(const char *path);
/* Removes everything in a folder except names with the prefix. */
int remove_others(const char *folder, const char *prefix);
int measure_main(char **paths);

/* subvolume.c: subvolumes of btrfs. Returns false for anything but one that we may remove. */
bool remove_subvolume(int parent, const char *name);
/*
 * `subvolume PATH` creates one, if it does not exist. `snapshot FROM TO` copies one, and prints `transaction N`, which
 * made the copy. With `since TRANSACTION TREE`, also prints what changed since then: `part tree FILES BYTES CHANGED`.
 * TREE is the subvolume as it was, or "-".
 */
int take_snapshots(const struct plan *plan);

/* volume.c: mounts an image with folders of the state folder, if it is not mounted. */
int mount_volume(const struct plan *plan);

/* build.c: applies a record about the sandbox's root; ignores any other. */
void build_part(struct launch *launch, const struct plan_record *record);

/*
 * leash.c: the guest waits until its pid is recorded. It reports over a socket pair that identifies the writer; our end
 * is the second.
 */
void make_leash(int leash[2]);
/*
 * Returns the guest's pid as soon as the guest runs. Sets `runtime` to 0 if the OCI runtime has already ended. Fails if
 * the guest or the OCI runtime fails. `passed` is the descriptor that the guest passed, or -1.
 */
pid_t await_guest(struct launch *launch, int leash, pid_t *runtime, int *passed);
/*
 * Records the pid in the sandbox's folder, releases the guest, and tells the caller. From here on, nothing dies with
 * the caller.
 */
void let_go(int leash, pid_t guest);
int finish_runtime(struct launch *launch, pid_t pid);

/* sealed.c: the guest's system call filter, and a copy of the OCI runtime, or -1 if it is better started directly. */
int filter_file(const char *hex);
int sealed_copy(const char *path);

/* attach.c: enters the sandbox's folder, and opens the user and mount namespaces of its guest. Returns the latter. */
int open_sandbox(struct launch *launch, const struct plan *plan, const char **pid);
/* Creates an empty tree for each record with the verb, by the record's index: where the trees are used, no stage is. */
int *empty_trees(struct launch *launch, const struct plan *plan, const char *verb);

/*
 * restore.c: returns the guest's pid. `socket` is the guest's new socket to process 1, `reaper`; the restored processes
 * start in the work cgroups.
 */
pid_t restore_memory(struct launch *launch, const struct plan_record *record, pid_t reaper, int socket, const int *work_cgroups, size_t work_count);

/*
 * clock.c: stores the clocks as a process sees them in a folder, and lets those of later children continue from there.
 */
void store_clocks(pid_t process, int folder);
/* Opened before the sandbox's namespaces are entered. */
int open_offsets(void);
void continue_clocks(int images, int offsets);

/* Waits for a child's end and returns its status. */
int wait_for(pid_t child);
/* Becomes root of a process's user namespace, with the host's files. */
void enter_ids(pid_t process);

/* run.c, attach.c, new-root.c, point.c, dump.c */
int dump_memory(struct launch *launch, const struct plan *plan);
int run_sandbox(struct launch *launch, const struct plan *plan);
int attach_workspace(struct launch *launch, const struct plan *plan);
int give_new_root(struct launch *launch, const struct plan *plan);
int take_point(struct launch *launch, const struct plan *plan);
