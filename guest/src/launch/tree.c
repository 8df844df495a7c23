/*
 * Removes and measures trees that an agent wrote: follows no link, and needs three descriptors for a tree of any depth.
 */
#include "launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NO_REPLACE = 1, MEASURE_DEPTH_MAX = 400 };

static bool is_dot(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

static bool gone(int result) { return result == 0 || errno == ENOENT; }

/* Moves a folder that is not empty to the top under a new name, where it will be found again. */
static int lift(int from, const char *name, int top, unsigned *counter) {
  char fresh[32];
  for (;;) {
    snprintf(fresh, sizeof fresh, ".lifted-%u", (*counter)++);
    if (gone((int)syscall(SYS_renameat2, from, name, top, fresh, NO_REPLACE))) return 0;
    if (errno != EEXIST) return -1;
  }
}

/* Removes the content of a folder; lifts folders in it to the top instead of descending into them. */
static int clear_folder(int parent, const char *folder, int top, unsigned *counter) {
  int fd = openat(parent, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  /* Another process may be removing the same tree. */
  if (fd < 0 && errno == ENOENT) return 0;
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (entries == NULL) return -1;
  int result = 0;
  struct dirent *entry;
  while (result == 0 && (entry = readdir(entries)) != NULL) {
    if (is_dot(entry->d_name) || gone(unlinkat(fd, entry->d_name, 0))) continue;
    if (gone(unlinkat(fd, entry->d_name, AT_REMOVEDIR))) continue;
    result = errno == ENOTEMPTY || errno == EEXIST ? lift(fd, entry->d_name, top, counter) : -1;
  }
  int error = errno;
  closedir(entries);
  errno = error;
  return result;
}

/* Makes one pass over the top folder. Returns how many entries it saw, or -1. */
static int clear_pass(int top, unsigned *counter) {
  int copy = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy < 0 ? NULL : fdopendir(copy);
  if (entries == NULL) return -1;
  int seen = 0;
  struct dirent *entry;
  while (seen >= 0 && (entry = readdir(entries)) != NULL) {
    if (is_dot(entry->d_name)) continue;
    seen++;
    if (gone(unlinkat(top, entry->d_name, 0)) || gone(unlinkat(top, entry->d_name, AT_REMOVEDIR))) continue;
    if (errno != ENOTEMPTY && errno != EEXIST) seen = -1;
    else if (remove_subvolume(top, entry->d_name)) continue;
    else if (clear_folder(top, entry->d_name, top, counter) != 0 || !gone(unlinkat(top, entry->d_name, AT_REMOVEDIR))) seen = -1;
  }
  int error = errno;
  closedir(entries);
  errno = error;
  return seen;
}

/* Removes a subvolume of btrfs without a look at its files. */
static bool remove_whole(const char *path) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return false;
  cleanup_free char *folder = strndup(path, (size_t)(slash - path));
  cleanup_fd int parent = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return parent >= 0 && remove_subvolume(parent, slash + 1);
}

int remove_tree(const char *path) {
  if (unlink(path) == 0 || errno == ENOENT) return 0;
  if (rmdir(path) == 0) return 0;
  if (remove_whole(path)) return 0;
  cleanup_fd int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0) return errno == ENOENT ? 0 : -1;
  unsigned counter = 0;
  int seen;
  do seen = clear_pass(top, &counter);
  while (seen > 0);
  if (seen < 0) return -1;
  return gone(rmdir(path)) ? 0 : -1;
}

int remove_others(const char *folder, const char *prefix) {
  DIR *entries = opendir(folder);
  if (entries == NULL) return -1;
  int result = 0;
  struct dirent *entry;
  while (result == 0 && (entry = readdir(entries)) != NULL) {
    char path[PATH_MAX];
    /* Created by mkfs, owned by root and empty. */
    if (is_dot(entry->d_name) || strcmp(entry->d_name, "lost+found") == 0 || strncmp(entry->d_name, prefix, strlen(prefix)) == 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path) result = -1;
    else result = remove_tree(path);
  }
  closedir(entries);
  return result;
}

static uint64_t measure_folder(int fd, int depth) {
  uint64_t bytes = 0;
  DIR *entries = fdopendir(fd);
  if (entries == NULL) return 0;
  struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    struct stat status;
    if (is_dot(entry->d_name) || fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    bytes += (uint64_t)status.st_blocks * 512;
    if (!S_ISDIR(status.st_mode) || depth == MEASURE_DEPTH_MAX) continue;
    int child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child >= 0) bytes += measure_folder(child, depth + 1);
  }
  closedir(entries);
  return bytes;
}

int measure_main(char **paths) {
  uint64_t bytes = 0;
  for (; *paths != NULL; paths++) {
    int fd = open(*paths, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) bytes += measure_folder(fd, 0);
  }
  dprintf(STDOUT_FILENO, "bytes %llu\n", (unsigned long long)bytes);
  return 0;
}
