/*
 * Points: a writable layer's changes since its last point, stored as a layer that is never written again. Everything
 * here works on trees that an agent wrote: no link is followed, and what can grow has a bound.
 */
#pragma once

#include "base/base.h"

#include <sys/stat.h>

/* Each depth holds two descriptors, or one for every layer in a merge. */
#define LAYER_DEPTH_MAX 300
#define LAYER_ENTRIES_MAX 4000000
#define XATTR_VALUE_MAX (64 * 1024)

/* point.c */

/*
 * Change times are taken from a clock that advances with the kernel's ticks. After the next tick, every later change
 * has another time than those before it.
 */
uint64_t coarse_ns(void);
uint64_t next_tick(uint64_t since_ns);

/* layer-copy.c */

/* What happened so far in a copy, and its limits. */
struct copying {
  uint64_t files, bytes, bytes_max;
  bool rootless;
  bool no_clone; /* Whether the file system refused to share blocks between files. */
  struct linked_file *links;
  size_t link_count, link_room;
};
/* An overlay's mark for a deleted file. */
bool is_whiteout(const struct stat *status);
bool is_opaque(int folder, bool rootless);
/* Whether the overlay finds the folder's lower content under another path: it was moved. */
bool is_moved(int folder);
void set_opaque(int folder, bool rootless);
void make_whiteout(int folder, const char *name);
/* Copies mode, owner and attributes, except the overlay's own. Times are the caller's: content changes them. */
void copy_metadata(int from, int to, const struct stat *status);
void set_times(int fd, const struct stat *status);
/* Copies a file, link or pipe. `path` is its path below `root`, where its other hard links are. */
void copy_entry(struct copying *copying, int from, int root, int to, const char *name, const char *path, const struct stat *status);
void forget_links(struct copying *copying);

/* layer-names.c: the sorted names in a folder. */
struct names {
  char **list;
  size_t count;
  char *text;
};
struct names read_names(int folder, uint64_t *entries_left);
void free_names(struct names *names);

/* layer-index.c: what a writable layer contained at its last point. */
enum { ENTRY_FOLDER = 1, ENTRY_WHITEOUT = 2, ENTRY_OTHER = 3 };
struct index_entry {
  const char *name;
  uint8_t type;
  bool opaque;
  uint64_t inode, changed_ns; /* 0 ns: changed so recently that the time does not show a later change. */
  uint32_t rights; /* Of a folder: a digest of its mode and owner. */
};
struct index_reader {
  const unsigned char *at, *end;
  void *buffer;
};
struct index_writer {
  unsigned char *text;
  size_t length, room;
};
/* Returns false if the file does not exist. */
bool open_index(struct index_reader *reader, const char *path);
/* Returns false at the end of the current folder. After a folder, its entries follow: read or skip them. */
bool next_entry(struct index_reader *reader, struct index_entry *entry);
void skip_folder(struct index_reader *reader);
void close_index(struct index_reader *reader);
void write_entry(struct index_writer *writer, const struct index_entry *entry);
void end_folder(struct index_writer *writer);
void store_index(struct index_writer *writer, const char *path);

/* layer-merge.c: makes one layer of several, topmost first. The result shares their files by hard links. */
void merge_layers(const char *to, char **layers, size_t count, bool rootless);

/* layer-take.c: the changes of a writable layer since `index`, or since it was empty without one. */
struct take {
  const char *upper, *old_index, *new_index, *out;
  /* The mounted view of the layer over its lower layers, in which moved folders are complete; -1 without it. */
  int view;
};
/* Writes nothing to `out` if nothing changed. */
void take_layer(const struct take *take, struct copying *copying, uint64_t now_ns);
