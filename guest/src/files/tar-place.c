#include "files/tar-place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum { FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, RACES_MAX = 64 };

struct place_folder {
  char *path;
  size_t order;
  uint32_t mode;
  uint64_t uid;
  uint64_t gid;
  struct timespec modified;
};

bool place_fail(struct place *place, int code, int error, const char *path, const char *reason) {
  struct place_problem *problem = &place->problem;
  if (problem->code) return false;
  problem->code = (enum error_code)code;
  problem->error = error;
  snprintf(problem->path, sizeof problem->path, "%s", path != NULL && path[0] ? path : "the archive");
  snprintf(problem->reason, sizeof problem->reason, "%s", reason);
  return false;
}

bool place_fail_errno(struct place *place, int error, const char *path) {
  if (error == ELOOP || error == EXDEV) return place_fail(place, ERR_UNSAFE, error, path, "a link is in the way");
  return place_fail(place, (int)error_code_of(error), error, path, strerror(error));
}

int place_open(struct place *place, const char *folder, unsigned strip, bool keep_owner) {
  *place = (struct place){.root_fd = -1, .parent_fd = -1, .strip = strip, .keep_owner = keep_owner};
  struct stat status;
  place->root_made = stat(folder, &status) != 0;
  if (place->root_made) {
    int error = make_folders(folder, 0755);
    if (error) return error;
  }
  place->root_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return place->root_fd < 0 ? errno : 0;
}

void place_close(struct place *place) {
  close_fd(&place->parent_fd);
  close_fd(&place->root_fd);
  for (size_t i = 0; i < place->folder_count; i++) free(place->folders[i].path);
  free(place->folders);
  place->folders = NULL;
  place->folder_count = 0;
}

bool place_name(struct place *place, const char *name, char into[PATH_BYTES_MAX + 1], bool *left_out) {
  size_t length = 0;
  unsigned strip = place->strip;
  bool any = false;
  if (name[0] == '/') return place_fail(place, ERR_UNSAFE, 0, name, "the name is absolute");
  for (const char *at = name; *at;) {
    size_t part = strcspn(at, "/");
    const char *next = at + part + (at[part] == '/');
    if (part == 2 && memcmp(at, "..", 2) == 0) return place_fail(place, ERR_UNSAFE, 0, name, "the name contains ..");
    if (part > 0 && !(part == 1 && at[0] == '.')) {
      any = true;
      if (strip > 0) {
        strip--;
      } else {
        if (length + part + 1 > PATH_BYTES_MAX) return place_fail(place, ERR_UNSAFE, 0, name, "the name is longer than 4,095 bytes");
        if (length > 0) into[length++] = '/';
        memcpy(into + length, at, part);
        length += part;
      }
    }
    at = next;
  }
  into[length] = 0;
  *left_out = length == 0 && (any || place->strip > 0);
  return true;
}

/* Returns the errno for a component that cannot be opened as a folder: ELOOP for a link, ENOTDIR for a file. */
static int why_not_folder(int fd, const char *name, int error) {
  struct stat status;
  if (error != ENOTDIR && error != ELOOP) return error;
  return fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(status.st_mode) ? ENOTDIR : ELOOP;
}

/* Opens a path component by component; creates missing folders if `make` is set. */
static int open_by_component(const struct place *place, const char *path, bool make, int *out) {
  cleanup_fd int fd = dup(place->root_fd);
  if (fd < 0) return errno;
  while (*path) {
    char name[256];
    size_t length = strcspn(path, "/");
    if (length >= sizeof name) return ENAMETOOLONG;
    memcpy(name, path, length);
    name[length] = 0;
    path += length + (path[length] == '/');
    if (make && mkdirat(fd, name, 0755) != 0 && errno != EEXIST) return errno;
    int next = openat(fd, name, FOLDER_FLAGS);
    if (next < 0) return why_not_folder(fd, name, errno);
    close_fd(&fd);
    fd = next;
  }
  *out = steal_fd(&fd);
  return 0;
}

/*
 * Opens the folder at `path` beneath the target, through no link. Returns 0 or an errno; ELOOP if a link is in the way.
 */
static int open_beneath(struct place *place, const char *path, bool make, int *out) {
  struct open_how how = {
      .flags = FOLDER_FLAGS,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
  };
  for (int tries = 0; !place->by_component && tries < RACES_MAX; tries++) {
    long fd = syscall(SYS_openat2, place->root_fd, path[0] ? path : ".", &how, sizeof how);
    if (fd >= 0) {
      *out = (int)fd;
      return 0;
    }
    if (errno == ELOOP || errno == EXDEV) return ELOOP;
    /* The kernel does not know openat2, or a system call filter refuses it. */
    if (errno == ENOSYS || errno == EPERM || errno == EINVAL) place->by_component = true;
    /*
     * EAGAIN: a concurrent rename left the kernel unsure. For other errors the slow way finds the cause, and creates
     * missing folders.
     */
    if (errno != EAGAIN) break;
  }
  return open_by_component(place, path, make, out);
}

/*
 * Returns the open folder for an entry (owned by `place`), and the last component of its name. Returns -1 after
 * recording a failure.
 */
static int parent_of(struct place *place, const char *path, const char **base) {
  const char *slash = strrchr(path, '/');
  if (slash == NULL) {
    *base = path;
    return place->root_fd;
  }
  size_t length = (size_t)(slash - path);
  *base = slash + 1;
  if (place->parent_fd >= 0 && strncmp(place->parent, path, length) == 0 && place->parent[length] == 0) return place->parent_fd;
  close_fd(&place->parent_fd);
  memcpy(place->parent, path, length);
  place->parent[length] = 0;
  int error = open_beneath(place, place->parent, true, &place->parent_fd);
  if (error == 0) return place->parent_fd;
  place_fail_errno(place, error, path);
  return -1;
}

/* Removes what is in the way of a file or link, except a folder. */
static bool make_way(struct place *place, int fd, const char *base, const struct placed *entry) {
  struct stat status;
  if (fstatat(fd, base, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT || place_fail_errno(place, errno, entry->path);
  if (S_ISDIR(status.st_mode)) {
    if (entry->type == TAR_FILE) return place_fail_errno(place, EISDIR, entry->path);
    return place_fail(place, ERR_UNSAFE, EISDIR, entry->path, "a link would replace a folder");
  }
  return unlinkat(fd, base, 0) == 0 || errno == ENOENT || place_fail_errno(place, errno, entry->path);
}

int place_file(struct place *place, const struct placed *entry, int *parent_fd, const char **base) {
  if (entry->path[0] == 0) {
    place_fail_errno(place, EISDIR, entry->path);
    return -1;
  }
  *parent_fd = parent_of(place, entry->path, base);
  if (*parent_fd < 0) return -1;
  for (int tries = 0; tries < RACES_MAX; tries++) {
    int fd = openat(*parent_fd, *base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, entry->mode);
    if (fd >= 0) return fd;
    if (errno != EEXIST) break;
    if (!make_way(place, *parent_fd, *base, entry)) return -1;
  }
  place_fail_errno(place, errno, entry->path);
  return -1;
}

bool place_finish_file(struct place *place, const struct placed *entry, int fd) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, entry->modified};
  if (place->keep_owner && (fchown(fd, (uid_t)entry->uid, (gid_t)entry->gid) != 0 || fchmod(fd, entry->mode) != 0)) {
    return place_fail_errno(place, errno, entry->path);
  }
  return futimens(fd, times) == 0 || place_fail_errno(place, errno, entry->path);
}

bool place_symbolic_link(struct place *place, const struct placed *entry) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, entry->modified};
  const char *base;
  if (entry->path[0] == 0) return place_fail(place, ERR_UNSAFE, EISDIR, entry->path, "a link would replace a folder");
  int fd = parent_of(place, entry->path, &base);
  if (fd < 0) return false;
  for (int tries = 0; tries < RACES_MAX; tries++) {
    if (symlinkat(entry->link, fd, base) == 0) {
      if (place->keep_owner && fchownat(fd, base, (uid_t)entry->uid, (gid_t)entry->gid, AT_SYMLINK_NOFOLLOW) != 0) break;
      if (utimensat(fd, base, times, AT_SYMLINK_NOFOLLOW) != 0) break;
      return true;
    }
    if (errno != EEXIST) break;
    if (!make_way(place, fd, base, entry)) return false;
  }
  return place_fail_errno(place, errno, entry->path);
}

bool place_hard_link(struct place *place, const struct placed *entry) {
  const char *base;
  struct stat status;
  if (entry->path[0] == 0 || entry->link[0] == 0) return place_fail(place, ERR_UNSAFE, EISDIR, entry->path, "a hard link to a folder");
  /* Opened separately from the entry's own folder, which may be different. */
  cleanup_fd int from_fd = -1;
  char from[PATH_BYTES_MAX + 1];
  snprintf(from, sizeof from, "%s", entry->link);
  char *slash = strrchr(from, '/');
  const char *from_base = slash != NULL ? slash + 1 : from;
  if (slash != NULL) *slash = 0;
  int error = open_beneath(place, slash != NULL ? from : "", false, &from_fd);
  if (error == 0 && fstatat(from_fd, from_base, &status, AT_SYMLINK_NOFOLLOW) != 0) error = errno;
  if (error) return place_fail_errno(place, error, entry->link);
  if (!S_ISREG(status.st_mode)) return place_fail(place, ERR_UNSAFE, 0, entry->path, "a hard link to something other than a file");
  if (strcmp(entry->path, entry->link) == 0) return true;
  int fd = parent_of(place, entry->path, &base);
  if (fd < 0) return false;
  for (int tries = 0; tries < RACES_MAX; tries++) {
    if (linkat(from_fd, from_base, fd, base, 0) == 0) return true;
    if (errno != EEXIST) break;
    if (!make_way(place, fd, base, entry)) return false;
  }
  return place_fail_errno(place, errno, entry->path);
}

static bool remember_folder(struct place *place, const struct placed *entry) {
  size_t bytes = sizeof *place->folders + strlen(entry->path) + 1;
  if (place->folder_bytes + bytes > PLACE_FOLDERS_BYTES_MAX) return place_fail(place, ERR_TOO_LARGE, 0, entry->path, "too many folders");
  if (place->folder_count == place->folder_room) {
    size_t room = place->folder_room ? place->folder_room * 2 : 64;
    struct place_folder *grown = realloc(place->folders, room * sizeof *grown);
    if (grown == NULL) return place_fail_errno(place, ENOMEM, entry->path);
    place->folders = grown;
    place->folder_room = room;
  }
  char *path = strdup(entry->path);
  if (path == NULL) return place_fail_errno(place, ENOMEM, entry->path);
  place->folder_bytes += bytes;
  place->folders[place->folder_count] = (struct place_folder){
      .path = path, .order = place->folder_count, .mode = entry->mode, .uid = entry->uid, .gid = entry->gid, .modified = entry->modified};
  place->folder_count++;
  return true;
}

bool place_folder(struct place *place, const struct placed *entry) {
  const char *base;
  struct stat status;
  /* The target keeps its attributes, unless this request created it. */
  if (entry->path[0] == 0) return !place->root_made || remember_folder(place, entry);
  int fd = parent_of(place, entry->path, &base);
  if (fd < 0) return false;
  /* Writable until the end, even if the archive says otherwise. */
  if (mkdirat(fd, base, entry->mode | 0700) != 0) {
    if (errno != EEXIST) return place_fail_errno(place, errno, entry->path);
    if (fstatat(fd, base, &status, AT_SYMLINK_NOFOLLOW) != 0) return place_fail_errno(place, errno, entry->path);
    if (S_ISLNK(status.st_mode)) return place_fail_errno(place, ELOOP, entry->path);
    if (!S_ISDIR(status.st_mode)) return place_fail_errno(place, ENOTDIR, entry->path);
  }
  return remember_folder(place, entry);
}

/* Deeper folders first: a folder that becomes unsearchable must not be on the path to another. */
static int compare_folders(const void *left, const void *right) {
  const struct place_folder *a = left, *b = right;
  int order = strcmp(b->path, a->path);
  return order != 0 ? order : a->order < b->order ? -1 : 1;
}

static int finish_folder(struct place *place, const struct place_folder *folder) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, folder->modified};
  cleanup_fd int path_fd = -1;
  int error = open_beneath(place, folder->path, false, &path_fd);
  if (error) return error;
  cleanup_fd int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  if (place->keep_owner && fchown(fd, (uid_t)folder->uid, (gid_t)folder->gid) != 0) return errno;
  return fchmod(fd, folder->mode) == 0 && futimens(fd, times) == 0 ? 0 : errno;
}

bool place_finish(struct place *place) {
  close_fd(&place->parent_fd);
  if (place->folder_count > 1) qsort(place->folders, place->folder_count, sizeof *place->folders, compare_folders);
  for (size_t i = 0; i < place->folder_count; i++) {
    const struct place_folder *folder = &place->folders[i];
    int error = finish_folder(place, folder);
    /* The folder existed before and belongs to another user, or it was removed since. */
    if (error && error != EPERM && error != EACCES && error != ENOENT) return place_fail_errno(place, error, folder->path);
  }
  return true;
}
