#include "base/ring.h"

#include <stdlib.h>
#include <string.h>

/* The only state outside struct guest: a total that all rings share. */
static size_t held_in_all;

size_t rings_held(void) { return held_in_all; }

static int segments(const struct ring *ring, uint64_t offset, size_t count, struct iovec out[2]) {
  if (count == 0) return 0;
  /* The capacity is a power of two, so an offset alone determines its place in memory. */
  size_t place = (size_t)(offset & (ring->capacity - 1));
  size_t first = ring->capacity - place;
  if (first > count) first = count;
  out[0] = (struct iovec){ring->data + place, first};
  if (first == count) return 1;
  out[1] = (struct iovec){ring->data, count - first};
  return 2;
}

/* `accounted`: stay under RINGS_TOTAL. Bytes within a window that the host was granted must always be accepted. */
static bool grow(struct ring *ring, size_t bound, bool accounted) {
  size_t capacity = ring->capacity ? ring->capacity * 2 : RING_FIRST_BYTES;
  if (capacity > bound) return false;
  /* The first page is always granted: every process must be able to make progress. */
  if (accounted && ring->capacity != 0 && held_in_all + capacity > RINGS_TOTAL) return false;
  struct ring grown = {.data = malloc(capacity), .capacity = capacity, .start = ring->start, .end = ring->end};
  if (grown.data == NULL) return false;
  struct iovec from[2], to[2];
  size_t count = (size_t)(ring->end - ring->start);
  int from_count = segments(ring, ring->start, count, from);
  uint64_t offset = ring->start;
  for (int i = 0; i < from_count; i++) {
    int to_count = segments(&grown, offset, from[i].iov_len, to);
    const uint8_t *bytes = from[i].iov_base;
    for (int k = 0; k < to_count; k++) {
      memcpy(to[k].iov_base, bytes, to[k].iov_len);
      bytes += to[k].iov_len;
    }
    offset += from[i].iov_len;
  }
  free(ring->data);
  held_in_all += capacity - ring->capacity;
  *ring = grown;
  return true;
}

int ring_space(struct ring *ring, size_t bound, size_t most, struct iovec out[2]) {
  size_t held = (size_t)(ring->end - ring->start);
  if (held == ring->capacity) grow(ring, bound, true);
  size_t room = ring->capacity - held;
  return segments(ring, ring->end, room < most ? room : most, out);
}

void ring_added(struct ring *ring, size_t count) { ring->end += count; }

int ring_view(const struct ring *ring, uint64_t offset, size_t most, struct iovec out[2]) {
  size_t count = (size_t)(ring->end - offset);
  return segments(ring, offset, count < most ? count : most, out);
}

bool ring_add(struct ring *ring, size_t bound, const void *bytes, size_t count) {
  if (count > ring_room(ring, bound)) return false;
  while (count > ring->capacity - (size_t)(ring->end - ring->start)) {
    if (!grow(ring, bound, false)) return false;
  }
  struct iovec space[2];
  int parts = ring_space(ring, bound, count, space);
  const uint8_t *from = bytes;
  for (int i = 0; i < parts; i++) {
    memcpy(space[i].iov_base, from, space[i].iov_len);
    from += space[i].iov_len;
  }
  ring_added(ring, count);
  return true;
}

void ring_drop(struct ring *ring, uint64_t before) {
  if (before > ring->end) before = ring->end;
  if (before > ring->start) ring->start = before;
}

void ring_free(struct ring *ring) {
  held_in_all -= ring->capacity;
  free(ring->data);
  ring->data = NULL;
  ring->capacity = 0;
}
