/* The folders that an inotify descriptor watches, by their path relative to the root of the watch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WATCHES_MAX = 32768,
  /* Room for paths that the scan of a new folder reported while their own events may still be queued. */
  WATCH_SEEN_SLOTS = 8192,
};

struct watched {
  int descriptor;
  char *path;
};

/* Sorted by descriptor, which the kernel assigns in ascending order. */
struct watch_table {
  struct watched *items;
  size_t count;
  size_t capacity;
};

/* Adds a watch; a known descriptor gets the new path. Returns false if memory runs out or the bound is reached. */
bool watch_table_put(struct watch_table *table, int descriptor, const char *path);
const char *watch_table_path(const struct watch_table *table, int descriptor);
void watch_table_remove(struct watch_table *table, int descriptor);
/* Removes a folder and everything below it, from the table and the kernel. An empty path removes everything. */
void watch_table_drop(struct watch_table *table, int inotify_fd, const char *path);
void watch_table_free(struct watch_table *table);

struct watch_seen {
  uint64_t slots[WATCH_SEEN_SLOTS];
  size_t count;
};
void watch_seen_add(struct watch_seen *seen, const char *path);
/* Removes a path, and returns whether it was present. */
bool watch_seen_take(struct watch_seen *seen, const char *path);
void watch_seen_clear(struct watch_seen *seen);
