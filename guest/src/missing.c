/* Weak stand-ins, so that a build without one of the entry points says so instead of not linking. */
#include "base.h"

__attribute__((weak)) int init_main(int argc, char **argv) {
  (void)argc, (void)argv;
  die("init is not part of this build");
}
__attribute__((weak)) int sudo_main(int argc, char **argv) {
  (void)argc, (void)argv;
  die("sudo is not part of this build");
}
__attribute__((weak)) int launch_main(int argc, char **argv) {
  (void)argc, (void)argv;
  die("launch is not part of this build");
}
__attribute__((weak)) int worker_main(int in_fd, int out_fd) {
  (void)in_fd, (void)out_fd;
  die("the file worker is not part of this build");
}
