/* TAR_OUT: packs a file or folder as a pax archive, sorted by name, so the same tree yields the same bytes. */
#include "files/tar.h"
#include "files/worker-tree.h"
#include "files/worker.h"
#include "wire/tags.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { TAR_EXCLUDES_MAX = 4096 };

struct packing {
  struct worker *worker;
  struct tree tree;
  struct links links;
  const char *root;
  char **excludes;
  size_t exclude_count;
  uint64_t left;
  /* The DATA frame being filled. */
  size_t room;
  size_t filled;
  /* Stop: an answer was sent, or the stream has ended. */
  bool over;
  bool failed;
};

static int fail(struct packing *packing, int error, const char *path) {
  if (packing->over) return -1;
  packing->over = packing->failed = true;
  cleanup_free char *whole = NULL;
  if (path[0] && asprintf(&whole, "%s/%s", packing->root, path) < 0) whole = NULL;
  answer_errno(packing->worker, error, "pack", whole != NULL ? whole : packing->root);
  return -1;
}

/* Returns the room in the current frame; waits for credit before it starts a new one. 0 if the stream has ended. */
static size_t room(struct packing *packing) {
  if (packing->over) return 0;
  if (packing->filled == packing->room) {
    if (packing->filled > 0 && !worker_data_send(packing->worker, packing->filled)) packing->over = true;
    ssize_t got = packing->over ? -1 : worker_data_room(packing->worker, FRAME_PAYLOAD_MAX);
    packing->filled = 0;
    packing->room = got > 0 ? (size_t)got : 0;
    if (got <= 0) packing->over = true;
  }
  return packing->room - packing->filled;
}

/* Counts a part against the limit before any of it is sent. */
static bool allowed(struct packing *packing, uint64_t length, const char *path) {
  if (length > packing->left) {
    if (!packing->over) {
      packing->over = packing->failed = true;
      answer_error(packing->worker, ERR_TOO_LARGE, 0, "pack", path[0] ? path : packing->root, "the archive exceeds the byte limit");
    }
    return false;
  }
  packing->left -= length;
  return true;
}

/* Sends zeros if `bytes` is NULL. */
static bool emit(struct packing *packing, const uint8_t *bytes, uint64_t length) {
  while (length > 0) {
    size_t space = room(packing);
    if (space == 0) return false;
    if (space > length) space = (size_t)length;
    uint8_t *into = worker_data(packing->worker) + packing->filled;
    if (bytes != NULL) memcpy(into, bytes, space), bytes += space;
    else memset(into, 0, space);
    packing->filled += space;
    length -= space;
  }
  return true;
}

static bool emit_header(struct packing *packing, const struct tar_entry *entry) {
  uint8_t *blocks = NULL;
  size_t length;
  if (!tar_entry_encode(entry, &blocks, &length)) {
    fail(packing, ENOMEM, entry->name);
    return false;
  }
  bool done = allowed(packing, length, entry->name) && emit(packing, blocks, length);
  free(blocks);
  return done;
}

/* Sends exactly `size` bytes: if the file shrank, zeros follow; if it grew, the rest is left out. */
static bool emit_content(struct packing *packing, int fd, uint64_t size, const char *path) {
  uint64_t left = size;
  while (left > 0) {
    size_t space = room(packing);
    if (space == 0) return false;
    if (space > left) space = (size_t)left;
    ssize_t got = read(fd, worker_data(packing->worker) + packing->filled, space);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      fail(packing, errno, path);
      return false;
    }
    if (got == 0) break;
    packing->filled += (size_t)got;
    left -= (uint64_t)got;
  }
  return emit(packing, NULL, left + (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static struct tar_entry entry_of(const struct stat *status, uint8_t type, const char *name) {
  return (struct tar_entry){
      .type = type,
      .name = name,
      .mode = status->st_mode & 07777,
      .uid = status->st_uid,
      .gid = status->st_gid,
      .modified = status->st_mtim.tv_sec,
  };
}

/* Returns 0 if the file was packed or no longer exists, -1 to stop. */
static int pack_regular(struct packing *packing, int folder_fd, const char *name, const char *path) {
  struct stat status;
  cleanup_fd int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO)) return 0;
  if (fd < 0 || fstat(fd, &status) != 0) return fail(packing, errno, path);
  if (!S_ISREG(status.st_mode)) return 0;
  struct tar_entry entry = entry_of(&status, TAR_FILE, path);
  entry.size = (uint64_t)status.st_size;
  const char *seen = status.st_nlink > 1 ? links_seen(&packing->links, &status, path) : NULL;
  if (seen != NULL) {
    entry.type = TAR_HARD_LINK;
    entry.link = seen;
    entry.size = 0;
    return emit_header(packing, &entry) ? 0 : -1;
  }
  uint64_t padded = entry.size + (TAR_BLOCK - entry.size % TAR_BLOCK) % TAR_BLOCK;
  /* Header and content are one part, so a file that cannot be sent whole is not started. */
  if (padded > packing->left) return allowed(packing, padded, path) ? 0 : -1;
  if (!emit_header(packing, &entry) || !allowed(packing, padded, path)) return -1;
  return emit_content(packing, fd, entry.size, path) ? 0 : -1;
}

static int pack_link(struct packing *packing, int folder_fd, const char *name, const char *path, const struct stat *status) {
  char target[PATH_BYTES_MAX + 1];
  ssize_t length = readlinkat(folder_fd, name, target, PATH_BYTES_MAX);
  if (length < 0) return errno == ENOENT || errno == EINVAL ? 0 : fail(packing, errno, path);
  target[length] = 0;
  struct tar_entry entry = entry_of(status, TAR_SYMBOLIC_LINK, path);
  entry.link = target;
  return emit_header(packing, &entry) ? 0 : -1;
}

static int pack_folder_header(struct packing *packing, const char *path, const struct stat *status) {
  cleanup_free char *name = NULL;
  if (asprintf(&name, "%s/", path[0] ? path : ".") < 0) {
    name = NULL;
    return fail(packing, ENOMEM, path);
  }
  struct tar_entry entry = entry_of(status, TAR_FOLDER, name);
  return emit_header(packing, &entry) ? 0 : -1;
}

static bool excluded(const struct packing *packing, const char *name, const char *path) {
  for (size_t i = 0; i < packing->exclude_count; i++) {
    if (strcmp(packing->excludes[i], name) == 0 || strcmp(packing->excludes[i], path) == 0) return true;
  }
  return false;
}

static int read_sorted(struct packing *packing, const char *path) {
  int error = tree_read_names(&packing->tree, SIZE_MAX);
  if (error) return fail(packing, error, path);
  tree_sort_names(&packing->tree);
  return 0;
}

static int pack_entry(struct packing *packing, const char *name) {
  int fd = tree_top(&packing->tree)->fd;
  struct stat status;
  const char *path = tree_path(&packing->tree, name);
  if (path == NULL || strlen(path) > PATH_BYTES_MAX) return fail(packing, ENAMETOOLONG, path != NULL ? path : name);
  if (excluded(packing, name, path)) return 0;
  if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : fail(packing, errno, path);
  switch (status.st_mode & S_IFMT) {
    case S_IFREG: return pack_regular(packing, fd, name, path);
    case S_IFLNK: return pack_link(packing, fd, name, path, &status);
    case S_IFDIR: break;
    /* Sockets, FIFOs and devices mean nothing elsewhere, and TAR_IN would refuse them. */
    default: return 0;
  }
  if (pack_folder_header(packing, path, &status) != 0) return -1;
  int error = tree_enter(&packing->tree, name);
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) return 0;
  if (error) return fail(packing, error, tree_path(&packing->tree, name));
  return read_sorted(packing, packing->tree.path);
}

static int pack_tree(struct packing *packing, int folder_fd, const struct stat *status) {
  int error = tree_start(&packing->tree, folder_fd);
  if (error) return fail(packing, error, "");
  if (pack_folder_header(packing, "", status) != 0 || read_sorted(packing, "") != 0) return -1;
  for (;;) {
    unsigned char type;
    const char *name = tree_next(&packing->tree, &type);
    if (worker_cancelled(packing->worker)) return -1;
    if (name != NULL) {
      if (pack_entry(packing, name) != 0) return -1;
    } else if (packing->tree.count == 1) {
      return 0;
    } else {
      error = tree_leave(&packing->tree);
      if (error) return fail(packing, error, packing->tree.path);
    }
  }
}

static int pack_root(struct packing *packing, int parent_fd, const char *base, const struct stat *status) {
  if (S_ISREG(status->st_mode)) return pack_regular(packing, parent_fd, base, base);
  if (S_ISLNK(status->st_mode)) return pack_link(packing, parent_fd, base, base, status);
  int fd = openat(parent_fd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return fail(packing, errno, "");
  return pack_tree(packing, fd, status);
}

/* Reads the names and paths to exclude, without trailing slashes and a leading "./". */
static bool take_excludes(struct packing *packing, const struct request *request) {
  struct fields cursor = fields_of(request->payload, request->length);
  struct field field;
  packing->excludes = calloc(TAR_EXCLUDES_MAX, sizeof *packing->excludes);
  while (packing->excludes != NULL && fields_next(&cursor, &field) == 1) {
    if (field.tag != TAG_TAR_OUT_EXCLUDE) continue;
    while (field.length > 1 && field.data[field.length - 1] == '/') field.length--;
    if (field.length > 2 && field.data[0] == '.' && field.data[1] == '/') field.data += 2, field.length -= 2;
    char *text = packing->exclude_count < TAR_EXCLUDES_MAX ? field_text(&field) : NULL;
    if (text == NULL) return false;
    packing->excludes[packing->exclude_count++] = text;
  }
  return packing->excludes != NULL;
}

static void finish(struct packing *packing) {
  /* Two blocks of zeros end an archive. */
  if (!allowed(packing, 2 * TAR_BLOCK, "") || !emit(packing, NULL, 2 * TAR_BLOCK)) return;
  if (packing->filled == 0 || worker_data_send(packing->worker, packing->filled)) worker_data_end(packing->worker);
}

void do_tar_out(struct worker *worker, const struct request *request) {
  struct packing packing = {.worker = worker};
  struct stat status;
  const char *base = "";
  cleanup_free char *path = request_path(worker, request, TAG_TAR_OUT_PATH, "pack");
  if (path == NULL || !request_number(worker, request, TAG_TAR_OUT_BYTES_MAX, 0, &packing.left)) return;
  if (packing.left == 0) packing.left = UINT64_MAX;
  packing.root = path;
  cleanup_fd int parent_fd = strcmp(path, "/") == 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : open_parent(path, &base);
  if (base[0] == 0) base = ".";
  if (parent_fd < 0 || fstatat(parent_fd, base, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    answer_errno(worker, errno, "pack", path);
  } else if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode)) {
    answer_error(worker, ERR_UNSUPPORTED, 0, "pack", path, "not a file, folder or link");
  } else if (S_ISDIR(status.st_mode) && faccessat(parent_fd, base, R_OK, AT_EACCESS) != 0) {
    answer_errno(worker, errno, "pack", path);
  } else if (!take_excludes(&packing, request)) {
    answer_error(worker, ERR_INVALID, 0, "pack", path, "too many names to exclude, or one contains NUL");
  } else {
    answer_ok(worker);
    if (pack_root(&packing, parent_fd, base, &status) == 0) finish(&packing);
  }
  tree_free(&packing.tree);
  links_free(&packing.links);
  for (size_t i = 0; i < packing.exclude_count; i++) free(packing.excludes[i]);
  free(packing.excludes);
}
