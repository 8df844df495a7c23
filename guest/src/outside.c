#include "outside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/parked.h"
#include "connection/connection.h"
#include "spawner/order.h"

struct parking {
  int fds[OUTSIDE_MAX];
  size_t count;
};

static void add(struct parking *parking, int fd) {
  if (fd >= 0 && parking->count < OUTSIDE_MAX) parking->fds[parking->count++] = fd;
}

static int take(struct parking *parking, size_t *next) { return *next < parking->count ? parking->fds[(*next)++] : -1; }

static void take_base(struct guest *guest, const struct outside_message *message, struct parking *parking, size_t *next) {
  guest->listener.fd = take(parking, next);
  guest->token_fd = take(parking, next);
  guest->oom_fd = message->has_oom ? take(parking, next) : -1;
  guest->work_fd_count = message->work_count;
  for (size_t i = 0; i < guest->work_fd_count; i++) guest->work_fds[i] = take(parking, next);
  fcntl(guest->listener.fd, F_SETFL, O_NONBLOCK);
}

static bool exchange(struct guest *guest, struct outside_message *message, struct parking *parking) {
  if (!message_send(guest->reaper_fd, message, sizeof *message, NULL, 0, parking->fds, parking->count, 0)) return false;
  for (size_t i = 0; i < parking->count; i++) close(parking->fds[i]);
  prctl(PR_SET_NAME, PARKED_NAME, 0, 0, 0);
  parking->count = OUTSIDE_MAX;
  return message_receive(guest->reaper_fd, message, sizeof *message, NULL, 0, parking->fds, &parking->count, 0) == sizeof *message;
}

void outside_park(struct guest *guest) {
  struct parking parking = {0};
  struct outside_message message = {.kind = OUTSIDE_PARKED, .has_oom = guest->oom_fd >= 0, .work_count = (uint8_t)guest->work_fd_count};
  uint32_t watched[CONNECTIONS_MAX];
  size_t connections = 0;
  source_watch(&guest->loop, &guest->listener, 0);
  add(&parking, guest->listener.fd);
  add(&parking, guest->token_fd);
  add(&parking, guest->oom_fd);
  for (size_t i = 0; i < guest->work_fd_count; i++) add(&parking, guest->work_fds[i]);
  for (struct connection *c = guest->connections; c; c = c->next) {
    if (c->source.fd < 0) continue;
    watched[connections++] = c->source.events;
    source_watch(&guest->loop, &c->source, 0);
    add(&parking, c->source.fd);
  }
  /* Without process 1, nothing here could continue. */
  if (!exchange(guest, &message, &parking)) die("process 1 does not answer");
  prctl(PR_SET_NAME, GUEST_NAME, 0, 0, 0);
  size_t next = 0, seen = 0;
  take_base(guest, &message, &parking, &next);
  source_watch(&guest->loop, &guest->listener, EPOLLIN);
  for (struct connection *c = guest->connections, *following; c; c = following) {
    following = c->next;
    if (c->source.fd < 0) continue;
    uint32_t events = watched[seen++];
    c->source.fd = message.kind == OUTSIDE_PARKED ? take(&parking, &next) : -1;
    if (c->source.fd < 0) connection_close(c);
    else source_watch(&guest->loop, &c->source, events);
  }
}
