#include "files/worker-tree.h"
#include "files/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

enum { OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

struct directory_entry {
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

static void names_free(struct tree *tree, struct names *names) {
  tree->name_bytes -= names->capacity + names->room * sizeof *names->offsets;
  free(names->bytes);
  free(names->offsets);
  *names = (struct names){0};
}

static int names_add(struct tree *tree, struct names *names, const char *name, unsigned char type) {
  size_t size = strlen(name) + 2;
  if (names->length + size > names->capacity) {
    size_t capacity = names->capacity ? names->capacity * 2 : 64;
    while (capacity < names->length + size) capacity *= 2;
    if (tree->name_bytes + capacity - names->capacity > TREE_NAME_BYTES_MAX) return E2BIG;
    char *grown = realloc(names->bytes, capacity);
    if (grown == NULL) return ENOMEM;
    tree->name_bytes += capacity - names->capacity;
    names->bytes = grown;
    names->capacity = capacity;
  }
  if (names->count == names->room) {
    size_t room = names->room ? names->room * 2 : 4;
    size_t more = (room - names->room) * sizeof *names->offsets;
    if (tree->name_bytes + more > TREE_NAME_BYTES_MAX) return E2BIG;
    uint32_t *grown = realloc(names->offsets, room * sizeof *grown);
    if (grown == NULL) return ENOMEM;
    tree->name_bytes += more;
    names->offsets = grown;
    names->room = room;
  }
  names->offsets[names->count++] = (uint32_t)names->length;
  names->bytes[names->length] = (char)type;
  memcpy(names->bytes + names->length + 1, name, size - 1);
  names->length += size;
  return 0;
}

int tree_read_names(struct tree *tree, size_t max) {
  struct tree_level *top = tree_top(tree);
  _Alignas(struct directory_entry) char buffer[32768];
  names_free(tree, &top->names);
  top->next = 0;
  top->complete = false;
  while (top->names.count < max) {
    long got = syscall(SYS_getdents64, top->fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) {
      top->complete = true;
      return 0;
    }
    for (long at = 0; at < got;) {
      const struct directory_entry *entry = (const void *)(buffer + at);
      at += entry->length;
      if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0) continue;
      int error = names_add(tree, &top->names, entry->name, entry->type);
      if (error) return error;
    }
  }
  return 0;
}

static int compare_names(const void *left, const void *right, void *bytes) {
  return strcmp((char *)bytes + *(const uint32_t *)left + 1, (char *)bytes + *(const uint32_t *)right + 1);
}

void tree_sort_names(struct tree *tree) {
  struct names *names = &tree_top(tree)->names;
  if (names->count > 1) qsort_r(names->offsets, names->count, sizeof *names->offsets, compare_names, names->bytes);
}

const char *tree_next(struct tree *tree, unsigned char *type) {
  struct tree_level *top = tree_top(tree);
  if (top->next == top->names.count) return NULL;
  const char *record = top->names.bytes + top->names.offsets[top->next++];
  *type = (unsigned char)record[0];
  return record + 1;
}

static bool path_reserve(struct tree *tree, size_t size) {
  if (size <= tree->path_capacity) return true;
  if (size > TREE_PATH_BYTES_MAX) return false;
  size_t capacity = tree->path_capacity ? tree->path_capacity : 512;
  while (capacity < size) capacity *= 2;
  char *grown = realloc(tree->path, capacity);
  if (grown == NULL) return false;
  tree->path = grown;
  tree->path_capacity = capacity;
  return true;
}

/* Appends "name" to the top level's path; overwritten by the next call, or when a level is entered or left. */
const char *tree_path(struct tree *tree, const char *name) {
  size_t length = tree_top(tree)->path_length;
  size_t size = strlen(name) + 1;
  if (!path_reserve(tree, length + 1 + size)) return NULL;
  if (length > 0) tree->path[length++] = '/';
  memcpy(tree->path + length, name, size);
  return tree->path;
}

const char *tree_name(const struct tree *tree) {
  if (tree->count < 2) return "";
  size_t above = tree->levels[tree->count - 2].path_length;
  return tree->path + (above ? above + 1 : 0);
}

static int push(struct tree *tree, int fd, size_t path_length) {
  struct stat status;
  if (tree->count >= TREE_DEPTH_MAX) {
    close(fd);
    return E2BIG;
  }
  if (tree->count == tree->capacity) {
    size_t capacity = tree->capacity ? tree->capacity * 2 : 16;
    struct tree_level *grown = realloc(tree->levels, capacity * sizeof *grown);
    if (grown == NULL) {
      close(fd);
      return ENOMEM;
    }
    tree->levels = grown;
    tree->capacity = capacity;
  }
  if (fstat(fd, &status) != 0) {
    int error = errno;
    close(fd);
    return error;
  }
  tree->levels[tree->count++] = (struct tree_level){.fd = fd, .device = status.st_dev, .inode = status.st_ino, .path_length = path_length};
  if (tree->count > TREE_FDS_MAX) close_fd(&tree->levels[tree->count - 1 - TREE_FDS_MAX].fd);
  return 0;
}

int tree_start(struct tree *tree, int folder_fd) {
  *tree = (struct tree){0};
  if (!path_reserve(tree, 1)) {
    close(folder_fd);
    return ENOMEM;
  }
  tree->path[0] = 0;
  return push(tree, folder_fd, 0);
}

int tree_enter(struct tree *tree, const char *name) {
  int fd = openat(tree_top(tree)->fd, name, OPEN_FOLDER);
  if (fd < 0) return errno;
  const char *path = tree_path(tree, name);
  if (path == NULL) {
    close(fd);
    return E2BIG;
  }
  return push(tree, fd, strlen(path));
}

int tree_leave(struct tree *tree) {
  struct tree_level *top = tree_top(tree);
  struct tree_level *above = tree->count > 1 ? top - 1 : NULL;
  int error = 0;
  if (above != NULL && above->fd < 0) {
    struct stat status;
    above->fd = openat(top->fd, "..", OPEN_FOLDER);
    if (above->fd < 0 || fstat(above->fd, &status) != 0) error = errno;
    else if (status.st_dev != above->device || status.st_ino != above->inode) error = ESTALE;
  }
  close_fd(&top->fd);
  names_free(tree, &top->names);
  tree->count--;
  if (above != NULL) tree->path[above->path_length] = 0;
  return error;
}

void tree_free(struct tree *tree) {
  while (tree->count > 0) {
    struct tree_level *top = tree_top(tree);
    close_fd(&top->fd);
    names_free(tree, &top->names);
    tree->count--;
  }
  free(tree->levels);
  free(tree->path);
  *tree = (struct tree){0};
}

struct link_seen {
  dev_t device;
  ino_t inode;
  char *path;
};

static size_t link_slot(const struct links *links, dev_t device, ino_t inode) {
  uint64_t hash = ((uint64_t)inode ^ (uint64_t)device << 40) * 0x9E3779B97F4A7C15u;
  size_t at = (size_t)(hash >> 32) & (links->capacity - 1);
  while (links->slots[at].path != NULL && (links->slots[at].device != device || links->slots[at].inode != inode)) {
    at = (at + 1) & (links->capacity - 1);
  }
  return at;
}

static bool links_grow(struct links *links) {
  struct links grown = {.capacity = links->capacity ? links->capacity * 2 : 64, .count = links->count};
  grown.slots = calloc(grown.capacity, sizeof *grown.slots);
  if (grown.slots == NULL) return false;
  for (size_t i = 0; i < links->capacity; i++) {
    const struct link_seen *seen = &links->slots[i];
    if (seen->path != NULL) grown.slots[link_slot(&grown, seen->device, seen->inode)] = *seen;
  }
  free(links->slots);
  *links = grown;
  return true;
}

const char *links_seen(struct links *links, const struct stat *status, const char *path) {
  if (links->count * 2 >= links->capacity && (links->capacity >= LINKS_MAX * 2 || !links_grow(links))) {
    if (links->capacity == 0 || links->count + 1 >= links->capacity) return NULL;
  }
  struct link_seen *seen = &links->slots[link_slot(links, status->st_dev, status->st_ino)];
  if (seen->path != NULL) return seen->path;
  if (links->count >= LINKS_MAX) return NULL;
  *seen = (struct link_seen){status->st_dev, status->st_ino, strdup(path)};
  if (seen->path != NULL) links->count++;
  return NULL;
}

void links_free(struct links *links) {
  for (size_t i = 0; i < links->capacity; i++) free(links->slots[i].path);
  free(links->slots);
  *links = (struct links){0};
}
