/*
 * The state that every part of the guest's main process shares. Each folder defines and owns the part named after it.
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
  bool transparent; /* every address is ours: the host may serve ports at all of them */
  uid_t uid;
  gid_t gid;
  const char *home;
  uint64_t nproc; /* 0: leave the limit as it is */
  bool guards_disk;
  uint64_t nofile_soft, nofile_hard;
  int token_fd; /* -1 without a token; read at each HELLO, so that no memory image contains it */
  int work_fds[WORK_CGROUPS_MAX];
  size_t work_fd_count;
  int oom_fd;
  int reaper_fd; /* process 1, if the guest is its child; else -1 */
  uint64_t root_caps; /* capabilities that a root command may hold */

  struct own_process *own_processes;
  struct timer rouse; /* checks own processes that have a request pending */
  struct spawner *spawner;
  struct processes *processes;
  struct file_requests *file_requests; /* NULL until the first request */
  struct fence *fences;
  struct ports *ports;

  bool parking; /* an image of the memory is about to be taken */
  bool shutting_down, shutdown_done;
};
