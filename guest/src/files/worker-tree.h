/*
 * Walks a folder's tree without following links, without recursion and with few descriptors, however deep it is. The
 * levels are on a heap stack; the descriptor of a level far above is closed and reopened through "..", if that still
 * leads to the same folder.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
  TREE_FDS_MAX = 48,
  TREE_DEPTH_MAX = 131072,
  /* Limit on the names held at one time, for all levels together. */
  TREE_NAME_BYTES_MAX = 64 * 1024 * 1024,
  TREE_PATH_BYTES_MAX = 32 * 1024 * 1024,
};

/* The names of a folder, each after a byte with its d_type. */
struct names {
  char *bytes;
  size_t length;
  size_t capacity;
  uint32_t *offsets;
  size_t count;
  size_t room;
};

struct tree_level {
  int fd;
  dev_t device;
  ino_t inode;
  struct names names;
  size_t next;
  /* Whether `names` reaches the end of the folder. */
  bool complete;
  size_t path_length;
};

struct tree {
  struct tree_level *levels;
  size_t count;
  size_t capacity;
  char *path;
  size_t path_capacity;
  size_t name_bytes;
};

#define cleanup_tree __attribute__((cleanup(tree_free)))

/* These return 0 or an errno. `tree_start` takes ownership of the descriptor, even on failure. */
int tree_start(struct tree *tree, int folder_fd);
int tree_enter(struct tree *tree, const char *name);
/* Returns ESTALE if the folder above is not the one that was left, because the tree was moved. */
int tree_leave(struct tree *tree);
/* Replaces the top level's names with the next `max` or a few more. Returns E2BIG past the limit on names. */
int tree_read_names(struct tree *tree, size_t max);
void tree_sort_names(struct tree *tree);
void tree_free(struct tree *tree);

static inline struct tree_level *tree_top(struct tree *tree) { return &tree->levels[tree->count - 1]; }
/* Returns the next name of the top level, or NULL. */
const char *tree_next(struct tree *tree, unsigned char *type);
/*
 * Returns the path of `name` in the top level, relative to the start; valid until the next call. NULL if it is too
 * long.
 */
const char *tree_path(struct tree *tree, const char *name);
/* Returns the name of the top level itself, empty for the start. Valid until the tree changes. */
const char *tree_name(const struct tree *tree);

/*
 * worker-remove.c: removes everything in an open folder. Sets `failed` to the path of what could not be removed; the
 * caller frees it.
 */
struct worker;
int remove_contents(struct worker *worker, int folder_fd, char **failed);

/* The path under which a file was first seen, for files with several names. */
struct links {
  struct link_seen *slots;
  size_t count;
  size_t capacity;
};
enum { LINKS_MAX = 1048576 };
/*
 * Returns the path under which the file was seen before. Otherwise remembers this one, if there is room, and returns
 * NULL.
 */
const char *links_seen(struct links *links, const struct stat *status, const char *path);
void links_free(struct links *links);
