#include "spawner/leader.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "wire/frame.h"
#include "base/privilege.h"
#include "wire/tags.h"

enum { CHILD_STACK_BYTES = 65536 };

/* Everything the child needs, prepared before it exists: it shares our memory and must not allocate. */
struct plan {
  struct leader *leader;
  char **argv, **envp;
  char **shell_argv; /* "/bin/sh", "<script>", then the arguments: for a script without an interpreter line */
  const char *cwd;
  const char *path;
  char *candidate; /* room for a directory of PATH and the program name */
  sigset_t no_signals;
  int stage, error;
};

static void set_limit(int resource, uint64_t soft, uint64_t hard) {
  struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
  setrlimit(resource, &limit);
}

/* Tries argv[0] as given, or in each directory of PATH. Leaves errno as execvp would. */
static void execute(struct plan *plan) {
  const char *program = plan->argv[0];
  if (strchr(program, '/') != NULL) {
    execve(program, plan->argv, plan->envp);
    if (errno != ENOEXEC) return;
    plan->shell_argv[1] = plan->argv[0];
    execve(plan->shell_argv[0], plan->shell_argv, plan->envp);
    errno = ENOEXEC;
    return;
  }
  if (program[0] == 0) {
    errno = ENOENT;
    return;
  }
  int kept = ENOENT;
  for (const char *at = plan->path;; at++) {
    size_t length = strcspn(at, ":");
    memcpy(plan->candidate, at, length);
    if (length > 0) plan->candidate[length++] = '/';
    strcpy(plan->candidate + length, program);
    execve(plan->candidate, plan->argv, plan->envp);
    if (errno == ENOEXEC) {
      plan->shell_argv[1] = plan->candidate;
      execve(plan->shell_argv[0], plan->shell_argv, plan->envp);
      errno = ENOEXEC;
      return;
    }
    if (errno == EACCES)
      kept = EACCES;
    else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != ENAMETOOLONG)
      return;
    at += strcspn(at, ":");
    if (*at == 0) break;
  }
  errno = kept;
}

static bool set_up(struct plan *plan) {
  struct leader *leader = plan->leader;
  plan->stage = STAGE_SETUP;
  for (size_t i = 0; i < leader->work_fd_count; i++) {
    if (write(leader->work_fds[i], "0", 1) < 0) return false;
  }
  if (setsid() < 0) return false;
  if (leader->order->pty && ioctl(leader->fds[0], TIOCSCTTY, 0) < 0) return false;
  for (int i = 0; i < 3; i++) {
    if (dup2(leader->fds[i], i) < 0) return false;
  }
  umask(022);
  /*
   * 1, not 0: with 0 the kernel would still start a handler that reads cores from a pipe, with data that the process
   * controls.
   */
  set_limit(RLIMIT_CORE, 1, 1);
  if (leader->order->nofile_hard > 0) set_limit(RLIMIT_NOFILE, leader->order->nofile_soft, leader->order->nofile_hard);

  plan->stage = STAGE_IDENTITY;
  if (!become(&leader->order->identity)) return false;
  /* After the uid changed: otherwise a uid at its limit could not even execute its first program. */
  if (leader->order->nproc > 0) set_limit(RLIMIT_NPROC, leader->order->nproc, leader->order->nproc);

  plan->stage = STAGE_CWD;
  if (chdir(plan->cwd) < 0) return false;
  /* All our descriptors are close-on-exec; this closes any that the guest itself inherited. */
  syscall(SYS_close_range, 3, ~0U, 0);
  /* The guest reset every signal at its start, and has since ignored only this one. */
  struct sigaction fallback = {.sa_handler = SIG_DFL};
  return sigaction(SIGPIPE, &fallback, NULL) == 0;
}

static int child(void *argument) {
  struct plan *plan = argument;
  if (set_up(plan)) {
    plan->stage = STAGE_EXEC;
    sigprocmask(SIG_SETMASK, &plan->no_signals, NULL);
    execute(plan);
  }
  plan->error = errno;
  _exit(127);
}

/* NUL-terminates a field in place: the bytes move over the field's own header, which makes room for the NUL. */
static char *terminate(const struct field *field) {
  char *text = (char *)field->data - FIELD_HEADER_BYTES;
  memmove(text, field->data, field->length);
  text[field->length] = 0;
  return text;
}

static const char *path_of(char **envp) {
  for (; *envp; envp++) {
    if (strncmp(*envp, "PATH=", 5) == 0) return *envp + 5;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

/* Reads argv, the environment and cwd from the request. Returns false if memory runs out. */
static bool prepare(struct plan *plan, void **memory) {
  struct leader *leader = plan->leader;
  size_t arguments = 0, variables = 0;
  struct fields cursor = fields_of(leader->request, leader->request_length);
  struct field field;
  while (fields_next(&cursor, &field) == 1) {
    arguments += field.tag == TAG_SPAWN_ARGV;
    variables += field.tag == TAG_SPAWN_ENV;
  }
  char **slots = *memory = calloc(arguments + 1 + variables + 1 + arguments + 2, sizeof *slots);
  if (slots == NULL) return false;
  plan->argv = slots;
  plan->envp = plan->argv + arguments + 1;
  plan->shell_argv = plan->envp + variables + 1;
  size_t argument = 0, variable = 0;
  cursor = fields_of(leader->request, leader->request_length);
  while (fields_next(&cursor, &field) == 1) {
    if (field.tag == TAG_SPAWN_ARGV) plan->argv[argument++] = terminate(&field);
    if (field.tag == TAG_SPAWN_ENV) plan->envp[variable++] = terminate(&field);
    if (field.tag == TAG_SPAWN_CWD) plan->cwd = terminate(&field);
  }
  if (plan->cwd == NULL) plan->cwd = "/";
  plan->shell_argv[0] = "/bin/sh";
  for (size_t i = 1; i < arguments; i++) plan->shell_argv[i + 1] = plan->argv[i];
  plan->path = path_of(plan->envp);
  plan->candidate = malloc(strlen(plan->path) + strlen(plan->argv[0]) + 2);
  return plan->candidate != NULL;
}

pid_t leader_start(struct leader *leader, int *stage, int *error) {
  struct plan plan = {.leader = leader, .stage = STAGE_FORK};
  cleanup_free void *memory = NULL;
  sigemptyset(&plan.no_signals);
  *stage = STAGE_FORK;
  if (!prepare(&plan, &memory)) {
    *error = ENOMEM;
    return -1;
  }
  char *stack = malloc(CHILD_STACK_BYTES);
  if (stack == NULL) {
    free(plan.candidate);
    *error = ENOMEM;
    return -1;
  }
  /*
   * The child borrows our memory until it executes: there are no page tables to copy, and it simply writes a failure
   * here.
   */
  pid_t pid = clone(child, stack + CHILD_STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, &plan);
  int clone_error = errno;
  free(stack);
  free(plan.candidate);
  if (pid < 0) {
    *error = clone_error;
    return -1;
  }
  if (plan.error == 0) return pid;
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
  *stage = plan.stage;
  *error = plan.error;
  return -1;
}
