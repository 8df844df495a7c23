/* One epoll loop: descriptors, timers, and memory that is freed only when no pending event can point into it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

struct source {
  int fd;
  uint32_t events; /* the events that epoll watches; 0 if the descriptor is not registered */
  void (*ready)(struct source *source, uint32_t events);
};

struct timer {
  uint64_t at;
  size_t place; /* position in the heap plus one; 0 if not set */
  void (*fire)(struct timer *timer);
};

struct loop {
  int epoll;
  struct timer **timers;
  size_t timer_count, timer_capacity;
  void **garbage;
  size_t garbage_count, garbage_capacity;
  uint64_t now;
  uint64_t late; /* the longest delay of a timer since the last heartbeat */
};

void loop_open(struct loop *loop);
/* Runs one turn: waits, handles ready descriptors and due timers, then frees the garbage. */
void loop_turn(struct loop *loop, bool may_wait);
/* Frees the memory at the end of the turn. */
void loop_free_later(struct loop *loop, void *memory);

void source_open(struct source *source, int fd, void (*ready)(struct source *, uint32_t));
/*
 * Removes the descriptor from epoll if `events` is 0: a hung-up one would otherwise wake the loop endlessly. Returns
 * false if epoll refuses it.
 */
bool source_watch(struct loop *loop, struct source *source, uint32_t events);
void source_close(struct loop *loop, struct source *source);

void timer_set(struct loop *loop, struct timer *timer, uint64_t at);
void timer_clear(struct loop *loop, struct timer *timer);
