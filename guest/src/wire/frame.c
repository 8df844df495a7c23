#include "wire/frame.h"

#include <stdlib.h>
#include <string.h>

#include "wire/tags.h"

/*
 * The sides that may send each type; 0 marks an unknown type. The 64-byte table is cheaper than a switch and easier to
 * read.
 */
static const uint8_t senders[0x40] = {
    [FRAME_HELLO] = FROM_HOST,
    [FRAME_WELCOME] = FROM_GUEST,
    [FRAME_PING] = FROM_HOST,
    [FRAME_PONG] = FROM_GUEST,
    [FRAME_HEARTBEAT] = FROM_GUEST,
    [FRAME_OK] = FROM_GUEST,
    [FRAME_ERROR] = FROM_GUEST,
    [FRAME_DATA] = FROM_HOST | FROM_GUEST,
    [FRAME_END] = FROM_HOST | FROM_GUEST,
    [FRAME_CREDIT] = FROM_HOST | FROM_GUEST,
    [FRAME_CANCEL] = FROM_HOST,
    [FRAME_SHUTDOWN] = FROM_HOST,
    [FRAME_FENCE] = FROM_HOST,
    [FRAME_SPAWN] = FROM_HOST,
    [FRAME_ATTACH] = FROM_HOST,
    [FRAME_STARTED] = FROM_GUEST,
    [FRAME_OUTPUT] = FROM_GUEST,
    [FRAME_ACK] = FROM_HOST,
    [FRAME_STDIN] = FROM_HOST,
    [FRAME_STDIN_END] = FROM_HOST,
    [FRAME_STDIN_ACK] = FROM_GUEST,
    [FRAME_ENDED] = FROM_GUEST,
    [FRAME_RESIZE] = FROM_HOST,
    [FRAME_SIGNAL] = FROM_HOST,
    [FRAME_FORGET] = FROM_HOST,
    [FRAME_LIST] = FROM_HOST,
    [FRAME_KILL] = FROM_HOST,
    [FRAME_STAT] = FROM_HOST,
    [FRAME_LISTDIR] = FROM_HOST,
    [FRAME_MKDIR] = FROM_HOST,
    [FRAME_MOVE] = FROM_HOST,
    [FRAME_REMOVE] = FROM_HOST,
    [FRAME_READ] = FROM_HOST,
    [FRAME_WRITE] = FROM_HOST,
    [FRAME_WATCH] = FROM_HOST,
    [FRAME_WATCH_EVENT] = FROM_GUEST,
    [FRAME_TAR_IN] = FROM_HOST,
    [FRAME_TAR_OUT] = FROM_HOST,
    [FRAME_ENTRY] = FROM_GUEST,
    [FRAME_CONNECT] = FROM_HOST,
    [FRAME_LISTENERS] = FROM_HOST,
    [FRAME_LISTEN] = FROM_HOST,
    [FRAME_ACCEPTED] = FROM_GUEST,
    [FRAME_DATAGRAM] = FROM_HOST | FROM_GUEST,
};

uint32_t get_u32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t get_u64(const uint8_t *bytes) {
  return (uint64_t)get_u32(bytes) | (uint64_t)get_u32(bytes + 4) << 32;
}

void put_u32(uint8_t *bytes, uint32_t value) {
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

void put_u64(uint8_t *bytes, uint64_t value) {
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

bool frame_header_parse(const uint8_t bytes[FRAME_HEADER_BYTES], enum frame_side from, struct frame_header *out) {
  uint32_t length = get_u32(bytes);
  uint8_t type = bytes[4];
  if (length > FRAME_PAYLOAD_MAX) return false;
  if (bytes[5] != 0 || bytes[6] != 0 || bytes[7] != 0) return false;
  if (type >= sizeof senders || !(senders[type] & from)) return false;
  *out = (struct frame_header){.length = length, .type = type, .stream = get_u32(bytes + 8)};
  return true;
}

void frame_header_encode(uint8_t bytes[FRAME_HEADER_BYTES], uint8_t type, uint32_t stream, uint32_t length) {
  put_u32(bytes, length);
  bytes[4] = type;
  bytes[5] = bytes[6] = bytes[7] = 0;
  put_u32(bytes + 8, stream);
}

int fields_next(struct fields *cursor, struct field *out) {
  size_t left = (size_t)(cursor->end - cursor->at);
  if (left == 0) return 0;
  if (left < FIELD_HEADER_BYTES) return -1;
  uint32_t length = get_u32(cursor->at + 1);
  if (length > left - FIELD_HEADER_BYTES) return -1;
  *out = (struct field){.tag = cursor->at[0], .length = length, .data = cursor->at + FIELD_HEADER_BYTES};
  cursor->at += FIELD_HEADER_BYTES + (size_t)length;
  return 1;
}

bool fields_valid(const uint8_t *payload, size_t length) {
  struct fields cursor = fields_of(payload, length);
  struct field field;
  int more;
  while ((more = fields_next(&cursor, &field)) == 1) {}
  return more == 0;
}

bool field_find(const uint8_t *payload, size_t length, uint8_t tag, struct field *out) {
  struct fields cursor = fields_of(payload, length);
  struct field field;
  while (fields_next(&cursor, &field) == 1) {
    if (field.tag != tag) continue;
    *out = field;
    return true;
  }
  return false;
}

bool field_u64(const struct field *field, uint64_t *out) {
  if (field->length != 8) return false;
  *out = get_u64(field->data);
  return true;
}

bool field_find_u64(const uint8_t *payload, size_t length, uint8_t tag, uint64_t fallback, uint64_t *out) {
  struct field field;
  *out = fallback;
  if (!field_find(payload, length, tag, &field)) return true;
  return field_u64(&field, out);
}

char *field_text(const struct field *field) {
  if (field->length > 0 && memchr(field->data, 0, field->length) != NULL) return NULL;
  char *text = malloc((size_t)field->length + 1);
  if (text == NULL) return NULL;
  if (field->length > 0) memcpy(text, field->data, field->length);
  text[field->length] = 0;
  return text;
}

static bool reserve(struct frame_writer *writer, size_t more) {
  if (writer->failed) return false;
  size_t needed = writer->length + more;
  if (needed <= writer->capacity) return true;
  size_t capacity = writer->capacity ? writer->capacity : 256;
  while (capacity < needed) capacity *= 2;
  uint8_t *grown = realloc(writer->data, capacity);
  if (grown == NULL) {
    writer->failed = true;
    return false;
  }
  writer->data = grown;
  writer->capacity = capacity;
  return true;
}

void frame_begin(struct frame_writer *writer, uint8_t type, uint32_t stream) {
  writer->frame_start = writer->length;
  if (!reserve(writer, FRAME_HEADER_BYTES)) return;
  frame_header_encode(writer->data + writer->length, type, stream, 0);
  writer->length += FRAME_HEADER_BYTES;
}

void frame_raw(struct frame_writer *writer, const void *bytes, size_t length) {
  /* Checked here and not only at the end, so a runaway caller cannot grow the buffer first. */
  if (length > FRAME_PAYLOAD_MAX ||
      writer->length - writer->frame_start + length > FRAME_HEADER_BYTES + (size_t)FRAME_PAYLOAD_MAX) {
    writer->failed = true;
    return;
  }
  if (length == 0 || !reserve(writer, length)) return;
  memcpy(writer->data + writer->length, bytes, length);
  writer->length += length;
}

void frame_field(struct frame_writer *writer, uint8_t tag, const void *bytes, size_t length) {
  uint8_t head[FIELD_HEADER_BYTES] = {tag};
  if (length > FRAME_PAYLOAD_MAX) {
    writer->failed = true;
    return;
  }
  put_u32(head + 1, (uint32_t)length);
  frame_raw(writer, head, sizeof head);
  frame_raw(writer, bytes, length);
}

void frame_field_u64(struct frame_writer *writer, uint8_t tag, uint64_t value) {
  uint8_t bytes[8];
  put_u64(bytes, value);
  frame_field(writer, tag, bytes, sizeof bytes);
}

void frame_field_text(struct frame_writer *writer, uint8_t tag, const char *text) {
  frame_field(writer, tag, text, strlen(text));
}

bool frame_end(struct frame_writer *writer) {
  if (writer->failed) {
    writer->length = writer->frame_start;
    writer->failed = false;
    return false;
  }
  put_u32(writer->data + writer->frame_start, (uint32_t)(writer->length - writer->frame_start - FRAME_HEADER_BYTES));
  return true;
}

bool frame_error(struct frame_writer *writer, uint32_t stream, enum error_code code, int errno_value, const char *message) {
  frame_begin(writer, FRAME_ERROR, stream);
  frame_field_u64(writer, TAG_ERROR_CODE, code);
  frame_field_text(writer, TAG_ERROR_MESSAGE, message);
  frame_field_u64(writer, TAG_ERROR_ERRNO, (uint64_t)errno_value);
  return frame_end(writer);
}

void frame_writer_free(struct frame_writer *writer) {
  free(writer->data);
  *writer = (struct frame_writer){0};
}
