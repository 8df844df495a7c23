#pragma once

#include "connection/guest.h"

/* Options that only startup needs; the rest goes straight into struct guest. */
struct options {
  int listen_fd;
  /* -1 if absent. */
  int leash_fd, filter_fd;
  const char *listen_path;
  /* Where to read the token that HELLO must carry, once: a path, or an open descriptor (-1 if absent). */
  const char *token_file;
  int token_fd;
};

/* Parses the options; dies with a message for an unknown one. */
void options_parse(struct options *options, struct guest *guest, int argc, char **argv);
