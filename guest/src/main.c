/* One binary, several programs: the first argument, or the name it was called by, selects one. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: caisson-guest init [options] | worker | sudo [options] command | launch [options] | launches | --version\n";

int main(int argc, char **argv) {
  const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
  const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
  if (strcmp(name, "sudo") == 0) return sudo_main(argc, argv);
  if (argc < 2) {
    fputs(usage, stderr);
    return 125;
  }
  const char *entry = argv[1];
  if (strcmp(entry, "init") == 0) return init_main(argc - 1, argv + 1);
  if (strcmp(entry, "worker") == 0) return worker_main(STDIN_FILENO, STDOUT_FILENO);
  if (strcmp(entry, "sudo") == 0) return sudo_main(argc - 1, argv + 1);
  if (strcmp(entry, "launch") == 0) return launch_main(argc - 1, argv + 1);
  if (strcmp(entry, "launches") == 0) return launches_main();
  if (strcmp(entry, "--version") == 0) {
    puts(GUEST_VERSION);
    return 0;
  }
  fputs(usage, stderr);
  return 125;
}
