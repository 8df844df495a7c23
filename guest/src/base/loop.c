#include "base/loop.h"

#include <errno.h>

#include "base/base.h"

enum { EVENTS_PER_TURN = 64 };

void loop_open(struct loop *loop) {
  loop->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (loop->epoll < 0) die_errno("epoll_create1");
  loop->now = now_ms();
}

static void place(struct loop *loop, size_t at, struct timer *timer) {
  loop->timers[at] = timer;
  timer->place = at + 1;
}

static void sift_up(struct loop *loop, size_t at) {
  struct timer *timer = loop->timers[at];
  while (at > 0 && loop->timers[(at - 1) / 2]->at > timer->at) {
    place(loop, at, loop->timers[(at - 1) / 2]);
    at = (at - 1) / 2;
  }
  place(loop, at, timer);
}

static void sift_down(struct loop *loop, size_t at) {
  struct timer *timer = loop->timers[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= loop->timer_count) break;
    if (child + 1 < loop->timer_count && loop->timers[child + 1]->at < loop->timers[child]->at) child++;
    if (loop->timers[child]->at >= timer->at) break;
    place(loop, at, loop->timers[child]);
    at = child;
  }
  place(loop, at, timer);
}

void timer_set(struct loop *loop, struct timer *timer, uint64_t at) {
  timer_clear(loop, timer);
  if (loop->timer_count == loop->timer_capacity) {
    size_t capacity = loop->timer_capacity ? loop->timer_capacity * 2 : 16;
    struct timer **grown = realloc(loop->timers, capacity * sizeof *grown);
    /* Without timers the guest could keep none of its promises. The host notices the closed socket. */
    if (grown == NULL) die("out of memory for timers");
    loop->timers = grown;
    loop->timer_capacity = capacity;
  }
  /* "Now" plus a number from the host may have wrapped around; that means never, not immediately. */
  timer->at = at < loop->now ? UINT64_MAX : at;
  loop->timers[loop->timer_count++] = timer;
  sift_up(loop, loop->timer_count - 1);
}

void timer_clear(struct loop *loop, struct timer *timer) {
  if (timer->place == 0) return;
  size_t at = timer->place - 1;
  timer->place = 0;
  struct timer *last = loop->timers[--loop->timer_count];
  if (last == timer) return;
  place(loop, at, last);
  sift_up(loop, at);
  sift_down(loop, last->place - 1);
}

void source_open(struct source *source, int fd, void (*ready)(struct source *, uint32_t)) {
  *source = (struct source){.fd = fd, .ready = ready};
}

bool source_watch(struct loop *loop, struct source *source, uint32_t events) {
  if (source->fd < 0 || source->events == events) return true;
  int operation = events == 0 ? EPOLL_CTL_DEL : source->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (epoll_ctl(loop->epoll, operation, source->fd, &event) < 0) return false;
  source->events = events;
  return true;
}

void source_close(struct loop *loop, struct source *source) {
  if (source->fd < 0) return;
  /* Closing alone would leave the entry in the set while another process still holds the same open file. */
  source_watch(loop, source, 0);
  source->events = 0;
  close_fd(&source->fd);
}

void loop_free_later(struct loop *loop, void *memory) {
  if (loop->garbage_count == loop->garbage_capacity) {
    size_t capacity = loop->garbage_capacity ? loop->garbage_capacity * 2 : 16;
    void **grown = realloc(loop->garbage, capacity * sizeof *grown);
    if (grown == NULL) return; /* a small leak is better than a pointer into freed memory */
    loop->garbage = grown;
    loop->garbage_capacity = capacity;
  }
  loop->garbage[loop->garbage_count++] = memory;
}

static int wait_ms(const struct loop *loop) {
  if (loop->timer_count == 0) return -1;
  uint64_t now = now_ms(), at = loop->timers[0]->at;
  if (at <= now) return 0;
  return at - now > 60000 ? 60000 : (int)(at - now);
}

void loop_turn(struct loop *loop, bool may_wait) {
  struct epoll_event events[EVENTS_PER_TURN];
  int count = epoll_wait(loop->epoll, events, EVENTS_PER_TURN, may_wait ? wait_ms(loop) : 0);
  if (count < 0 && errno != EINTR) die_errno("epoll_wait");
  loop->now = now_ms();
  for (int i = 0; i < count; i++) {
    struct source *source = events[i].data.ptr;
    /* An earlier event of this turn may have closed or muted it. */
    if (source->fd >= 0 && source->events != 0) source->ready(source, events[i].events);
  }
  loop->now = now_ms();
  while (loop->timer_count > 0 && loop->timers[0]->at <= loop->now) {
    struct timer *timer = loop->timers[0];
    if (loop->now - timer->at > loop->late) loop->late = loop->now - timer->at;
    timer_clear(loop, timer);
    timer->fire(timer);
  }
  for (size_t i = 0; i < loop->garbage_count; i++) free(loop->garbage[i]);
  loop->garbage_count = 0;
}
