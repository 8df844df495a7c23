/*
 * Fences serialize the drivers of the same work. A driver that takes over names the work and a number that grows with
 * each holder. The guest then closes the connections of earlier holders and ends their file requests before the new
 * holder may begin, so a driver that was suspended can no longer write.
 */
#include <string.h>

#include "files/file-requests.h"
#include "files/files.h"
#include "wire/tags.h"

enum { FENCES_MAX = 64, FENCE_NAME_MAX = 64 };

struct fence {
  struct fence *next;
  char name[FENCE_NAME_MAX + 1];
  uint64_t epoch;
};

static struct fence *fence_named(struct guest *guest, const struct field *name) {
  size_t count = 0;
  for (struct fence *f = guest->fences; f; f = f->next, count++) {
    if (strlen(f->name) == name->length && memcmp(f->name, name->data, name->length) == 0) return f;
  }
  struct fence *fence = count < FENCES_MAX ? calloc(1, sizeof *fence) : NULL;
  if (fence == NULL) return NULL;
  memcpy(fence->name, name->data, name->length);
  fence->next = guest->fences;
  guest->fences = fence;
  return fence;
}

static bool work_ends(const struct guest *guest) {
  for (const struct file_worker *w = guest->file_requests ? guest->file_requests->workers : NULL; w; w = w->next) {
    if (w->dismissed) return true;
  }
  return false;
}

void fence_check(struct guest *guest) {
  if (work_ends(guest)) return;
  for (struct connection *c = guest->connections; c; c = c->next) {
    struct stream *stream = c->fence_stream;
    if (stream == NULL) continue;
    c->fence_stream = NULL;
    reply_ok(c, stream->id);
    stream_remove(stream);
  }
}

static void fence_stream_removed(struct stream *stream) {
  if (stream->connection->fence_stream == stream) stream->connection->fence_stream = NULL;
}

/* The stream of a new holder that waits for the file requests of earlier ones to end. */
static const struct stream_kind fence_stream = {.cancel = stream_remove, .removed = fence_stream_removed};

bool request_fence(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  struct field name;
  uint64_t epoch;
  if (!field_find_u64(payload, header->length, TAG_FENCE_EPOCH, 0, &epoch)) return false;
  bool good = field_find(payload, header->length, TAG_FENCE_NAME, &name) && name.length > 0 && name.length <= FENCE_NAME_MAX && memchr(name.data, 0, name.length) == NULL;
  struct fence *fence = good ? fence_named(guest, &name) : NULL;
  if (fence == NULL || connection->fence_stream != NULL) {
    reply_error(connection, header->stream, good ? ERR_BUSY : ERR_INVALID, 0, good ? "too many fences" : "a fence name must have 1 to %d bytes", FENCE_NAME_MAX);
    return true;
  }
  if (epoch < fence->epoch) {
    reply_error(connection, header->stream, ERR_SUPERSEDED, 0, "a later holder works here");
    return true;
  }
  struct stream *stream = stream_open(connection, header->stream, &fence_stream, NULL);
  if (stream == NULL) return true;
  fence->epoch = epoch;
  connection->fence = fence;
  connection->fence_epoch = epoch;
  connection->fence_stream = stream;
  for (struct connection *c = guest->connections, *next; c; c = next) {
    next = c->next;
    if (c == connection || c->fence != fence || c->fence_epoch >= epoch) continue;
    connection_close_with(c, ERR_SUPERSEDED, "a later holder works here");
  }
  fence_check(guest);
  return true;
}
