/*
 * Reads /proc. The kernel writes it, but the sandbox chooses the names in it: nothing here trusts a length or a name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
  pid_t pid, parent;
  char state;
  uint64_t cpu_ticks, start_ticks;
  uint64_t resident_pages;
};

/* Returns false if the process no longer exists. */
bool proc_stat_read(pid_t pid, struct proc_stat *out);
/* Lists the visible processes, sorted by pid, at most `most`. The caller frees the array. */
size_t proc_all(struct proc_stat **out, size_t most);
/* Reads a small file of /proc into `buffer` and NUL-terminates it. Returns its length, or -1. */
ssize_t proc_read(const char *path, char *buffer, size_t size);

/* A growing list of pids. */
struct pids {
  pid_t *list;
  size_t count, capacity;
};
bool pids_add(struct pids *pids, pid_t pid);
void pids_free(struct pids *pids);

void proc_children(pid_t parent, struct pids *out);
/*
 * Collects all descendants of a process, without the process itself. May miss processes that are forked during the
 * scan: call it again.
 */
void proc_descendants(pid_t root, struct pids *out);
