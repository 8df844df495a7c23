/* Disks of limited size: images on loop devices, and in memory. */
#include "launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static int attach_loop(int control, int image) {
  for (int attempt = 0; attempt < 64; attempt++) {
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) return -1;
    char path[32];
    snprintf(path, sizeof path, "/dev/loop%d", number);
    int device = open(path, O_RDWR | O_CLOEXEC);
    if (device < 0) return -1;
    struct loop_config config = {.fd = (uint32_t)image, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
    if (ioctl(device, LOOP_CONFIGURE, &config) == 0) return device;
    int error = errno;
    close(device);
    errno = error;
    /* Another process took the device in between. */
    if (error != EBUSY) return -1;
  }
  return -1;
}

/*
 * Two loop devices on one image would destroy it. The device holds the file as we opened it, and so the lock, until the
 * last mount is removed. If a sandbox has just died, the kernel removes its mount soon.
 */
static void lock_image(int file, const char *image) {
  enum { PATIENCE_MS = 5000, STEP_MS = 10 };
  for (int waited = 0; flock(file, LOCK_EX | LOCK_NB) != 0; waited += STEP_MS) {
    if (errno != EWOULDBLOCK && errno != EINTR) launch_fail("disk", "cannot lock %s", image);
    if (waited >= PATIENCE_MS) launch_fail("disk-busy", "%s", image);
    usleep(STEP_MS * 1000);
  }
}

static bool mount_device(int device, const char *target, const char *type) {
  char path[64], name[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", device);
  ssize_t length = readlink(path, name, sizeof name - 1);
  if (length < 0) return false;
  name[length] = 0;
  return mount(name, target, type, MS_NOSUID | MS_NODEV | MS_NOATIME, "discard") == 0;
}

static void mount_file(int file, const char *image, const char *target, const char *type) {
  cleanup_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) launch_fail("disk", "/dev/loop-control");
  cleanup_fd int device = attach_loop(control, file);
  if (device < 0) launch_fail("disk", "no free loop device");
  if (!mount_device(device, target, type)) launch_fail("disk", "%s", image);
}

static int open_image(const char *image) {
  int file = open(image, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) launch_fail("disk", "%s", image);
  return file;
}

void mount_image(const char *image, const char *target, const char *type) {
  cleanup_fd int file = open_image(image);
  lock_image(file, image);
  mount_file(file, image, target, type);
}

/* Returns the loop device of a file, or -1. */
static int loop_of(int file) {
  struct stat image;
  DIR *devices = opendir("/sys/block");
  if (devices == NULL || fstat(file, &image) != 0) launch_fail("disk", "/sys/block");
  int found = -1;
  struct dirent *entry;
  while (found < 0 && (entry = readdir(devices)) != NULL) {
    char path[300];
    snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
    if (strncmp(entry->d_name, "loop", 4) != 0 || access(path, F_OK) != 0) continue;
    snprintf(path, sizeof path, "/dev/%s", entry->d_name);
    int device = open(path, O_RDWR | O_CLOEXEC);
    struct loop_info64 info;
    if (device >= 0 && ioctl(device, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == image.st_ino && info.lo_device == image.st_dev) found = device;
    else if (device >= 0) close(device);
  }
  closedir(devices);
  return found;
}

/*
 * While a sandbox uses the disk, its loop device is mounted again: the kernel then shows the same file system. The
 * sandbox may end at any time, and then the lock becomes free.
 */
void mount_live(struct launch *launch, const char *image) {
  enum { PATIENCE_MS = 5000, STEP_MS = 10 };
  snprintf(launch->live, sizeof launch->live, "%s/live", launch->stage);
  cleanup_fd int file = open_image(image);
  for (int waited = 0;; waited += STEP_MS) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
      mount_file(file, image, launch->live, "ext4");
      return;
    }
    cleanup_fd int device = loop_of(file);
    if (device >= 0 && mount_device(device, launch->live, "ext4")) return;
    if (waited >= PATIENCE_MS) launch_fail("disk-busy", "%s", image);
    usleep(STEP_MS * 1000);
  }
}

static const char inside_target[] = "/.caisson/disk";

void hide_disk(struct launch *launch) {
  char root[64], disk[64];
  snprintf(root, sizeof root, "%s/bundle/rootfs", launch->stage);
  snprintf(disk, sizeof disk, "%s/disk", launch->stage);
  cleanup_fd int tree = clone_tree(disk, false, "disk");
  attach_at(launch, tree, root, inside_target, false);
  cleanup_fd int cover = empty_tree(launch);
  attach_at(launch, cover, root, inside_target, false);
}

static int open_of(const char *pid, const char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/%s", plan_number(pid), name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) launch_fail("disk-inside", "%s", path);
  return fd;
}

/*
 * Finds the mount by its source, which nothing inside can choose. Root inside may have moved the folder above its mount
 * point.
 */
static void find_disk(const char *pid, char **path, dev_t *device) {
  FILE *mounts = fdopen(open_of(pid, "mountinfo"), "r");
  char *line = NULL;
  size_t room = 0;
  *path = NULL;
  while (*path == NULL && getline(&line, &room, mounts) > 0) {
    unsigned major_number, minor_number;
    char target[PATH_MAX];
    char *source = strstr(line, " - tmpfs caisson-disk ");
    if (source == NULL || sscanf(line, "%*d %*d %u:%u %*s %4095s", &major_number, &minor_number, target) != 3) continue;
    *path = strdup(target);
    *device = makedev(major_number, minor_number);
  }
  free(line);
  fclose(mounts);
  if (*path == NULL) launch_fail("disk-inside", "process %s has no such disk", pid);
}

void join_disk(struct launch *launch, const char *pid, int *mounts, char **path, dev_t *device) {
  *mounts = open_of(pid, "ns/mnt");
  map_named(launch, "sandbox")->fd = open_of(pid, "ns/user");
  find_disk(pid, path, device);
}

/*
 * A child opens the disk, in a copy of the sandbox's mounts from which it removes the cover, and shares its descriptors
 * with us: an ordinary user could not come back from another mount namespace.
 */
void open_inside(struct launch *launch, int mounts, const char *path, dev_t device) {
  int result[2];
  if (pipe2(result, O_CLOEXEC) != 0) launch_fail("disk-inside", "cannot create a pipe");
  pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child < 0) launch_fail("disk-inside", "cannot fork");
  if (child == 0) {
    if (setns(mounts, CLONE_NEWNS) != 0) launch_fail("disk-inside", "cannot enter the sandbox's mounts");
    private_mounts();
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0) launch_fail("disk-inside", "%s", path);
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    int fd = (int)syscall(CALL_OPENAT2, AT_FDCWD, path, &how, sizeof how);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_dev != device) launch_fail("disk-inside", "%s", path);
    _exit(write_full(result[1], &fd, sizeof fd) ? 0 : 1);
  }
  int status = 0, fd = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  /* The child has reported what failed. */
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || read_full(result[0], &fd, sizeof fd) != sizeof fd) _exit(125);
  close(result[0]);
  close(result[1]);
  snprintf(launch->live, sizeof launch->live, "/proc/self/fd/%d", fd);
}
