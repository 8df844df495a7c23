/*
 * Reading /proc, which is written by the kernel but names things the sandbox chose: nothing here trusts a length or a
 * name.
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

/* False when the process is gone. */
bool proc_stat_read(pid_t pid, struct proc_stat *out);
/* Every process that can be seen, sorted by pid; at most `most`. The array is for the caller to free. */
size_t proc_all(struct proc_stat **out, size_t most);
/* Reads a small file of /proc into `buffer`, terminated. Gives its length, or -1. */
ssize_t proc_read(const char *path, char *buffer, size_t size);

/* A growing set of pids. */
struct pids {
  pid_t *list;
  size_t count, capacity;
};
bool pids_add(struct pids *pids, pid_t pid);
void pids_free(struct pids *pids);

void proc_children(pid_t parent, struct pids *out);
/* All descendants of a process, itself not among them. What forks meanwhile may be missed: call it again. */
void proc_descendants(pid_t root, struct pids *out);
