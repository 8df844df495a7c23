#include "base/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { PROCESSES_SCAN_MAX = 65536 };

ssize_t proc_read(const char *path, char *buffer, size_t size) {
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t got = read_full(fd, buffer, size - 1);
  if (got < 0) return -1;
  buffer[got] = 0;
  return got;
}

bool proc_stat_read(pid_t pid, struct proc_stat *out) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (proc_read(path, text, sizeof text) <= 0) return false;
  /* The name in parentheses may contain anything, including parentheses: parse from the last one. */
  const char *rest = strrchr(text, ')');
  if (rest == NULL) return false;
  int parent = 0;
  unsigned long long user = 0, system = 0, start = 0;
  long long resident = 0;
  *out = (struct proc_stat){.pid = pid};
  int found = sscanf(rest + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %lld", &out->state,
                     &parent, &user, &system, &start, &resident);
  if (found != 6) return false;
  out->parent = parent;
  out->cpu_ticks = user + system;
  out->start_ticks = start;
  out->resident_pages = resident > 0 ? (uint64_t)resident : 0;
  return true;
}

static int by_pid(const void *a, const void *b) {
  const struct proc_stat *left = a, *right = b;
  return (left->pid > right->pid) - (left->pid < right->pid);
}

size_t proc_all(struct proc_stat **out, size_t most) {
  *out = NULL;
  DIR *folder = opendir("/proc");
  if (folder == NULL) return 0;
  size_t count = 0, capacity = 0;
  struct dirent *entry;
  while (count < most && (entry = readdir(folder)) != NULL) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (count == capacity) {
      capacity = capacity ? capacity * 2 : 64;
      struct proc_stat *grown = realloc(*out, capacity * sizeof *grown);
      if (grown == NULL) break;
      *out = grown;
    }
    if (proc_stat_read((pid_t)atoi(entry->d_name), &(*out)[count])) count++;
  }
  closedir(folder);
  if (count > 0) qsort(*out, count, sizeof **out, by_pid);
  return count;
}

bool pids_add(struct pids *pids, pid_t pid) {
  if (pids->count == pids->capacity) {
    size_t capacity = pids->capacity ? pids->capacity * 2 : 32;
    pid_t *grown = realloc(pids->list, capacity * sizeof *grown);
    if (grown == NULL) return false;
    pids->list = grown;
    pids->capacity = capacity;
  }
  pids->list[pids->count++] = pid;
  return true;
}

void pids_free(struct pids *pids) {
  free(pids->list);
  *pids = (struct pids){0};
}

static void add_children_listed(const char *path, struct pids *out) {
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char text[4096];
  pid_t pid = 0;
  ssize_t got;
  while ((got = read(fd, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < got; i++) {
      if (isdigit((unsigned char)text[i])) {
        pid = pid * 10 + (text[i] - '0');
      } else if (pid > 0) {
        if (out->count < PROCESSES_SCAN_MAX) pids_add(out, pid);
        pid = 0;
      }
    }
  }
}

/* The kernel lists children under the thread that created them. */
static void add_children(pid_t parent, struct pids *out) {
  char path[320];
  snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
  DIR *threads = opendir(path);
  if (threads == NULL) return;
  struct dirent *entry;
  while ((entry = readdir(threads)) != NULL) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)parent, entry->d_name);
    add_children_listed(path, out);
  }
  closedir(threads);
}

static bool kernel_lists_children(void) {
  static int known; /* 0 unknown, 1 yes, -1 no */
  if (known == 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    known = access(path, R_OK) == 0 ? 1 : -1;
  }
  return known > 0;
}

static void descendants_by_scan(pid_t root, struct pids *out) {
  struct proc_stat *all;
  size_t count = proc_all(&all, PROCESSES_SCAN_MAX);
  for (size_t i = 0; i < count; i++) {
    if (all[i].parent == root) pids_add(out, all[i].pid);
  }
  for (size_t next = 0; next < out->count; next++) {
    for (size_t i = 0; i < count; i++) {
      if (all[i].parent == out->list[next] && out->count < PROCESSES_SCAN_MAX) pids_add(out, all[i].pid);
    }
  }
  free(all);
}

void proc_children(pid_t parent, struct pids *out) {
  if (kernel_lists_children()) {
    add_children(parent, out);
    return;
  }
  struct proc_stat *all;
  size_t count = proc_all(&all, PROCESSES_SCAN_MAX);
  for (size_t i = 0; i < count; i++) {
    if (all[i].parent == parent) pids_add(out, all[i].pid);
  }
  free(all);
}

void proc_descendants(pid_t root, struct pids *out) {
  out->count = 0;
  if (!kernel_lists_children()) {
    descendants_by_scan(root, out);
    return;
  }
  add_children(root, out);
  for (size_t next = 0; next < out->count; next++) add_children(out->list[next], out);
}
