/* WATCH: inotify. A recursive watch adds new folders as they appear, and reports their content. */
#include "files/watch.h"
#include "files/worker-tree.h"
#include "files/worker.h"
#include "wire/tags.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

enum watch_kind { CREATED = 1, MODIFIED = 2, REMOVED = 3, MOVED_HERE = 4, ATTRIBUTES = 5, OVERFLOW = 6 };

enum { FOLDER_EVENTS = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK };
enum { FILE_EVENTS = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF };

struct watch {
  struct worker *worker;
  const char *root;
  /* Identified by device and inode and not held open: an open folder does not report its own removal. */
  struct stat root_status;
  int inotify_fd;
  bool recursive;
  struct watch_table table;
  struct watch_seen *seen;
};

static void report(struct watch *watch, enum watch_kind kind, const char *path, bool folder) {
  struct frame_writer *out = &watch->worker->out;
  char whole[2 * PATH_MAX + NAME_MAX];
  snprintf(whole, sizeof whole, "%s%s%s", watch->root[1] ? watch->root : "", path[0] ? "/" : "", path);
  frame_begin(out, FRAME_WATCH_EVENT, watch->worker->stream);
  frame_field_u64(out, TAG_WATCH_EVENT_KIND, kind);
  frame_field_text(out, TAG_WATCH_EVENT_PATH, whole[0] ? whole : "/");
  frame_field_u64(out, TAG_WATCH_EVENT_IS_DIRECTORY, folder);
  worker_queue(watch->worker);
}

/* Adds the folder by its descriptor, since its path may now lead elsewhere. Returns 0 or an errno. */
static int add_folder(struct watch *watch, int fd, const char *path) {
  char name[64];
  if (watch->table.count >= WATCHES_MAX || strlen(path) > PATH_BYTES_MAX) return E2BIG;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  int descriptor = inotify_add_watch(watch->inotify_fd, name, FOLDER_EVENTS | IN_ONLYDIR);
  if (descriptor < 0 && errno == ENOENT && path[0] == 0) {
    descriptor = inotify_add_watch(watch->inotify_fd, watch->root, FOLDER_EVENTS | IN_ONLYDIR);
  }
  /* ENOSPC is the user's limit on watches, not a full disk. */
  if (descriptor < 0) return errno == ENOSPC ? E2BIG : errno;
  return watch_table_put(&watch->table, descriptor, path) ? 0 : E2BIG;
}

static bool is_folder(int fd, const char *name, unsigned char type) {
  struct stat status;
  if (type != DT_UNKNOWN) return type == DT_DIR;
  return fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/*
 * Watches the folder `path` and everything below it. Watches each folder before scanning it, so no change is missed; a
 * change that both the watch and the scan see is reported once. Takes ownership of `fd` and returns 0 or an errno.
 * Skips folders that were removed or cannot be read.
 */
static int add_tree(struct watch *watch, int fd, const char *path, bool tell) {
  cleanup_tree struct tree tree = {0};
  char whole[2 * PATH_MAX];
  int error = tree_start(&tree, fd);
  bool entered = error == 0;
  while (error == 0) {
    unsigned char type;
    if (entered) {
      const char *below = tree.path;
      snprintf(whole, sizeof whole, "%s%s%s", path, path[0] && below[0] ? "/" : "", below);
      error = add_folder(watch, tree_top(&tree)->fd, whole);
      if (error == 0) error = tree_read_names(&tree, SIZE_MAX);
      entered = false;
      continue;
    }
    if (worker_cancelled(watch->worker)) return ECANCELED;
    const char *name = tree_next(&tree, &type);
    if (name == NULL) {
      if (tree.count == 1) return 0;
      error = tree_leave(&tree);
      continue;
    }
    bool folder = is_folder(tree_top(&tree)->fd, name, type);
    if (tell) {
      const char *below = tree_path(&tree, name);
      if (below == NULL || strlen(below) > PATH_BYTES_MAX) return E2BIG;
      snprintf(whole, sizeof whole, "%s%s%s", path, path[0] ? "/" : "", below);
      watch_seen_add(watch->seen, whole);
      report(watch, CREATED, whole, folder);
    }
    if (!folder) continue;
    int refused = tree_enter(&tree, name);
    if (refused == E2BIG || refused == ENOMEM) return refused;
    entered = refused == 0;
  }
  return error;
}

/* Opens a folder beneath the root, through no link; returns -1 if the root's path now leads to another folder. */
static int open_below(const struct watch *watch, const char *path) {
  struct stat status;
  int fd = open(watch->root, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &status) != 0 || status.st_ino != watch->root_status.st_ino || status.st_dev != watch->root_status.st_dev) {
    close(fd);
    errno = ESTALE;
    return -1;
  }
  while (fd >= 0 && *path) {
    char name[NAME_MAX + 1];
    size_t length = strcspn(path, "/");
    snprintf(name, sizeof name, "%.*s", (int)length, path);
    path += length + (path[length] == '/');
    int next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    close(fd);
    fd = next;
  }
  return fd;
}

static void folder_appeared(struct watch *watch, const char *path) {
  int fd = open_below(watch, path);
  int error = fd < 0 ? 0 : add_tree(watch, fd, path, true);
  /* The host must rescan what we could not scan. */
  if (error && error != ECANCELED) report(watch, OVERFLOW, path, true);
}

static void look_again(struct watch *watch) {
  report(watch, OVERFLOW, "", true);
  if (!watch->recursive) return;
  watch_table_drop(&watch->table, watch->inotify_fd, "");
  int fd = open_below(watch, "");
  if (fd >= 0) add_tree(watch, fd, "", false);
}

static void take_named(struct watch *watch, const struct inotify_event *event, const char *folder) {
  char path[2 * PATH_MAX];
  bool is_dir = (event->mask & IN_ISDIR) != 0;
  snprintf(path, sizeof path, "%s%s%s", folder, folder[0] ? "/" : "", event->name);
  if (event->mask & IN_CREATE) {
    if (watch_seen_take(watch->seen, path)) return;
    report(watch, CREATED, path, is_dir);
  } else if (event->mask & IN_MOVED_TO) {
    watch_seen_take(watch->seen, path);
    report(watch, MOVED_HERE, path, is_dir);
  } else if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
    watch_seen_take(watch->seen, path);
    if (is_dir && watch->recursive) watch_table_drop(&watch->table, watch->inotify_fd, path);
    report(watch, REMOVED, path, is_dir);
    return;
  } else if (event->mask & IN_MODIFY) {
    report(watch, MODIFIED, path, is_dir);
    return;
  } else if (event->mask & IN_ATTRIB) {
    report(watch, ATTRIBUTES, path, is_dir);
    return;
  }
  if (is_dir && watch->recursive) folder_appeared(watch, path);
}

static void take_event(struct watch *watch, const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) {
    look_again(watch);
    return;
  }
  const char *folder = watch_table_path(&watch->table, event->wd);
  if (event->mask & IN_IGNORED) watch_table_remove(&watch->table, event->wd);
  else if (folder != NULL && event->len > 0) take_named(watch, event, folder);
  /* Only the root reports its own events; for every other folder its parent does. */
  else if (folder != NULL && folder[0] == 0) {
    bool is_dir = (event->mask & IN_ISDIR) != 0;
    if (event->mask & IN_MODIFY) report(watch, MODIFIED, "", is_dir);
    if (event->mask & IN_ATTRIB) report(watch, ATTRIBUTES, "", is_dir);
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) report(watch, REMOVED, "", S_ISDIR(watch->root_status.st_mode));
  }
}

static void run(struct watch *watch) {
  _Alignas(struct inotify_event) char buffer[32768];
  while (worker_wait_with(watch->worker, watch->inotify_fd)) {
    ssize_t got = read(watch->inotify_fd, buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) {
      answer_errno(watch->worker, errno, "watch", watch->root);
      return;
    }
    const struct inotify_event *last = NULL;
    for (ssize_t at = 0; at < got && !watch->worker->cancelled;) {
      const struct inotify_event *event = (const void *)(buffer + at);
      at += (ssize_t)(sizeof *event + event->len);
      /* A long write causes many identical events; one is enough. */
      bool again = last != NULL && event->mask == IN_MODIFY && last->mask == IN_MODIFY && event->wd == last->wd && event->len == last->len &&
                   memcmp(event->name, last->name, event->len) == 0;
      last = event;
      if (!again) take_event(watch, event);
    }
    struct pollfd more = {.fd = watch->inotify_fd, .events = POLLIN};
    if (poll(&more, 1, 0) == 0) watch_seen_clear(watch->seen);
  }
}

static int set_up(struct watch *watch) {
  watch->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (watch->inotify_fd < 0) return errno;
  if (stat(watch->root, &watch->root_status) != 0) return errno;
  if (!S_ISDIR(watch->root_status.st_mode)) {
    int descriptor = inotify_add_watch(watch->inotify_fd, watch->root, FILE_EVENTS);
    if (descriptor < 0) return errno == ENOSPC ? E2BIG : errno;
    return watch_table_put(&watch->table, descriptor, "") ? 0 : ENOMEM;
  }
  int fd = open_below(watch, "");
  if (fd < 0) return errno;
  if (watch->recursive) return add_tree(watch, fd, "", false);
  int error = add_folder(watch, fd, "");
  close(fd);
  return error;
}

void do_watch(struct worker *worker, const struct request *request) {
  uint64_t recursive;
  cleanup_free char *path = request_path(worker, request, TAG_WATCH_PATH, "watch");
  if (path == NULL || !request_number(worker, request, TAG_WATCH_RECURSIVE, 0, &recursive)) return;
  struct watch watch = {.worker = worker, .root = path, .inotify_fd = -1, .recursive = recursive != 0};
  watch.seen = calloc(1, sizeof *watch.seen);
  int error = watch.seen == NULL ? ENOMEM : set_up(&watch);
  if (error == E2BIG) answer_error(worker, ERR_TOO_LARGE, error, "watch", path, "too many folders to watch");
  else if (error && error != ECANCELED) answer_errno(worker, error, "watch", path);
  else if (error == 0) {
    answer_ok(worker);
    run(&watch);
  }
  watch_table_free(&watch.table);
  free(watch.seen);
  close_fd(&watch.inotify_fd);
}
