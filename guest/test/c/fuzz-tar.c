/* Fuzzes the readers of tar headers: any block, any pax body, any GNU name. Whatever they return must be usable. */
#include "files/tar.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
  if (!holds) abort();
}

static void fuzz_header(const uint8_t *data, size_t size) {
  uint8_t block[TAR_BLOCK] = {0};
  struct tar_header header;
  memcpy(block, data, size < TAR_BLOCK ? size : TAR_BLOCK);
  /* Corrects the checksum, or hardly any input would pass the first check. */
  uint32_t sum = 8 * ' ';
  for (size_t i = 0; i < TAR_BLOCK; i++) sum += i >= 148 && i < 156 ? 0 : block[i];
  for (int at = 5; at >= 0; at--, sum >>= 3) block[148 + at] = (uint8_t)('0' + (sum & 7));
  block[154] = 0;
  block[155] = ' ';
  if (tar_header_parse(block, &header).code != 0) return;
  check(header.size <= INT64_MAX && header.mode <= 07777);
  check(memchr(header.name, 0, sizeof header.name) != NULL && memchr(header.link, 0, sizeof header.link) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tar_meta meta = {0};
  fuzz_header(data, size);
  if (tar_pax_parse(data, size, &meta).code == 0) {
    check(meta.path == NULL || (meta.path[0] != 0 && strlen(meta.path) <= PATH_BYTES_MAX));
    check(!meta.has_size || meta.size <= INT64_MAX);
    check(meta.modified_ns < 1000000000);
  }
  tar_gnu_name(data, size, &meta.link);
  check(meta.link == NULL || strlen(meta.link) <= PATH_BYTES_MAX);
  /* What was parsed can be written, and reads back the same. */
  if (meta.path != NULL && meta.link != NULL) {
    struct tar_entry entry = {.type = TAR_SYMBOLIC_LINK, .name = meta.path, .link = meta.link, .modified = meta.modified};
    struct tar_meta again = {0};
    struct tar_header header;
    uint8_t *blocks = NULL;
    size_t length;
    check(tar_entry_encode(&entry, &blocks, &length) && length % TAR_BLOCK == 0);
    check(tar_header_parse(blocks, &header).code == 0);
    if (header.type == TAR_PAX) {
      check(tar_pax_parse(blocks + TAR_BLOCK, (size_t)header.size, &again).code == 0);
      check(tar_header_parse(blocks + length - TAR_BLOCK, &header).code == 0);
    }
    check(strcmp(again.path != NULL ? again.path : header.name, meta.path) == 0);
    check(strcmp(again.link != NULL ? again.link : header.link, meta.link) == 0);
    tar_meta_free(&again);
    free(blocks);
  }
  tar_meta_free(&meta);
  return 0;
}
