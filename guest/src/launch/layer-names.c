/* The sorted names in a folder. */
#include "launch/layers.h"

#include "launch/launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

static int compare_names(const void *left, const void *right) { return strcmp(*(char *const *)left, *(char *const *)right); }

struct names read_names(int folder, uint64_t *entries_left) {
  struct names names = {0};
  size_t length = 0, room = 0;
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = copy < 0 ? NULL : fdopendir(copy);
  if (entries == NULL) launch_fail("point", "cannot read a folder");
  struct dirent *entry;
  while ((entry = readdir(entries)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if ((*entries_left)-- == 0) launch_fail("too-large", "more than %d files", LAYER_ENTRIES_MAX);
    size_t bytes = strlen(entry->d_name) + 1;
    if (length + bytes > room) {
      room = room * 2 + bytes + 1024;
      names.text = realloc(names.text, room);
      if (names.text == NULL) launch_fail("point", "out of memory");
    }
    memcpy(names.text + length, entry->d_name, bytes);
    length += bytes;
    names.count++;
  }
  closedir(entries);
  names.list = xalloc((names.count + 1) * sizeof *names.list);
  char *at = names.text;
  for (size_t i = 0; i < names.count; i++, at += strlen(at) + 1) names.list[i] = at;
  qsort(names.list, names.count, sizeof *names.list, compare_names);
  return names;
}

void free_names(struct names *names) {
  free(names->list);
  free(names->text);
}
