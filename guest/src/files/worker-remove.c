#include "files/worker-tree.h"
#include "files/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { RESCANS_MAX = 16, REMOVE_BATCH = 2048 };

/* Removes one entry, or enters it if it is a folder. */
static int remove_entry(struct tree *tree, const char *name, unsigned char type) {
  int fd = tree_top(tree)->fd;
  if (type != DT_DIR) {
    if (unlinkat(fd, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    int error = errno;
    if (type != DT_UNKNOWN && error == EPERM) return error;
  }
  int error = tree_enter(tree, name);
  if (error == 0 || error == ENOENT) return 0;
  /* A folder may have become a link since it was read; remove the link itself. */
  if (error == ENOTDIR || error == ELOOP) return unlinkat(fd, name, 0) == 0 || errno == ENOENT ? 0 : errno;
  /* An unreadable folder can still be removed if it is empty. */
  if (error == EACCES && (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)) return 0;
  return error;
}

/* Leaves the finished top level and removes its folder, unless something in it could not be removed. */
static int remove_top(struct tree *tree, unsigned *rescans, bool incomplete) {
  cleanup_free char *name = strdup(tree_name(tree));
  if (name == NULL) return ENOMEM;
  int error = tree_leave(tree);
  if (error) return error;
  if (unlinkat(tree_top(tree)->fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  error = errno;
  if (incomplete && (error == ENOTEMPTY || error == EEXIST)) return 0;
  if ((error != ENOTEMPTY && error != EEXIST) || ++*rescans > RESCANS_MAX) {
    tree_path(tree, name);
    return error;
  }
  /* Another process has written into it. */
  return tree_enter(tree, name);
}

/* Continues past entries that it may not remove, and reports the first of them. */
int remove_contents(struct worker *worker, int folder_fd, char **failed) {
  cleanup_tree struct tree tree = {0};
  unsigned rescans = 0;
  int first_error = 0;
  int error = tree_start(&tree, folder_fd);
  while (error == 0) {
    unsigned char type;
    const char *name = tree_next(&tree, &type);
    if (worker_cancelled(worker)) return ECANCELED;
    if (name != NULL) {
      int refused = remove_entry(&tree, name, type);
      if (refused && first_error == 0) {
        const char *path = tree_path(&tree, name);
        *failed = path != NULL ? strdup(path) : NULL;
        first_error = refused;
      }
    } else if (!tree_top(&tree)->complete) {
      error = tree_read_names(&tree, REMOVE_BATCH);
    } else if (tree.count > 1) {
      error = remove_top(&tree, &rescans, first_error != 0);
    } else {
      return first_error;
    }
  }
  if (first_error) return first_error;
  *failed = tree.path != NULL ? strdup(tree.path) : NULL;
  return error;
}
