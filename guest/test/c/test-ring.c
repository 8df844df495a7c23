/* Compares the ring with a plain array: any mix of adding, dropping and reading gives the same bytes. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ring.h"

enum { BOUND = 65536, STEPS = 20000 };

static uint8_t byte_at(uint64_t offset) { return (uint8_t)(offset * 131 + (offset >> 8)); }

int main(void) {
  struct ring ring = {0};
  static uint8_t bytes[BOUND];
  srand(1);
  for (int step = 0; step < STEPS; step++) {
    size_t want = (size_t)(rand() % (step % 7 == 0 ? BOUND : 700));
    if (rand() % 2) {
      size_t room = ring_room(&ring, BOUND);
      for (size_t i = 0; i < want; i++) bytes[i] = byte_at(ring.end + i);
      assert(ring_add(&ring, BOUND, bytes, want) == (want <= room));
    } else if (rand() % 2) {
      struct iovec space[2];
      int parts = ring_space(&ring, BOUND, want, space);
      size_t filled = 0;
      for (int p = 0; p < parts; p++) {
        for (size_t i = 0; i < space[p].iov_len; i++) ((uint8_t *)space[p].iov_base)[i] = byte_at(ring.end + filled++);
      }
      assert(filled <= want);
      ring_added(&ring, filled);
    } else {
      ring_drop(&ring, ring.start + want);
    }
    assert(ring.end - ring.start <= ring.capacity && ring.capacity <= BOUND && ring.start <= ring.end);
    uint64_t from = ring.start + (ring.end > ring.start ? (uint64_t)rand() % (ring.end - ring.start) : 0), at = from;
    struct iovec view[2];
    int parts = ring_view(&ring, from, BOUND, view);
    for (int p = 0; p < parts; p++) {
      for (size_t i = 0; i < view[p].iov_len; i++) assert(((uint8_t *)view[p].iov_base)[i] == byte_at(at++));
    }
    assert(at == ring.end);
    if (ring.start == ring.end && rand() % 4 == 0) ring_free(&ring);
  }
  ring_free(&ring);
  assert(rings_held() == 0);
  printf("%d steps\n", STEPS);
  return 0;
}
