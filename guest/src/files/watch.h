/* Which folders an inotify descriptor watches, by their path relative to the root of the watch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WATCHES_MAX = 32768,
  /* Paths reported by a look into a new folder whose own events may still be in the queue. */
  WATCH_SEEN_SLOTS = 8192,
};

struct watched {
  int descriptor;
  char *path;
};

/* Ordered by descriptor, which the kernel gives out in ascending order. */
struct watch_table {
  struct watched *items;
  size_t count;
  size_t capacity;
};

/* False when memory or the bound is reached. A descriptor that is known gets the new path. */
bool watch_table_put(struct watch_table *table, int descriptor, const char *path);
const char *watch_table_path(const struct watch_table *table, int descriptor);
void watch_table_remove(struct watch_table *table, int descriptor);
/* Removes a folder and all below it, from the kernel too. An empty path is everything. */
void watch_table_drop(struct watch_table *table, int inotify_fd, const char *path);
void watch_table_free(struct watch_table *table);

struct watch_seen {
  uint64_t slots[WATCH_SEEN_SLOTS];
  size_t count;
};
void watch_seen_add(struct watch_seen *seen, const char *path);
/* Whether it was there; it is not afterwards. */
bool watch_seen_take(struct watch_seen *seen, const char *path);
void watch_seen_clear(struct watch_seen *seen);
