#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum option_name { LISTEN_FD = 1, LISTEN_PATH, TOKEN_FILE, UID_, GID_, HOME, ALLOW_ROOT, WORK_FDS, OOM_FD, NPROC, NOT_INIT, LEASH_FD, TRANSPARENT, TOKEN_FD, DISK_GUARD, FILTER_FD, REAPER, RESTORED };

static const struct option known[] = {
    {"listen-fd", required_argument, NULL, LISTEN_FD},     {"listen-path", required_argument, NULL, LISTEN_PATH},
    {"token-file", required_argument, NULL, TOKEN_FILE},   {"uid", required_argument, NULL, UID_},
    {"gid", required_argument, NULL, GID_},                {"home", required_argument, NULL, HOME},
    {"allow-root", no_argument, NULL, ALLOW_ROOT},         {"work-procs-fds", required_argument, NULL, WORK_FDS},
    {"oom-fd", required_argument, NULL, OOM_FD},           {"nproc", required_argument, NULL, NPROC},
    {"not-init", no_argument, NULL, NOT_INIT},             {"leash-fd", required_argument, NULL, LEASH_FD},
    {"transparent", no_argument, NULL, TRANSPARENT},       {"disk-guard", no_argument, NULL, DISK_GUARD},       {"token-fd", required_argument, NULL, TOKEN_FD},
    {"filter-fd", required_argument, NULL, FILTER_FD},     {"reaper", no_argument, NULL, REAPER},
    {"restored", no_argument, NULL, RESTORED},
    {0},
};

static unsigned long number(const char *name, const char *text, unsigned long most) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || end == text || *end || text[0] == '-' || value > most) die("--%s: %s is not a number up to %lu", name, text, most);
  return value;
}

static void work_fds(struct guest *guest, char *list) {
  char *rest;
  for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
    if (guest->work_fd_count == WORK_CGROUPS_MAX) die("--work-procs-fds: more than %d descriptors", WORK_CGROUPS_MAX);
    guest->work_fds[guest->work_fd_count++] = (int)number("work-procs-fds", item, 65535);
  }
}

void options_parse(struct options *options, struct guest *guest, int argc, char **argv) {
  *options = (struct options){.listen_fd = 3, .leash_fd = -1, .token_fd = -1, .filter_fd = -1};
  guest->uid = guest->gid = 1000;
  guest->home = "/home/user";
  guest->oom_fd = guest->reaper_fd = -1;
  int found;
  opterr = 0;
  optind = 1;
  while ((found = getopt_long(argc, argv, "", known, NULL)) != -1) {
    switch (found) {
      case LISTEN_FD:
        options->listen_fd = (int)number("listen-fd", optarg, 65535);
        break;
      case LISTEN_PATH:
        options->listen_path = optarg;
        break;
      case TOKEN_FILE:
        options->token_file = optarg;
        break;
      case TOKEN_FD:
        options->token_fd = (int)number("token-fd", optarg, 65535);
        break;
      case UID_:
        guest->uid = (uid_t)number("uid", optarg, UINT32_MAX - 1);
        break;
      case GID_:
        guest->gid = (gid_t)number("gid", optarg, UINT32_MAX - 1);
        break;
      case HOME:
        guest->home = optarg;
        break;
      case ALLOW_ROOT:
        guest->allow_root = true;
        break;
      case WORK_FDS:
        work_fds(guest, optarg);
        break;
      case OOM_FD:
        guest->oom_fd = (int)number("oom-fd", optarg, 65535);
        break;
      case NPROC:
        guest->nproc = number("nproc", optarg, UINT32_MAX);
        break;
      case TRANSPARENT:
        guest->transparent = true;
        break;
      case DISK_GUARD:
        guest->guards_disk = true;
        break;
      case NOT_INIT:
        guest->not_init = true;
        break;
      case FILTER_FD:
        options->filter_fd = (int)number("filter-fd", optarg, 65535);
        break;
      case REAPER:
        options->reaper = true;
        break;
      case RESTORED:
        options->reaper = options->restored = true;
        break;
      case LEASH_FD:
        options->leash_fd = (int)number("leash-fd", optarg, 65535);
        break;
      default:
        die("unknown option, or missing value: %s", argv[optind - 1]);
    }
  }
  if (optind < argc) die("unexpected argument: %s", argv[optind]);
  if (guest->not_init) {
    guest->uid = geteuid();
    guest->gid = getegid();
  }
}
