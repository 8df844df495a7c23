/* Files in memory that cannot be changed once they are created. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "launch/launch.h"

static bool seal(int fd) { return fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0; }

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/*
 * Returns a sealed file with the system call filter for the guest. The guest installs it itself, before anything else:
 * an OCI runtime would compile its own each time.
 */
int filter_file(const char *hex) {
  size_t length = strlen(hex) / 2;
  cleanup_free char *bytes = xalloc(length + 1);
  for (size_t i = 0; i < length; i++) {
    int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) launch_fail("plan", "the filter is not hexadecimal");
    bytes[i] = (char)(high << 4 | low);
  }
  int fd = memfd_create("filter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || !write_full(fd, bytes, length) || lseek(fd, 0, SEEK_SET) != 0) launch_fail("filter", "cannot create a file for the filter");
  if (!seal(fd)) launch_fail("filter", "cannot seal the filter");
  return fd;
}

/*
 * An OCI runtime runs from a sealed copy, to guard its binary against being overwritten from inside. crun and runc
 * recognize a copy that was made for them; making it themselves takes a mount and an unmount, and each unmount waits
 * for all processors. A large binary is faster without our copy.
 */
int sealed_copy(const char *path) {
  enum { COPY_MAX = 2 << 20 };
  cleanup_fd int from = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (from < 0 || fstat(from, &status) != 0 || status.st_size > COPY_MAX) return -1;
  cleanup_fd int copy = memfd_create("runtime", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (copy < 0) return -1;
  for (off_t done = 0; done < status.st_size;)
    if (sendfile(copy, from, &done, (size_t)(status.st_size - done)) <= 0) return -1;
  if (!seal(copy)) return -1;
  int kept = copy;
  copy = -1;
  return kept;
}
