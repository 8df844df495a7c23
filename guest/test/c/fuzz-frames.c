/* Fuzzes the parser alone: any bytes as a stream of frames and fields. */
#include <stdlib.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  while (size >= FRAME_HEADER_BYTES) {
    struct frame_header header;
    enum frame_side side = data[4] & 1 ? FROM_HOST : FROM_GUEST;
    if (!frame_header_parse(data, side, &header)) return 0;
    data += FRAME_HEADER_BYTES;
    size -= FRAME_HEADER_BYTES;
    size_t length = header.length < size ? header.length : size;
    struct fields cursor = fields_of(data, length);
    struct field field;
    uint64_t number;
    struct frame_writer writer = {0};
    frame_begin(&writer, header.type, header.stream);
    while (fields_next(&cursor, &field) == 1) {
      frame_field(&writer, field.tag, field.data, field.length);
      field_u64(&field, &number);
      free(field_text(&field));
    }
    bool built = frame_end(&writer);
    /* A payload of fields and nothing else is written back with the same length. */
    if (built && fields_valid(data, length) && writer.length != FRAME_HEADER_BYTES + length) abort();
    for (int tag = 0; tag < 14; tag++) field_find_u64(data, length, (uint8_t)tag, 0, &number);
    frame_writer_free(&writer);
    data += length;
    size -= length;
  }
  return 0;
}
