/*
 * Bytes of a stream from offset `start` to `end`, kept until they are dropped. Memory comes on demand, doubling from 4
 * KiB to the bound, and goes when the ring is empty and idle.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { RING_FIRST_BYTES = 4096 };

struct ring {
  uint8_t *data;
  size_t capacity;
  uint64_t start; /* offset of the first byte kept */
  uint64_t end;   /* offset after the last byte kept */
};

/* How many bytes may still be added under `bound`. */
static inline size_t ring_room(const struct ring *ring, size_t bound) {
  size_t held = (size_t)(ring->end - ring->start);
  return held >= bound ? 0 : bound - held;
}

/*
 * Up to two free segments, together at most `most` bytes; grows towards `bound` first when full. 0 when there is no
 * memory.
 */
int ring_space(struct ring *ring, size_t bound, size_t most, struct iovec out[2]);
/* `count` bytes were put into the space. */
void ring_added(struct ring *ring, size_t count);
/* Up to two segments that hold the bytes from `offset` on, together at most `most`. */
int ring_view(const struct ring *ring, uint64_t offset, size_t most, struct iovec out[2]);
/* `count` bytes passed by without being kept; only while the ring is empty. */
static inline void ring_pass(struct ring *ring, size_t count) {
  ring->end += count;
  ring->start = ring->end;
}
bool ring_add(struct ring *ring, size_t bound, const void *bytes, size_t count);
void ring_drop(struct ring *ring, uint64_t before);
void ring_free(struct ring *ring);

/* The memory all rings hold now; bounded by RINGS_TOTAL, past which rings stop growing. */
enum { RINGS_TOTAL = 64 * 1024 * 1024 };
size_t rings_held(void);
