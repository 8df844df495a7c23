/*
 * An index: for each entry its name, type, inode and change time, in the order of a walk. Folders are followed by their
 * entries, and end with a record without a name. Only the host writes and reads it.
 */
#include "launch/layers.h"

#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[] = "caisson index 1\n";

struct packed_entry {
  uint64_t inode, changed_ns;
  uint16_t name_length; /* Without the NUL that follows it; 0 ends a folder. */
  uint8_t type, opaque;
  uint32_t rights;
};

bool open_index(struct index_reader *reader, const char *path) {
  memset(reader, 0, sizeof *reader);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return false;
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) launch_fail("point", "%s", path);
  size_t length = (size_t)status.st_size;
  reader->buffer = xalloc(length + 1);
  if (read_full(fd, reader->buffer, length) != (ssize_t)length || length < sizeof magic - 1 || memcmp(reader->buffer, magic, sizeof magic - 1) != 0)
    launch_fail("point", "%s is not an index", path);
  reader->at = (unsigned char *)reader->buffer + sizeof magic - 1;
  reader->end = (unsigned char *)reader->buffer + length;
  return true;
}

bool next_entry(struct index_reader *reader, struct index_entry *entry) {
  struct packed_entry packed;
  if ((size_t)(reader->end - reader->at) < sizeof packed) launch_fail("point", "the index is incomplete");
  memcpy(&packed, reader->at, sizeof packed);
  reader->at += sizeof packed;
  if (packed.name_length == 0) return false;
  if ((size_t)(reader->end - reader->at) <= packed.name_length || reader->at[packed.name_length] != 0)
    launch_fail("point", "the index is damaged");
  *entry = (struct index_entry){.name = (const char *)reader->at,
                                .type = packed.type,
                                .opaque = packed.opaque != 0,
                                .inode = packed.inode,
                                .rights = packed.rights,
                                .changed_ns = packed.changed_ns};
  reader->at += packed.name_length + 1;
  return true;
}

void skip_folder(struct index_reader *reader) {
  struct index_entry entry;
  for (size_t depth = 1; depth > 0;) {
    if (!next_entry(reader, &entry)) depth--;
    else if (entry.type == ENTRY_FOLDER) depth++;
  }
}

void close_index(struct index_reader *reader) { free(reader->buffer); }

static void append(struct index_writer *writer, const void *bytes, size_t length) {
  if (writer->length + length > writer->room) {
    writer->room = writer->room * 2 + length + 4096;
    writer->text = realloc(writer->text, writer->room);
    if (writer->text == NULL) launch_fail("point", "out of memory");
  }
  memcpy(writer->text + writer->length, bytes, length);
  writer->length += length;
}

void write_entry(struct index_writer *writer, const struct index_entry *entry) {
  size_t length = strlen(entry->name);
  struct packed_entry packed = {.inode = entry->inode,
                                .changed_ns = entry->changed_ns,
                                .name_length = (uint16_t)length,
                                .type = entry->type,
                                .opaque = entry->opaque,
                                .rights = entry->rights};
  if (writer->length == 0) append(writer, magic, sizeof magic - 1);
  append(writer, &packed, sizeof packed);
  append(writer, entry->name, length + 1);
}

void end_folder(struct index_writer *writer) {
  struct packed_entry packed = {0};
  if (writer->length == 0) append(writer, magic, sizeof magic - 1);
  append(writer, &packed, sizeof packed);
}

void store_index(struct index_writer *writer, const char *path) {
  cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 || !write_full(fd, writer->text, writer->length)) launch_fail("point", "%s", path);
  free(writer->text);
}
