/*
 * TAR_IN. Nothing in an archive is trusted: every name is taken apart, every folder on the way is opened beneath the
 * target without following links, and only files that this request created are opened for writing.
 */
#include "base/privilege.h"
#include "files/tar-place.h"
#include "wire/tags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { TAR_ENTRIES_DEFAULT = 10000000, TAR_STRIP_MAX = 1024 };

struct unpacking {
  struct worker *worker;
  struct place place;
  const uint8_t *chunk;
  size_t chunk_left;
  bool ended;
  bool broken;
  struct tar_meta meta;
  /* Headers that only describe the next entry; also limited, or an archive could consist of nothing else. */
  uint64_t descriptions;
  uint64_t entries;
  uint64_t entries_max;
  uint64_t bytes;
  uint64_t bytes_max;
};

/* Returns the next bytes, at most `max` of them; 0 at the end of the stream or if it broke. */
static size_t take(struct unpacking *unpacking, size_t max, const uint8_t **bytes) {
  while (unpacking->chunk_left == 0) {
    if (unpacking->ended || unpacking->broken) return 0;
    int got = worker_receive(unpacking->worker, &unpacking->chunk, &unpacking->chunk_left);
    if (got == 0) unpacking->ended = true;
    if (got < 0) unpacking->broken = true;
    if (got != 1) unpacking->chunk_left = 0;
  }
  size_t length = max < unpacking->chunk_left ? max : unpacking->chunk_left;
  *bytes = unpacking->chunk;
  unpacking->chunk += length;
  unpacking->chunk_left -= length;
  return length;
}

static bool truncated(struct unpacking *unpacking) {
  return place_fail(&unpacking->place, ERR_INVALID, 0, NULL, "the archive is truncated");
}

static bool take_all(struct unpacking *unpacking, uint8_t *into, size_t length) {
  while (length > 0) {
    const uint8_t *bytes;
    size_t got = take(unpacking, length, &bytes);
    if (got == 0) return truncated(unpacking);
    memcpy(into, bytes, got);
    into += got;
    length -= got;
  }
  return true;
}

static bool skip(struct unpacking *unpacking, uint64_t length) {
  while (length > 0) {
    const uint8_t *bytes;
    size_t got = take(unpacking, length < TAR_META_BYTES_MAX ? (size_t)length : TAR_META_BYTES_MAX, &bytes);
    if (got == 0) return truncated(unpacking);
    length -= got;
  }
  return true;
}

static uint64_t padding(uint64_t size) { return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK; }

static bool problem_fail(struct unpacking *unpacking, struct tar_problem problem) {
  return place_fail(&unpacking->place, problem.code, 0, NULL, problem.reason);
}

/* Reads an extended header, which describes what follows. */
static bool take_description(struct unpacking *unpacking, const struct tar_header *header) {
  if (header->size > TAR_META_BYTES_MAX) return place_fail(&unpacking->place, ERR_TOO_LARGE, 0, NULL, "an extended header is too large");
  if (++unpacking->descriptions > 4 * unpacking->entries_max + 16) {
    return place_fail(&unpacking->place, ERR_TOO_LARGE, 0, NULL, "too many extended headers");
  }
  size_t size = (size_t)header->size;
  cleanup_free uint8_t *bytes = malloc(size + 1);
  if (bytes == NULL) return place_fail(&unpacking->place, ERR_TOO_LARGE, ENOMEM, NULL, "out of memory");
  if (!take_all(unpacking, bytes, size) || !skip(unpacking, padding(size))) return false;
  struct tar_problem problem = {0, NULL};
  if (header->type == TAR_PAX) problem = tar_pax_parse(bytes, size, &unpacking->meta);
  else if (header->type == TAR_GNU_LONG_NAME) problem = tar_gnu_name(bytes, size, &unpacking->meta.path);
  else if (header->type == TAR_GNU_LONG_LINK) problem = tar_gnu_name(bytes, size, &unpacking->meta.link);
  else {
    /* A global header may carry comments and defaults, but one name or size for all entries is a trick. */
    struct tar_meta global = {0};
    problem = tar_pax_parse(bytes, size, &global);
    if (problem.code == 0 && (global.path != NULL || global.link != NULL || global.has_size)) {
      problem = (struct tar_problem){ERR_UNSAFE, "a global header names a path or a size"};
    }
    tar_meta_free(&global);
  }
  return problem.code == 0 || problem_fail(unpacking, problem);
}

static bool take_content(struct unpacking *unpacking, int fd, uint64_t size, const char *path) {
  while (size > 0) {
    const uint8_t *bytes;
    size_t got = take(unpacking, size < TAR_META_BYTES_MAX ? (size_t)size : TAR_META_BYTES_MAX, &bytes);
    if (got == 0) return truncated(unpacking);
    size -= got;
    if (!write_full(fd, bytes, got)) return place_fail_errno(&unpacking->place, errno, path);
  }
  return true;
}

static bool take_file(struct unpacking *unpacking, const struct placed *entry) {
  struct place *place = &unpacking->place;
  if (entry->size > unpacking->bytes_max - unpacking->bytes) {
    return place_fail(place, ERR_TOO_LARGE, 0, entry->path, "the unpacked archive exceeds the byte limit");
  }
  unpacking->bytes += entry->size;
  int parent_fd;
  const char *base;
  /* The new file is removed if the worker is terminated, but not what had its name before. */
  termination_defer();
  cleanup_fd int fd = place_file(place, entry, &parent_fd, &base);
  if (fd >= 0) temporary_set(parent_fd, base);
  termination_allow();
  if (fd < 0) return false;
  bool whole = take_content(unpacking, fd, entry->size, entry->path) && skip(unpacking, padding(entry->size));
  if (!whole) unlinkat(parent_fd, base, 0);
  temporary_clear();
  return whole && place_finish_file(place, entry, fd);
}

/* Combines the header and the extended headers into an entry. Returns false if the entry is refused. */
static bool describe(struct unpacking *unpacking, const struct tar_header *header, struct placed *entry, bool *left_out) {
  const struct tar_meta *meta = &unpacking->meta;
  const char *name = meta->path != NULL ? meta->path : header->name;
  const char *link = meta->link != NULL ? meta->link : header->link;
  *entry = (struct placed){
      .type = header->type,
      .mode = header->mode & 0777,
      .size = meta->has_size ? meta->size : header->size,
      .uid = meta->has_uid ? meta->uid : header->uid,
      .gid = meta->has_gid ? meta->gid : header->gid,
      .modified = {.tv_sec = meta->has_modified ? meta->modified : header->modified, .tv_nsec = meta->has_modified ? meta->modified_ns : 0},
  };
  if (entry->type == TAR_FILE_OLD || entry->type == TAR_FILE_CONTIGUOUS) entry->type = TAR_FILE;
  size_t length = strlen(name);
  /* Writers older than ustar marked folders only by a trailing slash. */
  if (entry->type == TAR_FILE && length > 0 && name[length - 1] == '/') entry->type = TAR_FOLDER;
  if (entry->type != TAR_FILE && entry->size != 0) {
    /* Readers disagree on whether content follows, so one archive could show two of them different things. */
    return place_fail(&unpacking->place, ERR_INVALID, 0, name, "only a file has content");
  }
  if (unpacking->place.keep_owner && (entry->uid >= UINT32_MAX || entry->gid >= UINT32_MAX)) {
    return place_fail(&unpacking->place, ERR_INVALID, 0, name, "the owner is not a valid id");
  }
  if (length == 0) return place_fail(&unpacking->place, ERR_INVALID, 0, NULL, "an entry has no name");
  if (!place_name(&unpacking->place, name, entry->path, left_out) || *left_out) return !unpacking->place.problem.code;
  if (entry->type == TAR_HARD_LINK) return place_name(&unpacking->place, link, entry->link, left_out);
  if (entry->type != TAR_SYMBOLIC_LINK) return true;
  if (link[0] == 0) return place_fail(&unpacking->place, ERR_INVALID, 0, name, "the link has no target");
  snprintf(entry->link, sizeof entry->link, "%s", link);
  return true;
}

static bool take_entry(struct unpacking *unpacking, const struct tar_header *header) {
  struct place *place = &unpacking->place;
  struct placed entry;
  bool left_out = false;
  if (++unpacking->entries > unpacking->entries_max) return place_fail(place, ERR_TOO_LARGE, 0, NULL, "the archive exceeds the entry limit");
  if (!describe(unpacking, header, &entry, &left_out)) return false;
  tar_meta_free(&unpacking->meta);
  if (left_out) return skip(unpacking, entry.size) && skip(unpacking, padding(entry.size));
  switch (entry.type) {
    case TAR_FILE: return take_file(unpacking, &entry);
    case TAR_FOLDER: return place_folder(place, &entry);
    case TAR_SYMBOLIC_LINK: return place_symbolic_link(place, &entry);
    case TAR_HARD_LINK: return place_hard_link(place, &entry);
    default: return place_fail(place, ERR_UNSUPPORTED, 0, entry.path, "the entry has an unknown type");
  }
}

static bool take_header(struct unpacking *unpacking, const uint8_t block[TAR_BLOCK]) {
  struct tar_header header;
  struct tar_problem problem = tar_header_parse(block, &header);
  if (problem.code) return problem_fail(unpacking, problem);
  struct place *place = &unpacking->place;
  switch (header.type) {
    case TAR_PAX:
    case TAR_PAX_GLOBAL:
    case TAR_GNU_LONG_NAME:
    case TAR_GNU_LONG_LINK: return take_description(unpacking, &header);
    case TAR_GNU_VOLUME: return header.size == 0 || place_fail(place, ERR_INVALID, 0, NULL, "a volume label has content");
    case TAR_GNU_SPARSE: return place_fail(place, ERR_UNSUPPORTED, 0, header.name, "sparse entries are not supported");
    case TAR_CHARACTER_DEVICE:
    case TAR_BLOCK_DEVICE: return place_fail(place, ERR_UNSAFE, 0, header.name, "the archive contains a device");
    case TAR_FIFO: return place_fail(place, ERR_UNSAFE, 0, header.name, "the archive contains a FIFO");
    default: return take_entry(unpacking, &header);
  }
}

static bool unpack(struct unpacking *unpacking) {
  uint8_t block[TAR_BLOCK];
  for (;;) {
    if (!take_all(unpacking, block, sizeof block)) return false;
    if (tar_block_is_zero(block)) break;
    if (!take_header(unpacking, block)) return false;
  }
  /* Padding may follow the end; it is read and ignored. */
  const uint8_t *rest;
  while (take(unpacking, TAR_META_BYTES_MAX, &rest) > 0) {}
  return !unpacking->broken && place_finish(&unpacking->place);
}

void do_tar_in(struct worker *worker, const struct request *request) {
  struct unpacking unpacking = {.worker = worker};
  uint64_t strip, keep_owner;
  cleanup_free char *folder = request_path(worker, request, TAG_TAR_IN_FOLDER, "unpack into");
  if (folder == NULL || !request_number(worker, request, TAG_TAR_IN_BYTES_MAX, 0, &unpacking.bytes_max)) return;
  if (!request_number(worker, request, TAG_TAR_IN_ENTRIES_MAX, 0, &unpacking.entries_max) || !request_number(worker, request, TAG_TAR_IN_STRIP_COMPONENTS, 0, &strip)) return;
  if (!request_number(worker, request, TAG_TAR_IN_KEEP_OWNER, 0, &keep_owner)) return;
  if (unpacking.bytes_max == 0) unpacking.bytes_max = INT64_MAX;
  if (unpacking.entries_max == 0 || unpacking.entries_max > TAR_ENTRIES_DEFAULT) unpacking.entries_max = TAR_ENTRIES_DEFAULT;
  if (strip > TAR_STRIP_MAX) strip = TAR_STRIP_MAX;
  if (keep_owner && file_uid() != 0) {
    answer_error(worker, ERR_DENIED, EPERM, "unpack into", folder, "only root can keep owners");
    return;
  }
  int error = place_open(&unpacking.place, folder, (unsigned)strip, keep_owner != 0);
  bool done = error == 0 && unpack(&unpacking);
  tar_meta_free(&unpacking.meta);
  place_close(&unpacking.place);
  const struct place_problem *problem = &unpacking.place.problem;
  if (unpacking.broken) return;
  if (error) answer_errno(worker, error, "unpack into", folder);
  else if (!done) answer_error(worker, problem->code, problem->error, "unpack", problem->path, problem->reason);
  else {
    frame_begin(&worker->out, FRAME_OK, worker->stream);
    frame_field_u64(&worker->out, TAG_UNPACKED_ENTRIES, unpacking.entries);
    frame_field_u64(&worker->out, TAG_UNPACKED_BYTES, unpacking.bytes);
    worker_queue(worker);
  }
}
