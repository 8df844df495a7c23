#include "files/tar.h"

#include <stdlib.h>
#include <string.h>

static const struct tar_problem fine = {0, NULL};

bool tar_block_is_zero(const uint8_t block[TAR_BLOCK]) {
  for (size_t i = 0; i < TAR_BLOCK; i++) {
    if (block[i] != 0) return false;
  }
  return true;
}

/*
 * Parses octal digits between spaces or NULs, or the GNU form: the first bit set, then a big-endian two's complement
 * number.
 */
static bool parse_number(const uint8_t *field, size_t length, int64_t *out) {
  if (field[0] & 0x80) {
    bool negative = (field[0] & 0x40) != 0;
    uint64_t value = negative ? UINT64_MAX : 0;
    for (size_t i = 0; i < length; i++) {
      uint8_t byte = field[i];
      if (i == 0) byte = negative ? byte : byte & 0x7f;
      /* The bits shifted out must repeat the sign; otherwise the number does not fit. */
      if ((value >> 55) != (negative ? 0x1ff : 0)) return false;
      value = value << 8 | byte;
    }
    *out = (int64_t)value;
    return true;
  }
  size_t at = 0;
  uint64_t value = 0;
  while (at < length && field[at] == ' ') at++;
  for (; at < length && field[at] >= '0' && field[at] <= '7'; at++) {
    if (value >> 60) return false;
    value = value << 3 | (uint64_t)(field[at] - '0');
  }
  for (; at < length; at++) {
    if (field[at] != ' ' && field[at] != 0) return false;
  }
  *out = (int64_t)value;
  return true;
}

static bool checksum_holds(const uint8_t block[TAR_BLOCK]) {
  int64_t stored;
  int64_t plain = 0, with_signs = 0;
  if (!parse_number(block + 148, 8, &stored)) return false;
  for (size_t i = 0; i < TAR_BLOCK; i++) {
    uint8_t byte = i >= 148 && i < 156 ? ' ' : block[i];
    plain += byte;
    /* Some old writers summed signed characters. */
    with_signs += (int8_t)byte;
  }
  return stored == plain || stored == with_signs;
}

static size_t copy_field(char *into, const uint8_t *field, size_t length) {
  size_t used = strnlen((const char *)field, length);
  memcpy(into, field, used);
  into[used] = 0;
  return used;
}

struct tar_problem tar_header_parse(const uint8_t block[TAR_BLOCK], struct tar_header *out) {
  int64_t mode, uid, gid, size, modified;
  *out = (struct tar_header){0};
  if (!checksum_holds(block)) return (struct tar_problem){ERR_INVALID, "a header has a wrong checksum"};
  if (!parse_number(block + 100, 8, &mode) || !parse_number(block + 108, 8, &uid) || !parse_number(block + 116, 8, &gid) ||
      !parse_number(block + 124, 12, &size) || !parse_number(block + 136, 12, &modified)) {
    return (struct tar_problem){ERR_INVALID, "a number in a header is invalid"};
  }
  if (size < 0 || mode < 0 || uid < 0 || gid < 0) return (struct tar_problem){ERR_INVALID, "a number in a header is negative"};
  out->type = block[156];
  out->size = (uint64_t)size;
  out->mode = (uint32_t)(mode & 07777);
  out->uid = (uint64_t)uid;
  out->gid = (uint64_t)gid;
  out->modified = modified;
  size_t at = 0;
  /* Only the POSIX form has a prefix; GNU uses these bytes for something else. */
  if (memcmp(block + 257, "ustar\0", 6) == 0 && block[345] != 0) {
    at = copy_field(out->name, block + 345, TAR_PREFIX_BYTES);
    out->name[at++] = '/';
  }
  copy_field(out->name + at, block, TAR_NAME_BYTES);
  copy_field(out->link, block + 157, TAR_NAME_BYTES);
  return fine;
}

void tar_meta_free(struct tar_meta *meta) {
  free(meta->path);
  free(meta->link);
  *meta = (struct tar_meta){0};
}

static struct tar_problem take_name(const uint8_t *bytes, size_t length, char **into) {
  free(*into);
  *into = NULL;
  if (length == 0) return fine;
  if (memchr(bytes, 0, length) != NULL) return (struct tar_problem){ERR_UNSAFE, "a name contains NUL"};
  if (length > PATH_BYTES_MAX) return (struct tar_problem){ERR_UNSAFE, "a name is longer than 4,095 bytes"};
  *into = malloc(length + 1);
  if (*into == NULL) return (struct tar_problem){ERR_TOO_LARGE, "out of memory"};
  memcpy(*into, bytes, length);
  (*into)[length] = 0;
  return fine;
}

struct tar_problem tar_gnu_name(const uint8_t *bytes, size_t length, char **into) {
  while (length > 0 && bytes[length - 1] == 0) length--;
  return take_name(bytes, length, into);
}

/* Accepts only digits, and only numbers that fit. */
static bool parse_decimal(const uint8_t *bytes, size_t length, uint64_t *out) {
  uint64_t value = 0;
  if (length == 0) return false;
  for (size_t i = 0; i < length; i++) {
    if (bytes[i] < '0' || bytes[i] > '9' || value > (INT64_MAX - 9) / 10) return false;
    value = value * 10 + (uint64_t)(bytes[i] - '0');
  }
  *out = value;
  return true;
}

static bool parse_time(const uint8_t *bytes, size_t length, int64_t *seconds, uint32_t *nanoseconds) {
  bool negative = length > 0 && bytes[0] == '-';
  if (negative) bytes++, length--;
  const uint8_t *dot = memchr(bytes, '.', length);
  size_t whole_length = dot != NULL ? (size_t)(dot - bytes) : length;
  uint64_t whole;
  if (!parse_decimal(bytes, whole_length, &whole)) return false;
  uint32_t fraction = 0, scale = 100000000;
  for (size_t i = whole_length + 1; i < length; i++) {
    if (bytes[i] < '0' || bytes[i] > '9') return false;
    fraction += (uint32_t)(bytes[i] - '0') * scale;
    scale /= 10;
  }
  *seconds = negative ? -(int64_t)whole : (int64_t)whole;
  *nanoseconds = fraction;
  if (negative && fraction > 0) {
    *seconds -= 1;
    *nanoseconds = 1000000000 - fraction;
  }
  return true;
}

static bool key_is(const uint8_t *key, size_t length, const char *name) {
  return length == strlen(name) && memcmp(key, name, length) == 0;
}

static struct tar_problem take_record(const uint8_t *key, size_t key_length, const uint8_t *value, size_t length, struct tar_meta *meta) {
  const struct tar_problem bad = {ERR_INVALID, "a number in a pax record is invalid"};
  if (key_is(key, key_length, "path")) return take_name(value, length, &meta->path);
  if (key_is(key, key_length, "linkpath")) return take_name(value, length, &meta->link);
  if (key_is(key, key_length, "size")) {
    meta->has_size = length > 0;
    return length == 0 || parse_decimal(value, length, &meta->size) ? fine : bad;
  }
  if (key_is(key, key_length, "mtime")) {
    meta->has_modified = length > 0;
    return length == 0 || parse_time(value, length, &meta->modified, &meta->modified_ns) ? fine : bad;
  }
  if (key_is(key, key_length, "uid")) {
    meta->has_uid = length > 0;
    return length == 0 || parse_decimal(value, length, &meta->uid) ? fine : bad;
  }
  if (key_is(key, key_length, "gid")) {
    meta->has_gid = length > 0;
    return length == 0 || parse_decimal(value, length, &meta->gid) ? fine : bad;
  }
  if (key_length >= 11 && memcmp(key, "GNU.sparse.", 11) == 0) return (struct tar_problem){ERR_UNSUPPORTED, "sparse entries are not supported"};
  return fine;
}

struct tar_problem tar_pax_parse(const uint8_t *bytes, size_t length, struct tar_meta *meta) {
  const struct tar_problem bad = {ERR_INVALID, "a pax record is malformed"};
  size_t at = 0;
  while (at < length) {
    const uint8_t *space = memchr(bytes + at, ' ', length - at < 21 ? length - at : 21);
    uint64_t size;
    if (space == NULL || !parse_decimal(bytes + at, (size_t)(space - bytes) - at, &size)) return bad;
    size_t digits = (size_t)(space - bytes) - at;
    /* The number counts itself, the space, at least "k=" and the line feed. */
    if (size > length - at || size < digits + 4 || bytes[at + size - 1] != '\n') return bad;
    const uint8_t *key = space + 1;
    size_t rest = size - digits - 2;
    const uint8_t *equals = memchr(key, '=', rest);
    if (equals == NULL || equals == key) return bad;
    size_t key_length = (size_t)(equals - key);
    struct tar_problem problem = take_record(key, key_length, equals + 1, rest - key_length - 1, meta);
    if (problem.code) return problem;
    at += size;
  }
  return fine;
}
