/* Puts the entries of an archive into a folder and nowhere else. */
#pragma once

#include "files/tar.h"
#include "files/worker.h"

#include <time.h>

enum {
  /* Folders get their mode and time at the end; until then this much memory may hold them. */
  PLACE_FOLDERS_BYTES_MAX = 64 * 1024 * 1024,
};

struct place_problem {
  enum error_code code;
  int error;
  char path[MESSAGE_PATH_BYTES];
  char reason[128];
};

struct place_folder;

struct place {
  int root_fd;
  bool root_made;
  bool keep_owner;
  bool by_component;
  unsigned strip;
  struct place_problem problem;
  /* The folder of the last entry; the next entry is usually in the same one. */
  int parent_fd;
  char parent[PATH_BYTES_MAX + 1];
  struct place_folder *folders;
  size_t folder_count;
  size_t folder_room;
  size_t folder_bytes;
};

/*
 * An entry whose names have been checked: relative, without "." and "..", and not empty unless it is the folder itself.
 */
struct placed {
  uint8_t type;
  uint32_t mode;
  uint64_t size;
  uint64_t uid;
  uint64_t gid;
  struct timespec modified;
  char path[PATH_BYTES_MAX + 1];
  char link[PATH_BYTES_MAX + 1];
};

/* Returns 0 or an errno. */
int place_open(struct place *place, const char *folder, unsigned strip, bool keep_owner);
void place_close(struct place *place);
/* The functions below return false after filling in `problem`. */
bool place_fail(struct place *place, int code, int error, const char *path, const char *reason);
bool place_fail_errno(struct place *place, int error, const char *path);
/* Checks a name and strips leading components; sets `left_out` if nothing remains. */
bool place_name(struct place *place, const char *name, char into[PATH_BYTES_MAX + 1], bool *left_out);
bool place_folder(struct place *place, const struct placed *entry);
bool place_symbolic_link(struct place *place, const struct placed *entry);
bool place_hard_link(struct place *place, const struct placed *entry);
/* Creates a file, open for writing; returns -1 on failure. `parent_fd` and `base` are valid until the next entry. */
int place_file(struct place *place, const struct placed *entry, int *parent_fd, const char **base);
bool place_finish_file(struct place *place, const struct placed *entry, int fd);
/* Applies the modes and times of folders. */
bool place_finish(struct place *place);
