/* Counts how often the kernel killed a process in the sandbox for lack of memory. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "processes/processes.h"

void oom_open(struct guest *guest) {
  static const char *const usual[] = {
      "/sys/fs/cgroup/memory.events",
      "/sys/fs/cgroup/memory/memory.oom_control",
  };
  if (guest->oom_fd >= 0 || guest->not_init) return;
  for (size_t i = 0; i < sizeof usual / sizeof *usual && guest->oom_fd < 0; i++) guest->oom_fd = open(usual[i], O_RDONLY | O_CLOEXEC);
}

uint64_t oom_kills(struct guest *guest) {
  char text[512];
  if (guest->oom_fd < 0) return 0;
  ssize_t got = pread(guest->oom_fd, text, sizeof text - 1, 0);
  if (got <= 0) return 0;
  text[got] = 0;
  /* "oom_kill N" is on a separate line in both formats; other keys only begin with it. */
  for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
    if (strncmp(line, "oom_kill ", 9) == 0) return strtoull(line + 9, NULL, 10);
  }
  return 0;
}
