/* Answers the clients of a served port while no process serves it. */
#include <errno.h>
#include <sys/socket.h>

#include "ports/ports.h"
#include "ports/serve.h"

enum {
  /* How long, and for how many bytes, a refused client may still send before its connection is closed. */
  REFUSAL_MS = 1000,
  REFUSAL_BYTES = 1048576,
};

#define REFUSAL_BODY "No process on the host serves this sandbox's network now.\n"
#define TEXT(number) #number
#define NUMBER_TEXT(number) TEXT(number)
#define REFUSAL_BODY_BYTES 58
static const char refusal_text[] =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "content-type: text/plain\r\n"
    "content-length: " NUMBER_TEXT(REFUSAL_BODY_BYTES) "\r\n"
    "connection: close\r\n"
    "\r\n" REFUSAL_BODY;
_Static_assert(sizeof REFUSAL_BODY - 1 == REFUSAL_BODY_BYTES, "content-length");

/* A client that connected while there was no server. */
struct refusal {
  struct guest *guest;
  struct source source;
  struct timer timer;
  size_t taken;
};

static void refusal_end(struct refusal *refusal) {
  struct guest *guest = refusal->guest;
  timer_clear(&guest->loop, &refusal->timer);
  source_close(&guest->loop, &refusal->source);
  loop_free_later(&guest->loop, refusal);
  serve_slot_freed(guest);
}

static void refusal_expired(struct timer *timer) { refusal_end(container_of(timer, struct refusal, timer)); }

static void refusal_ready(struct source *source, uint32_t events) {
  (void)events;
  struct refusal *refusal = container_of(source, struct refusal, source);
  uint8_t ignored[16384];
  ssize_t got = recv(source->fd, ignored, sizeof ignored, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  refusal->taken += got > 0 ? (size_t)got : 0;
  if (got <= 0 || refusal->taken >= REFUSAL_BYTES) refusal_end(refusal);
}

/* Waits before closing: closing with unread bytes would reset the connection, and the answer would be lost. */
void refuse(struct guest *guest, int fd) {
  struct refusal *refusal = calloc(1, sizeof *refusal);
  if (refusal == NULL || send(fd, refusal_text, sizeof refusal_text - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 || shutdown(fd, SHUT_WR) < 0) {
    free(refusal);
    close(fd);
    return;
  }
  refusal->guest = guest;
  refusal->timer.fire = refusal_expired;
  source_open(&refusal->source, fd, refusal_ready);
  source_watch(&guest->loop, &refusal->source, EPOLLIN);
  timer_set(&guest->loop, &refusal->timer, guest->loop.now + REFUSAL_MS);
  guest->ports->accepted_count++;
}
