/* One epoll loop: descriptors, timers, and memory that is freed only when no pending event can point into it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

struct source {
  int fd;
  uint32_t events; /* what epoll watches now; 0 means it is not registered at all */
  void (*ready)(struct source *source, uint32_t events);
};

struct timer {
  uint64_t at;
  size_t place; /* position in the heap plus one; 0 when not set */
  void (*fire)(struct timer *timer);
};

struct loop {
  int epoll;
  struct timer **timers;
  size_t timer_count, timer_capacity;
  void **garbage;
  size_t garbage_count, garbage_capacity;
  uint64_t now;
  uint64_t late; /* the worst delay of a timer since the last heartbeat */
};

void loop_open(struct loop *loop);
/* One turn: waits, then calls what is ready and what is due. Garbage is freed at the end. */
void loop_turn(struct loop *loop, bool may_wait);
/* Frees at the end of the turn. */
void loop_free_later(struct loop *loop, void *memory);

void source_open(struct source *source, int fd, void (*ready)(struct source *, uint32_t));
/*
 * 0 takes it out of the set: a hung-up descriptor would otherwise wake the loop for ever. False when epoll refuses it.
 */
bool source_watch(struct loop *loop, struct source *source, uint32_t events);
void source_close(struct loop *loop, struct source *source);

void timer_set(struct loop *loop, struct timer *timer, uint64_t at);
void timer_clear(struct loop *loop, struct timer *timer);
