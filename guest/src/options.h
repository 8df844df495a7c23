#pragma once

#include "connection/guest.h"

/* Options that only startup needs; the rest goes straight into struct guest. */
struct options {
  int listen_fd;
  /* -1 if absent. */
  int leash_fd, filter_fd;
  const char *listen_path;
  /* Where to read the token that HELLO must carry: a path, or an open descriptor (-1 if absent). */
  const char *token_file;
  int token_fd;
  /* Whether process 1 only keeps the sandbox alive, and the guest is its child; see reaper.h. */
  bool reaper;
  /* Whether that child comes from a memory image. */
  bool restored;
};

/* Parses the options; dies with a message for an unknown one. */
void options_parse(struct options *options, struct guest *guest, int argc, char **argv);
