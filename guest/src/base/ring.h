/*
 * The bytes of a stream from offset `start` to `end`, stored until they are dropped. Memory is allocated on demand,
 * doubling from 4 KiB to the bound, and freed when the ring is empty and idle.
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
  uint64_t start; /* offset of the first stored byte */
  uint64_t end;   /* offset after the last stored byte */
};

/* Returns how many more bytes fit under `bound`. */
static inline size_t ring_room(const struct ring *ring, size_t bound) {
  size_t held = (size_t)(ring->end - ring->start);
  return held >= bound ? 0 : bound - held;
}

/*
 * Returns up to two free segments of at most `most` bytes in total. A full ring first grows, up to `bound`. Returns 0
 * if there is no memory.
 */
int ring_space(struct ring *ring, size_t bound, size_t most, struct iovec out[2]);
/* Records that `count` bytes were written to that space. */
void ring_added(struct ring *ring, size_t count);
/* Returns up to two segments that hold the bytes from `offset` on, at most `most` in total. */
int ring_view(const struct ring *ring, uint64_t offset, size_t most, struct iovec out[2]);
/* Counts `count` bytes without storing them; only valid while the ring is empty. */
static inline void ring_pass(struct ring *ring, size_t count) {
  ring->end += count;
  ring->start = ring->end;
}
bool ring_add(struct ring *ring, size_t bound, const void *bytes, size_t count);
void ring_drop(struct ring *ring, uint64_t before);
void ring_free(struct ring *ring);

/* The memory that all rings hold. At RINGS_TOTAL they stop growing. */
enum { RINGS_TOTAL = 64 * 1024 * 1024 };
size_t rings_held(void);
