/*
 * Machines in subvolumes of btrfs: a point is a snapshot of all writable layers at once, whose cost does not depend on
 * their files. What changed since an earlier snapshot is found by the transactions that btrfs notes for each inode and
 * name, which code inside cannot choose.
 */
#include "launch/launch.h"
#include "launch/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { SEARCH_BYTES = 1024 * 1024, FIRST_INODE = BTRFS_FIRST_FREE_OBJECTID };

/* Opens the folder that contains a path; `*name` is the path's last part. */
static int open_parent(const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash[1] == 0) launch_fail("plan", "%s is not an absolute path", path);
  char folder[PATH_MAX];
  if (snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path) >= (int)sizeof folder) launch_fail("plan", "a path is too long");
  *name = slash + 1;
  return open(folder[0] == 0 ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void copy_name(char *to, size_t room, const char *name) {
  if (snprintf(to, room, "%s", name) >= (int)room) launch_fail("plan", "a name is too long");
}

static void make_subvolume(const char *path) {
  const char *name;
  cleanup_fd int parent = open_parent(path, &name);
  struct btrfs_ioctl_vol_args args = {0};
  copy_name(args.name, sizeof args.name, name);
  if (parent < 0 || (ioctl(parent, BTRFS_IOC_SUBVOL_CREATE, &args) < 0 && errno != EEXIST)) launch_fail("subvolume", "%s", path);
  if (chmod(path, 0755) != 0) launch_fail("subvolume", "%s", path);
}

bool remove_subvolume(int parent, const char *name) {
  struct stat status;
  if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode) || status.st_ino != FIRST_INODE) return false;
  struct btrfs_ioctl_vol_args args = {0};
  if (snprintf(args.name, sizeof args.name, "%s", name) >= (int)sizeof args.name) return false;
  return ioctl(parent, BTRFS_IOC_SNAP_DESTROY, &args) == 0;
}

/* Returns the transaction that created the snapshot. What changes later belongs to a later one. */
static uint64_t take_snapshot(const char *from, const char *to) {
  const char *name;
  cleanup_fd int source = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  cleanup_fd int parent = open_parent(to, &name);
  struct btrfs_ioctl_vol_args_v2 args = {.fd = source};
  copy_name(args.name, sizeof args.name, name);
  if (source < 0 || parent < 0 || ioctl(parent, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0) launch_fail("subvolume", "%s", to);
  struct btrfs_ioctl_get_subvol_info_args about = {0};
  cleanup_fd int copy = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (copy < 0 || ioctl(copy, BTRFS_IOC_GET_SUBVOL_INFO, &about) < 0) launch_fail("subvolume", "%s", to);
  return about.otransid;
}

struct comparing {
  int now, before;
  uint64_t since, entries_left;
  /* Inodes of changed folders, which are looked at after the search. */
  uint64_t *folders;
  size_t folder_count, folder_room;
  uint64_t files, bytes;
  bool changed;
};

static const char too_long[] = "?";

/*
 * Writes the path of an inode below the subvolume, with a slash at its end, or `too_long`. Returns false if it
 * does not exist.
 */
static bool path_of(int tree, uint64_t inode, char path[static BTRFS_INO_LOOKUP_PATH_MAX]) {
  struct btrfs_ioctl_ino_lookup_args args = {.objectid = inode};
  if (ioctl(tree, BTRFS_IOC_INO_LOOKUP, &args) < 0) {
    memcpy(path, too_long, sizeof too_long);
    return errno == ENAMETOOLONG;
  }
  memcpy(path, args.name, BTRFS_INO_LOOKUP_PATH_MAX);
  path[BTRFS_INO_LOOKUP_PATH_MAX - 1] = 0;
  return true;
}

/* An overlay prepares its changes in a separate folder, `work` or `*-work`. */
static bool is_work(const char *path) {
  size_t length = strcspn(path, "/");
  return length >= 4 && memcmp(path + length - 4, "work", 4) == 0;
}

static bool is_top(const char *path) {
  if (strcmp(path, too_long) == 0) return false;
  size_t length = strcspn(path, "/");
  return path[length] == 0 || path[length + 1] == 0;
}

static bool belongs_to_machine(const struct comparing *comparing, uint64_t inode) {
  char path[BTRFS_INO_LOOKUP_PATH_MAX];
  return path_of(comparing->now, inode, path) && path[0] != 0 && !is_work(path);
}

/* Whether an inode is as it was: reading a file makes a transaction, but does not change it. */
static bool is_unchanged(const struct comparing *comparing, uint64_t inode, const struct btrfs_inode_item *item) {
  if (comparing->before < 0) return false;
  unsigned char room[sizeof(struct btrfs_ioctl_search_args_v2) + 1024] __attribute__((aligned(8))) = {0};
  struct btrfs_ioctl_search_args_v2 *args = (struct btrfs_ioctl_search_args_v2 *)room;
  args->buf_size = 1024;
  args->key = (struct btrfs_ioctl_search_key){.min_objectid = inode,
                                              .max_objectid = inode,
                                              .min_type = BTRFS_INODE_ITEM_KEY,
                                              .max_type = BTRFS_INODE_ITEM_KEY,
                                              .max_transid = UINT64_MAX,
                                              .nr_items = 1};
  if (ioctl(comparing->before, BTRFS_IOC_TREE_SEARCH_V2, args) < 0 || args->key.nr_items == 0) return false;
  struct btrfs_inode_item old;
  memcpy(&old, (unsigned char *)args->buf + sizeof(struct btrfs_ioctl_search_header), sizeof old);
  return memcmp(&old.ctime, &item->ctime, sizeof old.ctime) == 0 && old.size == item->size && old.nlink == item->nlink && old.mode == item->mode &&
         old.uid == item->uid && old.gid == item->gid;
}

/* Whiteouts are counted by their names: all have one inode. */
static void add_inode(struct comparing *comparing, uint64_t inode, const struct btrfs_inode_item *item) {
  uint32_t mode = le32toh(item->mode);
  if (inode == FIRST_INODE || le64toh(item->transid) <= comparing->since || le32toh(item->nlink) == 0) return;
  if (S_ISCHR(mode) || is_unchanged(comparing, inode, item)) return;
  if (S_ISDIR(mode)) {
    if (comparing->folder_count == comparing->folder_room) {
      comparing->folder_room = comparing->folder_room * 2 + 64;
      comparing->folders = realloc(comparing->folders, comparing->folder_room * sizeof *comparing->folders);
      if (comparing->folders == NULL) launch_fail("point", "out of memory");
    }
    comparing->folders[comparing->folder_count++] = inode;
    return;
  }
  if (!belongs_to_machine(comparing, inode)) return;
  comparing->files++;
  if (S_ISREG(mode)) comparing->bytes += le64toh(item->nbytes);
}

static void add_name(struct comparing *comparing, uint64_t folder, const struct btrfs_dir_item *item) {
  if (item->type != BTRFS_FT_CHRDEV || le64toh(item->transid) <= comparing->since || !belongs_to_machine(comparing, folder)) return;
  comparing->files++;
}

/* Returns how many of the sorted names in `before` are missing in `now`. */
static uint64_t missing_names(const struct names *before, const struct names *now) {
  uint64_t missing = 0;
  for (size_t i = 0, j = 0; i < before->count; i++) {
    int order = 1;
    while (j < now->count && (order = strcmp(now->list[j], before->list[i])) < 0) j++;
    missing += j == now->count || order != 0;
  }
  return missing;
}

static int open_below(int tree, const char *path) {
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
  return (int)syscall(CALL_OPENAT2, tree, path, &how, sizeof how);
}

static void compare_folder(struct comparing *comparing, uint64_t inode) {
  char path[BTRFS_INO_LOOKUP_PATH_MAX], old_path[BTRFS_INO_LOOKUP_PATH_MAX];
  if (!path_of(comparing->now, inode, path) || path[0] == 0 || is_work(path)) return;
  bool known = comparing->before >= 0 && path_of(comparing->before, inode, old_path) && old_path[0] != 0;
  if (!known || strcmp(path, too_long) == 0 || strcmp(old_path, too_long) == 0) {
    /* The start of a sandbox creates the top folder of each layer. */
    if (known || !is_top(path)) comparing->changed = true;
    return;
  }
  cleanup_fd int now = open_below(comparing->now, path), before = open_below(comparing->before, old_path);
  struct stat now_status, before_status;
  if (now < 0 || before < 0 || fstat(now, &now_status) != 0 || fstat(before, &before_status) != 0) launch_fail("point", "cannot read a folder");
  /* A folder in which files came and went is unchanged. */
  if (strcmp(path, old_path) != 0 || now_status.st_mode != before_status.st_mode || now_status.st_uid != before_status.st_uid || now_status.st_gid != before_status.st_gid)
    comparing->changed = true;
  struct names names = read_names(now, &comparing->entries_left), old_names = read_names(before, &comparing->entries_left);
  comparing->files += missing_names(&old_names, &names);
  free_names(&names);
  free_names(&old_names);
}

static void search(struct comparing *comparing) {
  struct btrfs_ioctl_search_args_v2 *args = xalloc(sizeof *args + SEARCH_BYTES);
  memset(args, 0, sizeof *args);
  struct btrfs_ioctl_search_key *key = &args->key;
  *key = (struct btrfs_ioctl_search_key){.min_objectid = FIRST_INODE,
                                         .max_objectid = BTRFS_LAST_FREE_OBJECTID,
                                         .max_offset = UINT64_MAX,
                                         .min_transid = comparing->since + 1,
                                         .max_transid = UINT64_MAX,
                                         .max_type = UINT8_MAX};
  for (;;) {
    args->buf_size = SEARCH_BYTES;
    key->nr_items = UINT32_MAX;
    if (ioctl(comparing->now, BTRFS_IOC_TREE_SEARCH_V2, args) < 0) launch_fail("point", "cannot search the changes");
    if (key->nr_items == 0) break;
    if (comparing->entries_left < key->nr_items) launch_fail("too-large", "more than %d files", LAYER_ENTRIES_MAX);
    comparing->entries_left -= key->nr_items;
    const unsigned char *at = (const unsigned char *)args->buf;
    struct btrfs_ioctl_search_header header;
    for (uint32_t i = 0; i < key->nr_items; i++) {
      memcpy(&header, at, sizeof header);
      at += sizeof header;
      struct btrfs_inode_item inode;
      struct btrfs_dir_item name;
      if (header.type == BTRFS_INODE_ITEM_KEY && header.len >= sizeof inode) {
        memcpy(&inode, at, sizeof inode);
        add_inode(comparing, header.objectid, &inode);
      } else if (header.type == BTRFS_DIR_INDEX_KEY && header.len >= sizeof name) {
        memcpy(&name, at, sizeof name);
        add_name(comparing, header.objectid, &name);
      }
      at += header.len;
    }
    /* The search continues after the last item. */
    key->min_objectid = header.objectid;
    key->min_type = header.type;
    key->min_offset = header.offset;
    if (key->min_offset < UINT64_MAX) key->min_offset++;
    else if (key->min_type < UINT8_MAX) key->min_type++, key->min_offset = 0;
    else key->min_objectid++, key->min_type = 0, key->min_offset = 0;
  }
  free(args);
}

static void compare(struct comparing *comparing, uint64_t bytes_max) {
  search(comparing);
  for (size_t i = 0; i < comparing->folder_count; i++) compare_folder(comparing, comparing->folders[i]);
  free(comparing->folders);
  if (comparing->bytes > bytes_max) launch_fail("too-large", "%llu", (unsigned long long)bytes_max);
  if (comparing->files > 0) comparing->changed = true;
}

int take_snapshots(const struct plan *plan) {
  uint64_t bytes_max = UINT64_MAX;
  const char *to = NULL, **since = NULL;
  uint64_t transaction = 0, start_ns = coarse_ns();
  for (size_t i = 0; i < plan->count; i++) {
    const char *verb = plan->records[i].verb, **fields = plan->records[i].fields;
    if (strcmp(verb, "bytes-max") == 0) bytes_max = plan_bytes(fields[0]);
    else if (strcmp(verb, "since") == 0) since = fields;
    else if (strcmp(verb, "subvolume") == 0) make_subvolume(to = fields[0]);
    else if (strcmp(verb, "snapshot") == 0) transaction = take_snapshot(fields[0], to = fields[1]);
  }
  if (to == NULL) launch_fail("plan", "nothing to snapshot");
  if (transaction == 0) return 0;
  dprintf(STDOUT_FILENO, "transaction %llu\n", (unsigned long long)transaction);
  if (since == NULL) return 0;
  struct comparing comparing = {.before = -1, .since = plan_bytes(since[0]), .entries_left = 16ull * LAYER_ENTRIES_MAX};
  comparing.now = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (comparing.now < 0) launch_fail("point", "%s", to);
  if (strcmp(since[1], "-") != 0) {
    comparing.before = open(since[1], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (comparing.before < 0) launch_fail("point", "%s", since[1]);
  }
  compare(&comparing, bytes_max);
  /* What the sandbox changes from here on has another time than what it changed before. */
  next_tick(start_ns);
  close_fd(&comparing.now);
  close_fd(&comparing.before);
  dprintf(STDOUT_FILENO, "part tree %llu %llu %d\n", (unsigned long long)comparing.files, (unsigned long long)comparing.bytes,
          comparing.changed);
  return 0;
}
