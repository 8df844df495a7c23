/* Both sides of the protocol assert the same bytes: guest/vectors/frames.txt. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

enum { LINE_MAX = 4096 };

struct vector {
  char name[64];
  uint8_t bytes[LINE_MAX];
  size_t length;
};

static struct vector vectors[128];
static size_t vector_count;

static void load(const char *path) {
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  static char line[2 * LINE_MAX];
  while (fgets(line, sizeof line, file)) {
    char *tab = strchr(line, '\t');
    if (tab == NULL || line[0] == '#') continue;
    struct vector *vector = &vectors[vector_count++];
    snprintf(vector->name, sizeof vector->name, "%.*s", (int)(tab - line), line);
    unsigned byte;
    for (char *at = tab + 1; sscanf(at, "%2x", &byte) == 1; at += 2) vector->bytes[vector->length++] = (uint8_t)byte;
  }
  fclose(file);
}

static const struct vector *find(const char *name) {
  for (size_t i = 0; i < vector_count; i++) {
    if (strcmp(vectors[i].name, name) == 0) return &vectors[i];
  }
  fprintf(stderr, "no vector %s\n", name);
  exit(1);
}

static bool is_raw(uint8_t type) {
  return type == FRAME_PING || type == FRAME_PONG || type == FRAME_DATA || type == FRAME_CREDIT || type == FRAME_OUTPUT ||
         type == FRAME_ACK || type == FRAME_DATAGRAM || type == FRAME_STDIN || type == FRAME_STDIN_END || type == FRAME_STDIN_ACK;
}

/* Parses a frame and writes it again: the bytes are the same. */
static void round_trip(const struct vector *vector) {
  struct frame_header header;
  bool from_host = frame_header_parse(vector->bytes, FROM_HOST, &header);
  bool from_guest = frame_header_parse(vector->bytes, FROM_GUEST, &header);
  if (!(from_host || from_guest) || header.length + FRAME_HEADER_BYTES != vector->length) {
    fprintf(stderr, "%s does not parse\n", vector->name);
    exit(1);
  }
  const uint8_t *payload = vector->bytes + FRAME_HEADER_BYTES;
  struct frame_writer writer = {0};
  frame_begin(&writer, header.type, header.stream);
  if (is_raw(header.type)) {
    frame_raw(&writer, payload, header.length);
  } else {
    assert(fields_valid(payload, header.length));
    struct fields cursor = fields_of(payload, header.length);
    struct field field;
    while (fields_next(&cursor, &field) == 1) frame_field(&writer, field.tag, field.data, field.length);
  }
  assert(frame_end(&writer));
  if (writer.length != vector->length || memcmp(writer.data, vector->bytes, writer.length) != 0) {
    fprintf(stderr, "%s is not the same again\n", vector->name);
    exit(1);
  }
  /* Cut anywhere, the fields are either complete or rejected. */
  for (size_t cut = 0; !is_raw(header.type) && cut < header.length; cut++) fields_valid(payload, cut);
  frame_writer_free(&writer);
}

static void same(struct frame_writer *writer, const char *name) {
  const struct vector *vector = find(name);
  if (!frame_end(writer) || writer->length != vector->length || memcmp(writer->data, vector->bytes, writer->length) != 0) {
    fprintf(stderr, "%s is encoded differently\n", name);
    exit(1);
  }
  frame_writer_free(writer);
}

/* Encodes the guest's own frames from values. */
static void encodes(void) {
  struct frame_writer writer = {0};
  uint8_t boot_id[16];
  for (int i = 0; i < 16; i++) boot_id[i] = (uint8_t)i;
  frame_begin(&writer, FRAME_WELCOME, 0);
  frame_field_u64(&writer, 1, 1);
  frame_field_text(&writer, 2, "0.1.0");
  frame_field(&writer, 3, boot_id, sizeof boot_id);
  frame_field_u64(&writer, 4, 1000);
  frame_field_u64(&writer, 5, 1000);
  frame_field_u64(&writer, 6, 1);
  frame_field_u64(&writer, 7, 1);
  frame_field_u64(&writer, 8, 1);
  same(&writer, "WELCOME");

  frame_begin(&writer, FRAME_PONG, 1);
  frame_raw(&writer, "12345678", 8);
  same(&writer, "PONG");

  frame_begin(&writer, FRAME_HEARTBEAT, 0);
  frame_field_u64(&writer, 1, 5000);
  frame_field_u64(&writer, 2, 3);
  frame_field_u64(&writer, 3, 12);
  same(&writer, "HEARTBEAT");

  frame_error(&writer, 3, ERR_NOT_FOUND, 2, "no such file");
  writer.frame_start = 0;
  same(&writer, "ERROR");

  uint8_t output[15] = {1};
  put_u64(output + 1, 4096);
  memcpy(output + 9, "hello\n", 6);
  frame_begin(&writer, FRAME_OUTPUT, 15);
  frame_raw(&writer, output, sizeof output);
  same(&writer, "OUTPUT.stdout");

  const uint64_t ended[] = {1, 3, 0, 4102, 19, 250, 1};
  frame_begin(&writer, FRAME_ENDED, 15);
  for (uint8_t i = 0; i < 7; i++) frame_field_u64(&writer, (uint8_t)(i + 1), ended[i]);
  same(&writer, "ENDED");

  frame_begin(&writer, FRAME_ACCEPTED, 4);
  frame_field_u64(&writer, 1, 443);
  frame_field_text(&writer, 2, "2001:db8::1");
  frame_field_u64(&writer, 3, 443);
  same(&writer, "ACCEPTED.transparent");
}

static void decodes(void) {
  const struct vector *hello = find("HELLO");
  struct frame_header header;
  struct field field;
  uint64_t version;
  assert(frame_header_parse(hello->bytes, FROM_HOST, &header) && header.type == FRAME_HELLO && header.stream == 0);
  assert(!frame_header_parse(hello->bytes, FROM_GUEST, &header));
  const uint8_t *payload = hello->bytes + FRAME_HEADER_BYTES;
  assert(field_find_u64(payload, header.length, 1, 0, &version) && version == 1);
  assert(field_find(payload, header.length, 2, &field) && field.length == 16 && memcmp(field.data, "0123456789abcdef", 16) == 0);
  char *text = field_text(&field);
  assert(strcmp(text, "0123456789abcdef") == 0);
  free(text);
}

static void refuses(void) {
  uint8_t good[FRAME_HEADER_BYTES], bad[FRAME_HEADER_BYTES];
  struct frame_header header;
  frame_header_encode(good, FRAME_PING, 1, FRAME_PAYLOAD_MAX);
  assert(frame_header_parse(good, FROM_HOST, &header) && header.length == FRAME_PAYLOAD_MAX);
  for (int at = 5; at < 8; at++) {
    memcpy(bad, good, sizeof bad);
    bad[at] = 1;
    assert(!frame_header_parse(bad, FROM_HOST, &header));
  }
  frame_header_encode(bad, FRAME_PING, 1, FRAME_PAYLOAD_MAX + 1);
  assert(!frame_header_parse(bad, FROM_HOST, &header));
  frame_header_encode(bad, FRAME_PING, 1, 0xFFFFFFFF);
  assert(!frame_header_parse(bad, FROM_HOST, &header));
  int known = 0;
  for (int type = 0; type < 256; type++) {
    frame_header_encode(bad, (uint8_t)type, 1, 0);
    known += frame_header_parse(bad, FROM_HOST, &header) || frame_header_parse(bad, FROM_GUEST, &header);
  }
  assert(known == 44);
  /* A field whose length is larger than what remains, by one and by nearly everything. */
  uint8_t field[FIELD_HEADER_BYTES + 3] = {1, 4, 0, 0, 0};
  assert(!fields_valid(field, sizeof field));
  put_u32(field + 1, 0xFFFFFFFF);
  assert(!fields_valid(field, sizeof field));
  put_u32(field + 1, 3);
  assert(fields_valid(field, sizeof field));
  /* A payload that exceeds its bound is removed. */
  struct frame_writer writer = {0};
  static uint8_t large[FRAME_PAYLOAD_MAX];
  frame_begin(&writer, FRAME_DATA, 1);
  frame_raw(&writer, large, sizeof large);
  assert(frame_end(&writer));
  size_t before = writer.length;
  frame_begin(&writer, FRAME_DATA, 1);
  frame_raw(&writer, large, sizeof large);
  frame_raw(&writer, large, 1);
  assert(!frame_end(&writer) && writer.length == before);
  frame_writer_free(&writer);
}

/*
 * Saves a conversation about a port that the host serves: a claim, bytes on the first stream that the guest opens, the
 * end of that stream, and the end of the claim.
 */
static void save_served(const char *folder) {
  static const uint8_t bytes[48];
  struct frame_writer writer = {0};
  frame_begin(&writer, FRAME_LISTEN, 1);
  frame_field_u64(&writer, 1, 19080);
  frame_end(&writer);
  frame_begin(&writer, FRAME_DATA, 2);
  frame_raw(&writer, bytes, sizeof bytes);
  frame_end(&writer);
  for (int i = 0; i < 2; i++) {
    frame_begin(&writer, i ? FRAME_CANCEL : FRAME_END, i ? 1 : 2);
    frame_end(&writer);
  }
  char path[512];
  snprintf(path, sizeof path, "%s/served", folder);
  FILE *file = fopen(path, "w");
  if (file == NULL || fwrite(writer.data, 1, writer.length, file) != writer.length || fclose(file) != 0) exit(1);
  frame_writer_free(&writer);
}

/* Saves the inputs of the fuzzers, one file each. */
static void save(const char *folder) {
  for (size_t i = 0; i < vector_count; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, vectors[i].name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(vectors[i].bytes, 1, vectors[i].length, file) != vectors[i].length || fclose(file) != 0) exit(1);
  }
}

int main(int argc, char **argv) {
  load(argc > 1 ? argv[1] : "vectors/frames.txt");
  assert(vector_count > 40);
  if (argc > 2) save(argv[2]);
  if (argc > 2) save_served(argv[2]);
  for (size_t i = 0; i < vector_count; i++) round_trip(&vectors[i]);
  encodes();
  decodes();
  refuses();
  printf("%zu vectors\n", vector_count);
  return 0;
}
