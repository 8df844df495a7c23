/*
 * Walks a folder's tree without following links, without recursion and with few descriptors, however deep it is: levels
 * lie on a heap stack, and the descriptor of a level far above is closed and found again through "..", if that is still
 * the same folder.
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
  /* All names held at a time, of all levels. */
  TREE_NAME_BYTES_MAX = 64 * 1024 * 1024,
  TREE_PATH_BYTES_MAX = 32 * 1024 * 1024,
};

/* Names of a folder, each after a byte that holds its d_type. */
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
  /* Whether `names` reaches to the end of the folder. */
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

/* All return 0 or an errno. `tree_start` takes the descriptor over, also when it fails. */
int tree_start(struct tree *tree, int folder_fd);
int tree_enter(struct tree *tree, const char *name);
/* ESTALE when the folder above is not the one that was left: somebody moved the tree meanwhile. */
int tree_leave(struct tree *tree);
/* Replaces the top level's names by the next `max` or a few more. E2BIG past the bound on names. */
int tree_read_names(struct tree *tree, size_t max);
void tree_sort_names(struct tree *tree);
void tree_free(struct tree *tree);

static inline struct tree_level *tree_top(struct tree *tree) { return &tree->levels[tree->count - 1]; }
/* The next name of the top level, or NULL. */
const char *tree_next(struct tree *tree, unsigned char *type);
/* The path of `name` in the top level, relative to the start; valid until the next call. NULL when it is too long. */
const char *tree_path(struct tree *tree, const char *name);
/* The name of the top level itself, empty for the start. Valid until the tree changes. */
const char *tree_name(const struct tree *tree);

/*
 * worker-remove.c: removes everything in an open folder. Gives the path of what could not be removed in `failed` (for
 * the caller to free).
 */
struct worker;
int remove_contents(struct worker *worker, int folder_fd, char **failed);

/* Which file was seen first under which path, for files with several names. */
struct links {
  struct link_seen *slots;
  size_t count;
  size_t capacity;
};
enum { LINKS_MAX = 1048576 };
/* The path the file was seen under before; otherwise NULL, and it is remembered (when there is room). */
const char *links_seen(struct links *links, const struct stat *status, const char *path);
void links_free(struct links *links);
