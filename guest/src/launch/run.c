/* Builds a sandbox from its plan and hands it to the OCI runtime. */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define OPTIONS_MAX 16
#define LISTEN_BACKLOG 64

struct run {
  struct launch *launch;
  int passed[PASSED_FDS_MAX];
  size_t passed_count;
  const char *runtime, *id, *config;
  const char *options[OPTIONS_MAX];
  size_t option_count;
  /* The option that tells the OCI runtime to keep the current keyring, or NULL. */
  const char *keep_keyring;
  /* The record of the memory image from which the guest comes, or NULL. */
  const struct plan_record *restore;
  int work_cgroups[PASSED_FDS_MAX];
  size_t work_count;
};

/*
 * Joins a keyring of the machine's root, to whom the low limit of other users does not apply. An ordinary user's
 * sandboxes share one keyring, because the user may have only a few. It stays empty: the system calls for keys do not
 * exist inside. Returns false if we cannot join one; the OCI runtime must then create its own.
 */
static bool join_keyring(const struct launch *launch) {
  /* Everything for a possessor; and the same user can find it by its name. */
  enum { POSSESSOR_ALL = 0x3f000000, USER_VIEW_READ_SEARCH_LINK = 0x001b0000 };
  if (!launch->rootless) return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0;
  long keyring = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "caisson");
  return keyring >= 0 && syscall(SYS_keyctl, KEYCTL_SETPERM, keyring, POSSESSOR_ALL | USER_VIEW_READ_SEARCH_LINK) == 0;
}

/*
 * 1, not 0: with 0 the kernel would still start a handler that reads cores from a pipe. A lower limit that already
 * applies stays.
 */
static void refuse_cores(void) {
  struct rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
  setrlimit(RLIMIT_CORE, &limit);
}

static void pass(struct run *run, int fd) {
  if (run->passed_count == PASSED_FDS_MAX) launch_fail("plan", "more than %d descriptors", PASSED_FDS_MAX);
  run->passed[run->passed_count++] = fd;
}

static int open_token(const char *name) {
  int fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) launch_fail("folder", "%s", name);
  return fd;
}

/* Relative to the sandbox's folder, whose path may be longer than an address has room for. */
static int listening_socket(const char *name) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(name) >= sizeof address.sun_path) launch_fail("plan", "%s is too long", name);
  strcpy(address.sun_path, name);
  mode_t before = umask(0177);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, LISTEN_BACKLOG) != 0)
    launch_fail("listen", "%s", name);
  umask(before);
  return fd;
}

/*
 * Starts a child that moves this process into its cgroups. The first move waits some milliseconds, until all processors
 * have passed a quiescent point; meanwhile this process prepares the rest.
 */
static pid_t start_joining(const struct plan *plan) {
  pid_t self = getpid();
  pid_t child = fork();
  if (child < 0) launch_fail("cgroup", "cannot fork");
  if (child > 0) return child;
  for (size_t i = 0; i < plan->count; i++) {
    if (strcmp(plan->records[i].verb, "cgroup-join") != 0) continue;
    const char *path = plan->records[i].fields[0];
    cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || dprintf(fd, "%d", self) < 0) launch_fail("cgroup", "%s", path);
  }
  _exit(0);
}

static void finish_joining(pid_t *child) {
  if (*child == 0) return;
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) continue;
  /* The child has reported what failed. */
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) _exit(125);
  *child = 0;
}

/* Called before the mounts are private: there the cgroups will be read-only, so the OCI runtime cannot create any. */
static void open_cgroups(struct run *run, const struct plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    const struct plan_record *record = &plan->records[i];
    bool work = strcmp(record->verb, "cgroup-work") == 0;
    if (!work && strcmp(record->verb, "cgroup-oom") != 0) continue;
    int fd = open(record->fields[0], (work ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    if (fd < 0) launch_fail("cgroup", "%s", record->fields[0]);
    pass(run, fd);
    if (work) run->work_cgroups[run->work_count++] = fd;
  }
}

static void take_record(struct run *run, const struct plan_record *record) {
  const char **fields = record->fields;
  if (strcmp(record->verb, "config") == 0) run->config = fields[0];
  else if (strcmp(record->verb, "runtime") == 0) run->runtime = fields[0];
  else if (strcmp(record->verb, "id") == 0) run->id = fields[0];
  else if (strcmp(record->verb, "restore") == 0) run->restore = record;
  else if (strcmp(record->verb, "option") == 0 && run->option_count < OPTIONS_MAX) run->options[run->option_count++] = fields[0];
}

static void build(struct run *run, const struct plan *plan) {
  for (size_t i = 0; i < plan->count; i++) {
    build_part(run->launch, &plan->records[i]);
    take_record(run, &plan->records[i]);
  }
  if (run->config == NULL || run->runtime == NULL || run->id == NULL) launch_fail("plan", "config, runtime and id are required");
}

static void write_file(const char *path, const char *text) {
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 || !write_full(fd, text, strlen(text))) launch_fail("stage", "%s", path);
}

/* Moves the guest's descriptors to 3, 4, … and closes all others. */
static void place_descriptors(const struct run *run, int log) {
  int high[PASSED_FDS_MAX];
  for (size_t i = 0; i < run->passed_count; i++) {
    high[i] = fcntl(run->passed[i], F_DUPFD_CLOEXEC, 64);
    if (high[i] < 0) launch_fail("namespace", "cannot duplicate a descriptor");
  }
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) launch_fail("namespace", "/dev/null");
  for (size_t i = 0; i < run->passed_count; i++)
    if (dup2(high[i], (int)(3 + i)) < 0) launch_fail("namespace", "cannot duplicate a descriptor");
  close_range((unsigned)(3 + run->passed_count), ~0U, 0);
}

static void exec_runtime(struct run *run, int log) {
  static char state[64], bundle[64], log_file[64], fds[16];
  const char *stage = run->launch->stage;
  snprintf(state, sizeof state, "%s/state", stage);
  snprintf(bundle, sizeof bundle, "%s/bundle", stage);
  snprintf(log_file, sizeof log_file, "%s/bundle/log", stage);
  snprintf(fds, sizeof fds, "%zu", run->passed_count);
  const char *argv[OPTIONS_MAX + 16];
  size_t n = 0;
  argv[n++] = run->runtime;
  for (size_t i = 0; i < run->option_count; i++) argv[n++] = run->options[i];
  const char *rest[] = {"--root", state, "--log", log_file, "run", "--detach", "--bundle", bundle, "--preserve-fds", fds};
  for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) argv[n++] = rest[i];
  if (run->keep_keyring != NULL) argv[n++] = run->keep_keyring;
  argv[n++] = run->id;
  argv[n] = NULL;
  /* A runtime written in Go is too short-lived for parallel threads or garbage collection to pay off. */
  char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "GOMAXPROCS=1", "GOGC=off", NULL};
  place_descriptors(run, log);
  signal(SIGPIPE, SIG_DFL);
  cleanup_fd int sealed = sealed_copy(run->runtime);
  if (sealed >= 0) fexecve(sealed, (char **)argv, environment);
  execve(run->runtime, (char **)argv, environment);
  dprintf(2, "cannot start %s: %s\n", run->runtime, strerror(errno));
  _exit(127);
}

int run_sandbox(struct launch *launch, const struct plan *plan) {
  struct run run = {.launch = launch};
  for (size_t i = 0; i < plan->count; i++) {
    const struct plan_record *record = &plan->records[i];
    if (strcmp(record->verb, "folder") == 0 && chdir(record->fields[0]) != 0) launch_fail("folder", "%s", record->fields[0]);
    if (strcmp(record->verb, "listen") == 0) pass(&run, listening_socket(record->fields[0]));
    if (strcmp(record->verb, "token") == 0) pass(&run, open_token(record->fields[0]));
    if (strcmp(record->verb, "filter") == 0) pass(&run, filter_file(record->fields[0]));
    if (strcmp(record->verb, "keyring") == 0 && join_keyring(launch)) run.keep_keyring = record->fields[0];
  }
  dprintf(STDOUT_FILENO, "listening\n");
  refuse_cores();
  pid_t joining = start_joining(plan);
  struct work_namespace work = {0};
  if (!launch->rootless) work = start_work_namespace(plan);
  int userns = user_namespace(launch, map_named(launch, "sandbox"));
  if (launch->rootless) {
    /* Only a process of the same user may be moved. */
    finish_joining(&joining);
    enter_user_namespace(launch);
    work = start_work_namespace(plan);
  }
  open_cgroups(&run, plan);
  int leash[2];
  make_leash(leash);
  pass(&run, leash[0]);
  private_mounts();
  mount_stage(launch, plan);
  show_cgroups(launch, plan);
  build(&run, plan);
  char path[64];
  snprintf(path, sizeof path, "%s/bundle/config.json", launch->stage);
  write_file(path, run.config);
  snprintf(path, sizeof path, "%s/output", launch->stage);
  int log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) launch_fail("stage", "%s", path);
  finish_joining(&joining);
  cleanup_fd int work_fd = finish_work_namespace(&work);
  pid_t pid = fork();
  if (pid < 0) launch_fail("namespace", "cannot fork");
  if (pid == 0) {
    enter_work_namespace(work_fd);
    /*
     * As root, the OCI runtime itself runs inside the user namespace: a flaw in it yields the sandbox's root, not the
     * host's.
     */
    if (!launch->rootless) {
      map_named(launch, "sandbox")->fd = userns;
      enter_user_namespace(launch);
      if (unshare(CLONE_NEWNS) != 0) launch_fail("mount", "cannot create the sandbox's mount namespace");
    }
    enter_network(launch);
    die_with_parent();
    close(leash[1]);
    exec_runtime(&run, log);
  }
  int socket;
  close(leash[0]);
  pid_t guest = await_guest(launch, leash[1], &pid, &socket);
  if (run.restore != NULL) guest = restore_memory(launch, run.restore, guest, socket, run.work_cgroups, run.work_count);
  for (size_t i = 0; i + 1 < run.passed_count; i++) close(run.passed[i]);
  let_go(leash[1], guest);
  if (pid != 0) finish_runtime(launch, pid);
  return 0;
}
