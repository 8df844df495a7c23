#include "files/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OCTAL_8_MAX = 07777777, PAX_RECORDS_MAX = 8 };
static const int64_t octal_12_max = ((int64_t)1 << TAR_OCTAL_12_MAX_BITS) - 1;

/* The records of a pax header; the two names bound their size. */
struct records {
  char *bytes;
  size_t length;
  size_t capacity;
};

static void add_record(struct records *records, const char *key, const char *value) {
  size_t rest = strlen(key) + strlen(value) + 3;
  size_t size = rest + 1;
  /* The length includes its own digits. */
  for (size_t digits = 1;; digits++) {
    char number[24];
    size = rest + digits;
    if ((size_t)snprintf(number, sizeof number, "%zu", size) == digits) break;
  }
  if (records->length + size + 1 > records->capacity) return;
  snprintf(records->bytes + records->length, size + 1, "%zu %s=%s\n", size, key, value);
  records->length += size;
}

static void add_number(struct records *records, const char *key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%" PRId64, value);
  add_record(records, key, text);
}

static bool is_utf8(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at) {
    int more = *at < 0x80 ? 0 : *at >= 0xC2 && *at < 0xE0 ? 1 : (*at & 0xF0) == 0xE0 ? 2 : *at >= 0xF0 && *at < 0xF5 ? 3 : -1;
    if (more < 0) return false;
    for (at++; more > 0; more--, at++) {
      if ((*at & 0xC0) != 0x80) return false;
    }
  }
  return true;
}

/* Returns where to split a name into prefix and name, 0 if it fits whole, or -1 if it cannot be split. */
static ssize_t split_of(const char *name) {
  size_t length = strlen(name);
  if (length <= TAR_NAME_BYTES) return 0;
  for (size_t at = length - TAR_NAME_BYTES - 1; at < length - 1 && at <= TAR_PREFIX_BYTES; at++) {
    if (at > 0 && name[at] == '/') return (ssize_t)at;
  }
  return -1;
}

static void put_octal(uint8_t *field, size_t digits, uint64_t value) {
  for (size_t at = digits; at-- > 0; value >>= 3) field[at] = (uint8_t)('0' + (value & 7));
}

static void put_text(uint8_t *field, const char *text, size_t max) {
  size_t length = strlen(text);
  memcpy(field, text, length < max ? length : max);
}

static void put_header(uint8_t block[TAR_BLOCK], const struct tar_entry *entry) {
  ssize_t split = split_of(entry->name);
  bool time_fits = entry->modified >= 0 && entry->modified <= octal_12_max;
  memset(block, 0, TAR_BLOCK);
  if (split > 0) put_text(block + 345, entry->name, (size_t)split);
  put_text(block, split > 0 ? entry->name + split + 1 : entry->name, TAR_NAME_BYTES);
  put_octal(block + 100, 7, entry->mode & 07777);
  put_octal(block + 108, 7, entry->uid <= OCTAL_8_MAX ? entry->uid : 0);
  put_octal(block + 116, 7, entry->gid <= OCTAL_8_MAX ? entry->gid : 0);
  put_octal(block + 124, 11, entry->size <= (uint64_t)octal_12_max ? entry->size : 0);
  put_octal(block + 136, 11, time_fits ? (uint64_t)entry->modified : 0);
  memset(block + 148, ' ', 8);
  block[156] = entry->type;
  if (entry->link != NULL) put_text(block + 157, entry->link, TAR_NAME_BYTES);
  memcpy(block + 257, "ustar\00000", 8);
  put_octal(block + 329, 7, 0);
  put_octal(block + 337, 7, 0);
  uint32_t sum = 0;
  for (size_t i = 0; i < TAR_BLOCK; i++) sum += block[i];
  put_octal(block + 148, 6, sum);
  block[154] = 0;
  block[155] = ' ';
}

/* Collects what ustar cannot express as pax records. */
static void gather(struct records *records, const struct tar_entry *entry) {
  bool long_name = split_of(entry->name) < 0;
  bool long_link = entry->link != NULL && strlen(entry->link) > TAR_NAME_BYTES;
  if ((long_name && !is_utf8(entry->name)) || (long_link && !is_utf8(entry->link))) add_record(records, "hdrcharset", "BINARY");
  if (long_name) add_record(records, "path", entry->name);
  if (long_link) add_record(records, "linkpath", entry->link);
  if (entry->size > (uint64_t)octal_12_max) add_number(records, "size", (int64_t)entry->size);
  if (entry->uid > OCTAL_8_MAX) add_number(records, "uid", (int64_t)entry->uid);
  if (entry->gid > OCTAL_8_MAX) add_number(records, "gid", (int64_t)entry->gid);
  if (entry->modified < 0 || entry->modified > octal_12_max) add_number(records, "mtime", entry->modified);
}

bool tar_entry_encode(const struct tar_entry *entry, uint8_t **blocks, size_t *length) {
  struct records records = {.capacity = strlen(entry->name) + (entry->link != NULL ? strlen(entry->link) : 0) + PAX_RECORDS_MAX * 64};
  records.bytes = malloc(records.capacity);
  if (records.bytes == NULL) return false;
  gather(&records, entry);
  size_t padded = (records.length + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
  *length = TAR_BLOCK + (records.length > 0 ? TAR_BLOCK + padded : 0);
  uint8_t *at = *blocks = calloc(1, *length);
  if (at != NULL && records.length > 0) {
    put_header(at, &(struct tar_entry){.type = TAR_PAX, .name = "././@PaxHeader", .size = records.length, .mode = 0644});
    memcpy(at + TAR_BLOCK, records.bytes, records.length);
    at += TAR_BLOCK + padded;
  }
  if (at != NULL) put_header(at, entry);
  free(records.bytes);
  return at != NULL;
}
