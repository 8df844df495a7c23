/* `sudo` inside a sandbox: asks the guest to run the command as root (or -u USER) and waits until it ends. */
#include "processes/sudo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include "base/base.h"
#include "wire/frame.h"
#include "spawner/order.h"
#include "wire/tags.h"

extern char **environ;

#define STANDARD_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct person {
  char name[64], home[256], shell[256];
  unsigned uid;
};

struct wish {
  const char *user;
  bool keep_env, home, login, shell, check_only;
  char **variables; /* VAR=val before the command */
  int variable_count;
  char **argv;
  int argc;
};

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("sudo: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

/* Finds a user in /etc/passwd, by name or #uid. The static C library could not look anywhere else. */
static bool person_of(const char *wanted, struct person *out) {
  FILE *file = fopen("/etc/passwd", "re");
  char line[1024];
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    char *part[7] = {0}, *rest = line;
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < 7 && rest; i++) part[i] = strsep(&rest, ":");
    if (part[6] == NULL) continue;
    found = wanted[0] == '#' ? strcmp(part[2], wanted + 1) == 0 : strcmp(part[0], wanted) == 0;
    if (!found) continue;
    snprintf(out->name, sizeof out->name, "%s", part[0]);
    out->uid = (unsigned)strtoul(part[2], NULL, 10);
    snprintf(out->home, sizeof out->home, "%s", part[5]);
    snprintf(out->shell, sizeof out->shell, "%s", part[6][0] ? part[6] : "/bin/sh");
  }
  if (file) fclose(file);
  if (found) return true;
  bool root = strcmp(wanted, "root") == 0 || strcmp(wanted, "#0") == 0;
  if (!root && wanted[0] != '#') return false;
  *out = (struct person){.uid = root ? 0 : (unsigned)strtoul(wanted + 1, NULL, 10), .home = "/", .shell = "/bin/sh"};
  snprintf(out->name, sizeof out->name, "%s", root ? "root" : wanted + 1);
  if (root) strcpy(out->home, "/root");
  return true;
}

static bool is_assignment(const char *text) {
  size_t name = strcspn(text, "=/");
  return name > 0 && text[name] == '=';
}

static struct wish parse(int argc, char **argv) {
  struct wish wish = {.user = "root"};
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    const char *option = argv[i];
    if (strcmp(option, "--") == 0) {
      i++;
      break;
    }
    if (strcmp(option, "--preserve-env") == 0 || strncmp(option, "--preserve-env=", 15) == 0) {
      wish.keep_env = true;
      continue;
    }
    if (strcmp(option, "--non-interactive") == 0) continue;
    if (option[1] == '-' || option[1] == 0) refuse("unknown option %s", option);
    for (const char *letter = option + 1; *letter; letter++) {
      switch (*letter) {
        case 'n':
        case 'S':
          break; /* no password is ever requested */
        case 'E':
          wish.keep_env = true;
          break;
        case 'H':
          wish.home = true;
          break;
        case 'k':
        case 'v':
          wish.check_only = true;
          break;
        case 'i':
          wish.login = true;
          break;
        case 's':
          wish.shell = true;
          break;
        case 'u':
          if (letter[1] == 0 && i + 1 >= argc) refuse("-u needs a user");
          wish.user = letter[1] ? letter + 1 : argv[++i];
          goto next_argument;
        default:
          refuse("unknown option -%c (known: -n -E -H -S -k -v -u USER -i -s)", *letter);
      }
    }
  next_argument:;
  }
  wish.variables = argv + i;
  while (i < argc && is_assignment(argv[i])) {
    wish.variable_count++;
    i++;
  }
  wish.argv = argv + i;
  wish.argc = argc - i;
  return wish;
}

/* Whether a variable survives a change of user without -E: settings of the terminal, the locale and the network. */
static bool is_kept(const char *variable) {
  static const char *const kept[] = {"TERM=", "COLORTERM=", "LANG=", "LANGUAGE=", "LC_", "TZ=", "DISPLAY=", "DEBIAN_FRONTEND=",
                                     "http_proxy=", "https_proxy=", "no_proxy=", "all_proxy=", "HTTP_PROXY=", "HTTPS_PROXY=",
                                     "NO_PROXY=", "ALL_PROXY=", "SSL_CERT_FILE=", "NODE_EXTRA_CA_CERTS="};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    if (strncmp(variable, kept[i], strlen(kept[i])) == 0) return true;
  }
  return false;
}

static void variable(struct frame_writer *out, const char *name, const char *value) {
  char text[8192];
  snprintf(text, sizeof text, "%s=%s", name, value);
  frame_field_text(out, TAG_SPAWN_ENV, text);
}

static void put_environment(struct frame_writer *out, const struct wish *wish, const struct person *person) {
  static const char *const ours[] = {"PATH=", "HOME=", "USER=", "LOGNAME=", "SHELL=", "SUDO_"};
  for (char **at = environ; *at; at++) {
    bool own = false;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) own = own || strncmp(*at, ours[i], strlen(ours[i])) == 0;
    if (!own && (wish->keep_env || is_kept(*at))) frame_field_text(out, TAG_SPAWN_ENV, *at);
  }
  const char *path = getenv("PATH"), *home = getenv("HOME");
  char longer[4096];
  /* The caller's own tools stay reachable, ahead of an administrator's. */
  snprintf(longer, sizeof longer, "%s%s", path && !wish->login ? path : STANDARD_PATH, path && !wish->login ? ":" STANDARD_PATH : "");
  variable(out, "PATH", longer);
  variable(out, "HOME", wish->keep_env && !wish->home && home ? home : person->home);
  variable(out, "USER", person->name);
  variable(out, "LOGNAME", person->name);
  variable(out, "SHELL", person->shell);
  char number[16];
  snprintf(number, sizeof number, "%u", (unsigned)getuid());
  variable(out, "SUDO_UID", number);
  snprintf(number, sizeof number, "%u", (unsigned)getgid());
  variable(out, "SUDO_GID", number);
  variable(out, "SUDO_USER", getenv("USER") ? getenv("USER") : "user");
  for (int i = 0; i < wish->variable_count; i++) frame_field_text(out, TAG_SPAWN_ENV, wish->variables[i]);
}

/* With -i and -s the words become one shell command line, in which every character that could be special is escaped. */
static void put_shell_line(struct frame_writer *out, const struct wish *wish) {
  size_t size = 1;
  for (int i = 0; i < wish->argc; i++) size += 2 * strlen(wish->argv[i]) + 1;
  char *line = xalloc(size), *at = line;
  for (int i = 0; i < wish->argc; i++) {
    if (i > 0) *at++ = ' ';
    for (const char *c = wish->argv[i]; *c; c++) {
      bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("_-./$", *c) || (*c & 0x80);
      if (!plain) *at++ = '\\';
      *at++ = *c;
    }
  }
  frame_field_text(out, TAG_SPAWN_ARGV, "-c");
  frame_field_text(out, TAG_SPAWN_ARGV, line);
  free(line);
}

static void put_command(struct frame_writer *out, const struct wish *wish, const struct person *person) {
  if (!wish->login && !wish->shell) {
    for (int i = 0; i < wish->argc; i++) frame_field_text(out, TAG_SPAWN_ARGV, wish->argv[i]);
    return;
  }
  const char *shell = wish->shell && getenv("SHELL") ? getenv("SHELL") : person->shell;
  frame_field_text(out, TAG_SPAWN_ARGV, shell);
  if (wish->login) frame_field_text(out, TAG_SPAWN_ARGV, "-l");
  if (wish->argc > 0) put_shell_line(out, wish);
}

static int dial(void) {
  struct sockaddr_un address;
  socklen_t size = sudo_address(&address);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) < 0) refuse("this sandbox does not allow root");
  return fd;
}

/* Forwards signals and waits for the end. Returns the exit status. */
static int attend(int guest, int signals) {
  struct frame_writer out = {0};
  uint8_t head[FRAME_HEADER_BYTES], payload[4096];
  struct frame_header header;
  struct field field;
  for (;;) {
    struct pollfd wait[2] = {{.fd = guest, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    if (poll(wait, 2, -1) < 0 && errno != EINTR) refuse("poll: %s", strerror(errno));
    struct signalfd_siginfo info;
    if ((wait[1].revents & POLLIN) && read(signals, &info, sizeof info) == sizeof info) {
      frame_begin(&out, FRAME_SIGNAL, 1);
      frame_field_u64(&out, TAG_SIGNAL_SIGNAL, info.ssi_signo);
      frame_end(&out);
      write_full(guest, out.data, out.length);
      out.length = 0;
    }
    if (!(wait[0].revents & (POLLIN | POLLHUP))) continue;
    if (read_full(guest, head, sizeof head) != sizeof head) refuse("the guest hung up");
    if (!frame_header_parse(head, FROM_GUEST, &header) || header.length > sizeof payload) refuse("malformed answer from the guest");
    if (read_full(guest, payload, header.length) != (ssize_t)header.length) refuse("the guest hung up");
    if (header.type == FRAME_ERROR) {
      if (!field_find(payload, header.length, TAG_ERROR_MESSAGE, &field)) refuse("the guest refused");
      refuse("%.*s", (int)field.length, (const char *)field.data);
    }
    if (header.type != FRAME_ENDED) continue;
    uint64_t code, number;
    field_find_u64(payload, header.length, TAG_ENDED_EXIT_CODE, 1, &code);
    field_find_u64(payload, header.length, TAG_ENDED_SIGNAL, 0, &number);
    frame_writer_free(&out);
    return number ? 128 + (int)number : (int)code;
  }
}

int sudo_main(int argc, char **argv) {
  struct wish wish = parse(argc, argv);
  struct person person;
  if (!person_of(wish.user, &person)) refuse("unknown user %s", wish.user);
  if (wish.argc == 0 && !wish.login && !wish.shell && !wish.check_only) refuse("usage: sudo [-nEHSkvis] [-u USER] [VAR=val] command");
  signal(SIGPIPE, SIG_IGN);
  int guest = dial();
  if (wish.argc == 0 && !wish.login && !wish.shell) return 0;
  struct frame_writer out = {0};
  char folder[4096], uid[16];
  frame_begin(&out, FRAME_SPAWN, 1);
  put_command(&out, &wish, &person);
  put_environment(&out, &wish, &person);
  frame_field_text(&out, TAG_SPAWN_CWD, wish.login ? person.home : getcwd(folder, sizeof folder) ? folder : "/");
  snprintf(uid, sizeof uid, "%u", person.uid);
  frame_field_text(&out, TAG_USER, uid);
  if (!frame_end(&out)) refuse("the command and its environment are too long");

  sigset_t passed;
  sigemptyset(&passed);
  int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&passed, numbers[i]);
  sigprocmask(SIG_BLOCK, &passed, NULL);
  int signals = signalfd(-1, &passed, SFD_CLOEXEC);
  int fds[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  for (int i = 0; i < 3; i++) {
    if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) refuse("a standard descriptor is closed");
  }
  if (!message_send(guest, out.data, FRAME_HEADER_BYTES, NULL, 0, fds, 3, 0)) refuse("cannot reach the guest: %s", strerror(errno));
  if (!write_full(guest, out.data + FRAME_HEADER_BYTES, out.length - FRAME_HEADER_BYTES)) refuse("cannot reach the guest");
  frame_writer_free(&out);
  return attend(guest, signals);
}
