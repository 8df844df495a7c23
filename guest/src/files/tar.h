/* Tar headers, independent of any file: ustar, pax and GNU long names. */
#pragma once

#include "wire/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
  TAR_BLOCK = 512,
  TAR_NAME_BYTES = 100,
  TAR_PREFIX_BYTES = 155,
  /* A pax or GNU header with more than this about one entry is refused. */
  TAR_META_BYTES_MAX = 1048576,
  TAR_OCTAL_12_MAX_BITS = 33,
};

enum tar_type {
  TAR_FILE = '0',
  TAR_FILE_OLD = 0,
  TAR_FILE_CONTIGUOUS = '7',
  TAR_HARD_LINK = '1',
  TAR_SYMBOLIC_LINK = '2',
  TAR_CHARACTER_DEVICE = '3',
  TAR_BLOCK_DEVICE = '4',
  TAR_FOLDER = '5',
  TAR_FIFO = '6',
  TAR_PAX = 'x',
  TAR_PAX_GLOBAL = 'g',
  TAR_GNU_LONG_NAME = 'L',
  TAR_GNU_LONG_LINK = 'K',
  TAR_GNU_SPARSE = 'S',
  TAR_GNU_VOLUME = 'V',
};

struct tar_header {
  uint8_t type;
  uint64_t size;
  uint32_t mode;
  uint64_t uid;
  uint64_t gid;
  int64_t modified;
  /* Prefix, slash and name, NUL-terminated. */
  char name[TAR_PREFIX_BYTES + 1 + TAR_NAME_BYTES + 1];
  char link[TAR_NAME_BYTES + 1];
};

/* A problem: a protocol error code and a phrase that gives the reason. `code` 0 means no problem. */
struct tar_problem {
  int code;
  const char *reason;
};

/* A block of zeros marks the end and is not a header: check for it first. */
bool tar_block_is_zero(const uint8_t block[TAR_BLOCK]);
struct tar_problem tar_header_parse(const uint8_t block[TAR_BLOCK], struct tar_header *out);

/* What pax or GNU headers specify for the entry that follows. */
struct tar_meta {
  char *path;
  char *link;
  bool has_size, has_modified, has_uid, has_gid;
  uint64_t size;
  int64_t modified;
  uint32_t modified_ns;
  uint64_t uid;
  uint64_t gid;
};

struct tar_problem tar_pax_parse(const uint8_t *bytes, size_t length, struct tar_meta *meta);
/* Parses the payload of a GNU long name or link, terminated or not. */
struct tar_problem tar_gnu_name(const uint8_t *bytes, size_t length, char **into);
void tar_meta_free(struct tar_meta *meta);

/* An entry for TAR_OUT to write; the `name` of a folder ends with a slash. */
struct tar_entry {
  uint8_t type;
  const char *name;
  const char *link;
  uint64_t size;
  uint32_t mode;
  uint64_t uid;
  uint64_t gid;
  int64_t modified;
};

/*
 * Builds the header blocks of an entry, preceded by a pax header if ustar cannot express it. The caller frees
 * `*blocks`. Returns false if memory runs out.
 */
bool tar_entry_encode(const struct tar_entry *entry, uint8_t **blocks, size_t *length);
