#include "files/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

/* Returns the index of the descriptor, or where it belongs. */
static size_t position(const struct watch_table *table, int descriptor) {
  size_t low = 0, high = table->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (table->items[middle].descriptor < descriptor) low = middle + 1;
    else high = middle;
  }
  return low;
}

bool watch_table_put(struct watch_table *table, int descriptor, const char *path) {
  size_t at = position(table, descriptor);
  char *copy = strdup(path);
  if (copy == NULL) return false;
  if (at < table->count && table->items[at].descriptor == descriptor) {
    free(table->items[at].path);
    table->items[at].path = copy;
    return true;
  }
  if (table->count == table->capacity) {
    size_t capacity = table->capacity ? table->capacity * 2 : 64;
    struct watched *grown = table->count < WATCHES_MAX ? realloc(table->items, capacity * sizeof *grown) : NULL;
    if (grown == NULL) {
      free(copy);
      return false;
    }
    table->items = grown;
    table->capacity = capacity;
  }
  memmove(table->items + at + 1, table->items + at, (table->count - at) * sizeof *table->items);
  table->items[at] = (struct watched){descriptor, copy};
  table->count++;
  return true;
}

const char *watch_table_path(const struct watch_table *table, int descriptor) {
  size_t at = position(table, descriptor);
  return at < table->count && table->items[at].descriptor == descriptor ? table->items[at].path : NULL;
}

void watch_table_remove(struct watch_table *table, int descriptor) {
  size_t at = position(table, descriptor);
  if (at == table->count || table->items[at].descriptor != descriptor) return;
  free(table->items[at].path);
  table->count--;
  memmove(table->items + at, table->items + at + 1, (table->count - at) * sizeof *table->items);
}

void watch_table_drop(struct watch_table *table, int inotify_fd, const char *path) {
  size_t length = strlen(path), kept = 0;
  for (size_t i = 0; i < table->count; i++) {
    struct watched *item = &table->items[i];
    bool below = length == 0 || (strncmp(item->path, path, length) == 0 && (item->path[length] == 0 || item->path[length] == '/'));
    if (below) {
      inotify_rm_watch(inotify_fd, item->descriptor);
      free(item->path);
    } else {
      table->items[kept++] = *item;
    }
  }
  table->count = kept;
}

void watch_table_free(struct watch_table *table) {
  for (size_t i = 0; i < table->count; i++) free(table->items[i].path);
  free(table->items);
  *table = (struct watch_table){0};
}

static uint64_t hash_of(const char *path) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *path; path++) hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
  /* 0 marks a free slot, 1 a slot that was freed. */
  return hash < 2 ? hash + 2 : hash;
}

void watch_seen_add(struct watch_seen *seen, const char *path) {
  /* Past the bound an event may be reported twice, which does no harm. */
  if (seen->count >= WATCH_SEEN_SLOTS / 2) return;
  uint64_t hash = hash_of(path);
  size_t at = (size_t)(hash % WATCH_SEEN_SLOTS);
  while (seen->slots[at] > 1) at = (at + 1) % WATCH_SEEN_SLOTS;
  if (seen->slots[at] == 0) seen->count++;
  seen->slots[at] = hash;
}

bool watch_seen_take(struct watch_seen *seen, const char *path) {
  if (seen->count == 0) return false;
  uint64_t hash = hash_of(path);
  for (size_t at = (size_t)(hash % WATCH_SEEN_SLOTS); seen->slots[at] != 0; at = (at + 1) % WATCH_SEEN_SLOTS) {
    if (seen->slots[at] != hash) continue;
    seen->slots[at] = 1;
    return true;
  }
  return false;
}

void watch_seen_clear(struct watch_seen *seen) {
  if (seen->count > 0) memset(seen, 0, sizeof *seen);
}
