/* Makes one layer of several. */
#include "launch/layers.h"

#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

struct merge {
  bool rootless;
  uint64_t entries_left;
};

static int open_folder(int parent, const char *name) {
  return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* `alone`: nothing below the result is visible in it. */
static void merge_folder(struct merge *merge, int to, const int *layers, size_t count, bool alone, int depth);

/* The overlay lists a whiteout with nothing below it. */
static void remove_whiteouts(struct merge *merge, int folder) {
  struct names names = read_names(folder, &merge->entries_left);
  for (size_t i = 0; i < names.count; i++) {
    struct stat status;
    if (fstatat(folder, names.list[i], &status, AT_SYMLINK_NOFOLLOW) != 0) launch_fail("point", "cannot read a layer");
    if (is_whiteout(&status) && unlinkat(folder, names.list[i], 0) != 0) launch_fail("point", "cannot remove a whiteout");
  }
  free_names(&names);
}

/* `layers[at]` is the topmost layer with this folder. */
static void merge_child_folder(struct merge *merge, int to, const char *name, const int *layers, size_t count, size_t at, bool alone, int depth) {
  cleanup_free int *folders = xalloc(count * sizeof *folders);
  size_t found = 0;
  bool opaque = false;
  for (; at < count && !opaque; at++) {
    struct stat status;
    if (fstatat(layers[at], name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT) launch_fail("point", "cannot read a layer");
      continue;
    }
    /* What is below a file or a deletion is not visible. */
    if (!S_ISDIR(status.st_mode)) {
      opaque = true;
      break;
    }
    int fd = open_folder(layers[at], name);
    if (fd < 0) launch_fail("point", "cannot read a layer");
    folders[found++] = fd;
    opaque = is_opaque(fd, merge->rootless);
  }
  struct stat status;
  if (fstat(folders[0], &status) != 0 || mkdirat(to, name, 0700) != 0) launch_fail("point", "cannot create a folder");
  cleanup_fd int child = open_folder(to, name);
  if (child < 0) launch_fail("point", "cannot create a folder");
  copy_metadata(folders[0], child, &status);
  if (opaque) set_opaque(child, merge->rootless);
  merge_folder(merge, child, folders, found, alone || opaque, depth + 1);
  set_times(child, &status);
  for (size_t i = 0; i < found; i++) close(folders[i]);
}

static void merge_folder(struct merge *merge, int to, const int *layers, size_t count, bool alone, int depth) {
  if (depth > LAYER_DEPTH_MAX) launch_fail("too-large", "folders are nested deeper than %d", LAYER_DEPTH_MAX);
  for (size_t layer = 0; layer < count; layer++) {
    struct names names = read_names(layers[layer], &merge->entries_left);
    for (size_t i = 0; i < names.count; i++) {
      const char *name = names.list[i];
      struct stat status;
      /* A layer above decided about this name. */
      if (layer > 0 && fstatat(to, name, &status, AT_SYMLINK_NOFOLLOW) == 0) continue;
      if (fstatat(layers[layer], name, &status, AT_SYMLINK_NOFOLLOW) != 0) launch_fail("point", "cannot read a layer");
      if (S_ISDIR(status.st_mode)) merge_child_folder(merge, to, name, layers, count, layer, alone, depth);
      else if (linkat(layers[layer], name, to, name, 0) != 0) launch_fail("point", "cannot link a file");
    }
    free_names(&names);
  }
  if (alone) remove_whiteouts(merge, to);
}

void merge_layers(const char *to, char **paths, size_t count, bool rootless) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  struct merge merge = {.rootless = rootless, .entries_left = LAYER_ENTRIES_MAX};
  cleanup_free int *layers = xalloc((count + 1) * sizeof *layers);
  for (size_t i = 0; i < count; i++) {
    layers[i] = open_folder(AT_FDCWD, paths[i]);
    if (layers[i] < 0) launch_fail("point", "%s", paths[i]);
  }
  struct stat status;
  if (fstat(layers[0], &status) != 0 || mkdir(to, 0700) != 0) launch_fail("point", "%s", to);
  cleanup_fd int out = open_folder(AT_FDCWD, to);
  if (out < 0) launch_fail("point", "%s", to);
  copy_metadata(layers[0], out, &status);
  merge_folder(&merge, out, layers, count, false, 0);
  set_times(out, &status);
  for (size_t i = 0; i < count; i++) close(layers[i]);
}
