/*
 * What every part of the guest's main process has at hand. Each folder defines and owns the part that is named after
 * it.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"
#include "base/loop.h"

enum { WORK_CGROUPS_MAX = 16 };

struct connection;
struct fence;
struct file_requests;
struct own_process;
struct ports;
struct processes;
struct spawner;

struct guest {
  struct loop loop;
  struct source listener, signals;
  struct timer heartbeat;
  struct connection *connections;
  size_t connection_count;

  uint8_t boot_id[16];
  uint64_t started_at;
  bool not_init, allow_root;
  bool transparent; /* every address is ours: the host may serve ports of all of them */
  uid_t uid;
  gid_t gid;
  const char *home;
  uint64_t nproc; /* 0: leave it */
  bool guards_disk;
  uint64_t nofile_soft, nofile_hard;
  char *token; /* NULL: none; kept out of every fork */
  size_t token_length;
  int work_fds[WORK_CGROUPS_MAX];
  size_t work_fd_count;
  int oom_fd;
  uint64_t root_caps; /* what a root command may hold */

  struct own_process *own_processes;
  struct timer rouse; /* looks at those of them that something was asked of */
  struct spawner *spawner;
  struct processes *processes;
  struct file_requests *file_requests; /* once there was one */
  struct fence *fences;
  struct ports *ports;

  bool shutting_down, shutdown_done;
};
