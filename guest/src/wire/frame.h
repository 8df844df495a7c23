/*
 * The frames of docs/guest-protocol.md: a 12-byte header and a payload that is either raw or a sequence of fields.
 * Nothing here does I/O, so the parser can be fuzzed and checked against guest/vectors/frames.txt.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  PROTOCOL_VERSION = 1,
  FRAME_HEADER_BYTES = 12,
  FRAME_PAYLOAD_MAX = 262144,
  FIELD_HEADER_BYTES = 5,
  STREAM_WINDOW = 1048576,
  ACCEPTED_WINDOW = 65536,
  STDIN_WINDOW = 262144,
  OUTPUT_BUFFER = 1048576,
  REF_BYTES_MAX = 64,
  PATH_BYTES_MAX = 4095,
};

enum frame_type {
  FRAME_HELLO = 0x01,
  FRAME_WELCOME = 0x02,
  FRAME_PING = 0x03,
  FRAME_PONG = 0x04,
  FRAME_HEARTBEAT = 0x05,
  FRAME_OK = 0x06,
  FRAME_ERROR = 0x07,
  FRAME_DATA = 0x08,
  FRAME_END = 0x09,
  FRAME_CREDIT = 0x0A,
  FRAME_CANCEL = 0x0B,
  FRAME_SHUTDOWN = 0x0C,
  FRAME_FENCE = 0x0D,
  FRAME_SPAWN = 0x10,
  FRAME_ATTACH = 0x11,
  FRAME_STARTED = 0x12,
  FRAME_OUTPUT = 0x13,
  FRAME_ACK = 0x14,
  FRAME_STDIN = 0x15,
  FRAME_STDIN_END = 0x16,
  FRAME_STDIN_ACK = 0x17,
  FRAME_ENDED = 0x18,
  FRAME_RESIZE = 0x19,
  FRAME_SIGNAL = 0x1A,
  FRAME_FORGET = 0x1B,
  FRAME_LIST = 0x1C,
  FRAME_KILL = 0x1D,
  FRAME_STAT = 0x20,
  FRAME_LISTDIR = 0x21,
  FRAME_MKDIR = 0x22,
  FRAME_MOVE = 0x23,
  FRAME_REMOVE = 0x24,
  FRAME_READ = 0x25,
  FRAME_WRITE = 0x26,
  FRAME_WATCH = 0x27,
  FRAME_WATCH_EVENT = 0x28,
  FRAME_TAR_IN = 0x29,
  FRAME_TAR_OUT = 0x2A,
  FRAME_ENTRY = 0x2B,
  FRAME_CONNECT = 0x30,
  FRAME_LISTENERS = 0x31,
  FRAME_LISTEN = 0x32,
  FRAME_ACCEPTED = 0x33,
  FRAME_DATAGRAM = 0x34,
};

enum error_code {
  ERR_INVALID = 1,
  ERR_NOT_FOUND = 2,
  ERR_EXISTS = 3,
  ERR_DENIED = 4,
  ERR_NOT_DIRECTORY = 5,
  ERR_IS_DIRECTORY = 6,
  ERR_NOT_EMPTY = 7,
  ERR_NO_SPACE = 8,
  ERR_BUSY = 9,
  ERR_UNSUPPORTED = 10,
  ERR_IO = 11,
  ERR_GONE = 12,
  ERR_TOO_LARGE = 13,
  ERR_REFUSED = 14,
  ERR_NOT_EXECUTABLE = 15,
  ERR_UNSAFE = 16,
  ERR_SUPERSEDED = 17,
};

/* The side that may send a type. */
enum frame_side { FROM_HOST = 1, FROM_GUEST = 2 };

struct frame_header {
  uint32_t length;
  uint8_t type;
  uint32_t stream;
};

/*
 * Returns false for a protocol error: length over the maximum, unknown type, wrong direction, flags or reserved bits
 * set.
 */
bool frame_header_parse(const uint8_t bytes[FRAME_HEADER_BYTES], enum frame_side from, struct frame_header *out);
void frame_header_encode(uint8_t bytes[FRAME_HEADER_BYTES], uint8_t type, uint32_t stream, uint32_t length);

/* A field; `data` points into the payload and is not NUL-terminated. */
struct field {
  uint8_t tag;
  uint32_t length;
  const uint8_t *data;
};

/* A cursor over the fields of a payload. */
struct fields {
  const uint8_t *at;
  const uint8_t *end;
};

static inline struct fields fields_of(const uint8_t *payload, size_t length) {
  return (struct fields){payload, payload + length};
}

/* Returns 1 with the next field in `out`, 0 at the end, or -1 if a field runs past the payload (a protocol error). */
int fields_next(struct fields *cursor, struct field *out);
/* Returns whether every field is within the payload. Call it once, then look up fields freely. */
bool fields_valid(const uint8_t *payload, size_t length);
/* Finds the first field with this tag. */
bool field_find(const uint8_t *payload, size_t length, uint8_t tag, struct field *out);
/* Returns false unless the field has 8 bytes. */
bool field_u64(const struct field *field, uint64_t *out);
/* Reads the integer of a tag, or `fallback` if it is absent. Returns false if it is malformed. */
bool field_find_u64(const uint8_t *payload, size_t length, uint8_t tag, uint64_t fallback, uint64_t *out);
/* Returns a NUL-terminated copy that the caller frees; NULL if the field contains a NUL byte or memory runs out. */
char *field_text(const struct field *field);

uint32_t get_u32(const uint8_t *bytes);
uint64_t get_u64(const uint8_t *bytes);
void put_u32(uint8_t *bytes, uint32_t value);
void put_u64(uint8_t *bytes, uint64_t value);

/*
 * Grows as frames are appended, so one writer can carry several. `failed` is sticky: set if memory runs out or a
 * payload exceeds its maximum. frame_end then drops the unfinished frame.
 */
struct frame_writer {
  uint8_t *data;
  size_t length;
  size_t capacity;
  size_t frame_start;
  bool failed;
};

void frame_begin(struct frame_writer *writer, uint8_t type, uint32_t stream);
void frame_raw(struct frame_writer *writer, const void *bytes, size_t length);
void frame_field(struct frame_writer *writer, uint8_t tag, const void *bytes, size_t length);
void frame_field_u64(struct frame_writer *writer, uint8_t tag, uint64_t value);
void frame_field_text(struct frame_writer *writer, uint8_t tag, const char *text);
/* Finishes the frame. Returns false, and removes it, if it could not be built. */
bool frame_end(struct frame_writer *writer);
/* Writes a whole ERROR frame. */
bool frame_error(struct frame_writer *writer, uint32_t stream, enum error_code code, int errno_value, const char *message);
void frame_writer_free(struct frame_writer *writer);
