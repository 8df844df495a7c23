#pragma once

#include "connection/guest.h"

/* What is needed once, at the start; the rest goes straight into struct guest. */
struct options {
  int listen_fd;
  /* Or -1. */
  int leash_fd, filter_fd;
  const char *listen_path;
  /* Where the token that HELLO must carry is read from, once: a path, or an open descriptor, or -1. */
  const char *token_file;
  int token_fd;
};

/* Dies with a message for anything it does not know. */
void options_parse(struct options *options, struct guest *guest, int argc, char **argv);
