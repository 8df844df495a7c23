/*
 * Takes the changes of a writable layer since its last point. The upper folder of an overlay stays in place, because
 * programs have its files open; what changed is found by inode and change time, which code inside cannot choose.
 */
#include "launch/layers.h"

#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* A folder on the way to the current one. Its copy is created when something in it changed. */
struct level {
  struct level *parent;
  const char *name;
  int upper, out;
  struct stat status;
  bool opaque;
  /* Whether nothing below the copy is visible in it: it, or a folder above it, is opaque. */
  bool alone;
  int depth;
};

struct taking {
  const struct take *take;
  struct copying *copying;
  struct index_writer index;
  uint64_t now_ns, entries_left;
  int out_root;
};

/* An open folder of the last point's index, or NULL if the folder did not exist then. */
typedef struct index_reader *before;

static uint64_t changed_ns(const struct taking *taking, const struct stat *status) {
  uint64_t ns = (uint64_t)status->st_ctim.tv_sec * 1000000000u + (uint64_t)status->st_ctim.tv_nsec;
  return ns >= taking->now_ns ? 0 : ns;
}

/* Files that came and went in a folder change its times, but not the folder. */
static uint32_t rights_of(const struct stat *status) { return (status->st_mode * 31u + status->st_uid) * 31u + status->st_gid; }

static bool prepend(char *text, char **at, const char *part) {
  size_t length = strlen(part);
  bool separated = **at != 0;
  if ((size_t)(*at - text) < length + separated) return false;
  if (separated) *--*at = '/';
  *at -= length;
  memcpy(*at, part, length);
  return true;
}

/* Writes the path below the part's top folder, or an empty text if it is too long to be used. */
static void path_of(const struct level *level, const char *name, char out[static PATH_MAX]) {
  char *at = out + PATH_MAX - 1;
  *at = 0;
  bool fits = prepend(out, &at, name);
  for (; fits && level->parent != NULL; level = level->parent) fits = prepend(out, &at, level->name);
  if (fits) memmove(out, at, strlen(at) + 1);
  else out[0] = 0;
}

static int open_out(struct taking *taking, struct level *level) {
  if (level->out >= 0) return level->out;
  int parent = level->parent == NULL ? AT_FDCWD : open_out(taking, level->parent);
  const char *name = level->parent == NULL ? taking->take->out : level->name;
  if (mkdirat(parent, name, 0700) != 0) launch_fail("point", "cannot create a folder");
  level->out = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (level->out < 0) launch_fail("point", "cannot create a folder");
  copy_metadata(level->upper, level->out, &level->status);
  if (level->opaque) set_opaque(level->out, taking->copying->rootless);
  if (level->parent == NULL) taking->out_root = level->out;
  return level->out;
}

static void finish_level(struct level *level) {
  if (level->out < 0) return;
  set_times(level->out, &level->status);
  close(level->out);
}

/*
 * Nothing answers a socket after its sandbox, and code inside cannot create devices. Both are left out, with what they
 * hide.
 */
static bool is_kept(const struct stat *status) {
  return S_ISREG(status->st_mode) || S_ISLNK(status->st_mode) || S_ISFIFO(status->st_mode);
}

/* Copies a folder of the mounted view, with everything below it. Other mounts in it are not part of the layer. */
static void copy_view(struct taking *taking, int from, struct level *to, int depth) {
  if (depth > LAYER_DEPTH_MAX) launch_fail("too-large", "folders are nested deeper than %d", LAYER_DEPTH_MAX);
  struct names names = read_names(from, &taking->entries_left);
  for (size_t i = 0; i < names.count; i++) {
    const char *name = names.list[i];
    struct stat status;
    if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) != 0) launch_fail("point", "cannot read a folder");
    if (!S_ISDIR(status.st_mode)) {
      /* Hard links of the view are not those of the layer. */
      status.st_nlink = 1;
      if (is_kept(&status)) copy_entry(taking->copying, from, taking->out_root, open_out(taking, to), name, "", &status);
      continue;
    }
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV};
    cleanup_fd int child = (int)syscall(CALL_OPENAT2, from, name, &how, sizeof how);
    if (child < 0 && errno == EXDEV) continue;
    if (child < 0) launch_fail("point", "cannot read a folder");
    struct level level = {.parent = to, .name = name, .upper = child, .out = -1, .status = status, .depth = depth};
    open_out(taking, &level);
    copy_view(taking, child, &level, depth + 1);
    finish_level(&level);
  }
  free_names(&names);
}

static void copy_moved(struct taking *taking, struct level *level) {
  if (taking->take->view < 0) launch_fail("moved", "%s", level->name);
  char path[PATH_MAX];
  path_of(level->parent, level->name, path);
  struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
  cleanup_fd int from = (int)syscall(CALL_OPENAT2, taking->take->view, path, &how, sizeof how);
  if (path[0] == 0 || from < 0) launch_fail("point", "cannot read the moved folder %s", path);
  level->opaque = true;
  open_out(taking, level);
  copy_view(taking, from, level, level->depth);
}

static void walk(struct taking *taking, struct level *level, before known, bool copies);

static void walk_folder(struct taking *taking, struct level *parent, const char *name, const struct stat *status,
                        const struct index_entry *known, before reader, bool copies) {
  struct level level = {.parent = parent, .name = name, .out = -1, .status = *status, .depth = parent->depth + 1};
  level.upper = openat(parent->upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (level.upper < 0) launch_fail("point", "cannot read a folder");
  uint64_t changed = changed_ns(taking, status);
  bool was_folder = known != NULL && known->type == ENTRY_FOLDER;
  bool same = was_folder && known->inode == status->st_ino;
  bool untouched = same && known->changed_ns == changed && changed != 0;
  bool opaque = untouched ? known->opaque : is_opaque(level.upper, taking->copying->rootless);
  same = same && opaque == known->opaque;
  if (!same && was_folder) {
    skip_folder(reader);
    reader = NULL;
  } else if (!was_folder) {
    reader = NULL;
  }
  write_entry(&taking->index, &(struct index_entry){.name = name, .type = ENTRY_FOLDER, .opaque = opaque, .inode = status->st_ino, .changed_ns = changed, .rights = rights_of(status)});
  if (!copies) {
    walk(taking, &level, reader, false);
  } else if (!same && !taking->copying->rootless && is_moved(level.upper)) {
    copy_moved(taking, &level);
    walk(taking, &level, NULL, false);
  } else {
    /* What the last point has under this name is something else, and must not appear in the folder. */
    level.opaque = same ? false : opaque || known != NULL;
    level.alone = level.opaque || parent->alone;
    if (!same || known->rights != rights_of(status)) open_out(taking, &level);
    walk(taking, &level, reader, true);
  }
  finish_level(&level);
  close(level.upper);
}

static void walk_entry(struct taking *taking, struct level *level, const char *name, const struct index_entry *known, before reader, bool copies) {
  struct stat status;
  if (fstatat(level->upper, name, &status, AT_SYMLINK_NOFOLLOW) != 0) launch_fail("point", "cannot read a layer");
  if (S_ISDIR(status.st_mode)) {
    walk_folder(taking, level, name, &status, known, reader, copies);
    return;
  }
  if (known != NULL && known->type == ENTRY_FOLDER) skip_folder(reader);
  uint8_t type = is_kept(&status) ? ENTRY_OTHER : ENTRY_WHITEOUT;
  uint64_t changed = changed_ns(taking, &status);
  write_entry(&taking->index, &(struct index_entry){.name = name, .type = type, .inode = status.st_ino, .changed_ns = changed});
  bool same = known != NULL && known->type == type && (type == ENTRY_WHITEOUT || (known->inode == status.st_ino && known->changed_ns == changed && changed != 0));
  if (same || !copies) return;
  /* The overlay lists a whiteout with nothing below it. */
  if (type == ENTRY_WHITEOUT && level->alone) return;
  int out = open_out(taking, level);
  if (type == ENTRY_WHITEOUT) {
    make_whiteout(out, name);
    taking->copying->files++;
    return;
  }
  char path[PATH_MAX];
  path_of(level, name, path);
  copy_entry(taking->copying, level->upper, taking->out_root, out, name, path, &status);
}

/* The overlay leaves no whiteout for a file that only the upper layer had, but the last point has the file. */
static void note_removal(struct taking *taking, struct level *level, const struct index_entry *known, before reader, bool copies) {
  if (known->type == ENTRY_FOLDER) skip_folder(reader);
  if (!copies || known->type == ENTRY_WHITEOUT) return;
  make_whiteout(open_out(taking, level), known->name);
  taking->copying->files++;
}

/* Compares the folder's names with those in the index; both are sorted. */
static void walk(struct taking *taking, struct level *level, before reader, bool copies) {
  if (level->depth > LAYER_DEPTH_MAX) launch_fail("too-large", "folders are nested deeper than %d", LAYER_DEPTH_MAX);
  struct names names = read_names(level->upper, &taking->entries_left);
  struct index_entry known;
  bool has_known = reader != NULL && next_entry(reader, &known);
  for (size_t i = 0; i < names.count || has_known;) {
    int order = !has_known ? -1 : i == names.count ? 1 : strcmp(names.list[i], known.name);
    if (order > 0) note_removal(taking, level, &known, reader, copies);
    else walk_entry(taking, level, names.list[i], order == 0 ? &known : NULL, reader, copies);
    if (order <= 0) i++;
    if (order >= 0) has_known = next_entry(reader, &known);
  }
  end_folder(&taking->index);
  free_names(&names);
}

void take_layer(const struct take *take, struct copying *copying, uint64_t now_ns) {
  struct taking taking = {.take = take, .copying = copying, .now_ns = now_ns, .entries_left = LAYER_ENTRIES_MAX, .out_root = -1};
  struct level top = {.name = "", .out = -1};
  top.upper = open(take->upper, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top.upper < 0 || fstat(top.upper, &top.status) != 0) launch_fail("point", "%s", take->upper);
  struct index_reader reader;
  bool indexed = open_index(&reader, take->old_index);
  struct index_entry known;
  if (indexed && (!next_entry(&reader, &known) || known.rights != rights_of(&top.status))) open_out(&taking, &top);
  write_entry(&taking.index, &(struct index_entry){.name = ".", .type = ENTRY_OTHER, .rights = rights_of(&top.status)});
  walk(&taking, &top, indexed ? &reader : NULL, true);
  finish_level(&top);
  close(top.upper);
  if (indexed) close_index(&reader);
  forget_links(copying);
  store_index(&taking.index, take->new_index);
}
