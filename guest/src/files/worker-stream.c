/* Frames to and from the worker: reading ahead, gathering answers, windows and cancellation. */
#include "files/worker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static bool wait_for(int fd, short events) {
  struct pollfd ready = {.fd = fd, .events = events};
  int got;
  do got = poll(&ready, 1, -1);
  while (got < 0 && errno == EINTR);
  return got > 0;
}

/* Sends all bytes. If there is no reader, ends the worker as SIGTERM would, so nothing unfinished remains. */
static bool send_bytes(struct worker *worker, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t put = write(worker->out_fd, bytes, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN && wait_for(worker->out_fd, POLLOUT)) continue;
    if (put < 0) {
      worker->input_closed = true;
      worker->cancelled = true;
      return false;
    }
    bytes += put;
    length -= (size_t)put;
  }
  return true;
}

bool worker_flush(struct worker *worker) {
  size_t length = worker->out.length;
  if (length == 0) return true;
  worker->out.length = 0;
  return send_bytes(worker, worker->out.data, length);
}

void worker_queue(struct worker *worker) {
  if (!frame_end(&worker->out)) {
    worker->input_closed = true;
    worker->cancelled = true;
  }
  if (worker->out.length >= WORKER_GATHER_BYTES) worker_flush(worker);
}

/*
 * Reads what is available. Returns 1 if bytes arrived; 0 at end of file, on an error or, without `wait`, if no
 * bytes are available.
 */
static int fill(struct worker *worker, bool wait) {
  if (worker->input_closed) return 0;
  if (worker->input_start == worker->input_end) {
    worker->input_start = worker->input_end = 0;
  } else if (worker->input_end == WORKER_INPUT_BYTES || worker->input_start > WORKER_INPUT_BYTES / 2) {
    memmove(worker->input, worker->input + worker->input_start, worker->input_end - worker->input_start);
    worker->input_end -= worker->input_start;
    worker->input_start = 0;
  }
  if (worker->input_end == WORKER_INPUT_BYTES) return 0;
  for (;;) {
    if (!wait) {
      struct pollfd ready = {.fd = worker->in_fd, .events = POLLIN};
      if (poll(&ready, 1, 0) <= 0) return 0;
    }
    ssize_t got = read(worker->in_fd, worker->input + worker->input_end, WORKER_INPUT_BYTES - worker->input_end);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      if (wait && wait_for(worker->in_fd, POLLIN)) continue;
      if (!wait) return 0;
    }
    if (got <= 0) {
      worker->input_closed = true;
      return 0;
    }
    worker->input_end += (size_t)got;
    if (worker->input_end > WORKER_GATHER_BYTES) worker->used_much = true;
    return 1;
  }
}

/* Returns 1 if a whole frame is at `at`, 0 if it is incomplete, -1 for a protocol error. */
static int frame_at(const struct worker *worker, size_t at, struct frame_header *header) {
  size_t there = worker->input_end - at;
  if (there < FRAME_HEADER_BYTES) return 0;
  if (!frame_header_parse(worker->input + at, FROM_HOST, header)) return -1;
  return there - FRAME_HEADER_BYTES >= header->length ? 1 : 0;
}

int worker_next_frame(struct worker *worker, struct frame_header *header, const uint8_t **payload, bool wait) {
  for (;;) {
    int there = frame_at(worker, worker->input_start, header);
    if (there < 0) return -1;
    if (there > 0) {
      *payload = worker->input + worker->input_start + FRAME_HEADER_BYTES;
      worker->input_start += FRAME_HEADER_BYTES + header->length;
      return 1;
    }
    if (wait && !worker_flush(worker)) return 0;
    if (!fill(worker, wait)) return 0;
  }
}

static bool is_request(uint8_t type) { return type >= FRAME_STAT && type <= FRAME_TAR_OUT && type != FRAME_WATCH_EVENT; }

/*
 * Returns the type of the current stream's next frame, 0 if `wait` is false and no frame has arrived, or -1 if the
 * stream has ended. Applies CREDIT on the way.
 */
static int next_of_stream(struct worker *worker, const uint8_t **payload, size_t *length, bool wait) {
  struct frame_header header;
  int got = 0;
  while (!worker->cancelled && (got = worker_next_frame(worker, &header, payload, wait)) == 1) {
    if (header.stream != worker->stream) {
      if (!is_request(header.type)) continue;
      frame_error(&worker->out, header.stream, ERR_BUSY, EBUSY, "the file worker is busy with another request");
      continue;
    }
    *length = header.length;
    if (header.type == FRAME_CREDIT && header.length == 4) {
      uint64_t more = get_u32(*payload);
      worker->send_window = worker->send_window > UINT32_MAX ? worker->send_window : worker->send_window + more;
    } else if (header.type == FRAME_CANCEL) {
      worker->cancelled = true;
    }
    return header.type;
  }
  if (!wait && !worker->input_closed && got >= 0) return 0;
  if (!worker->cancelled) {
    worker->cancelled = true;
    worker->input_closed = true;
  }
  return -1;
}

int worker_receive(struct worker *worker, const uint8_t **bytes, size_t *length) {
  if (worker->uncredited >= CREDIT_STEP) {
    uint8_t credit[4];
    put_u32(credit, (uint32_t)worker->uncredited);
    worker->uncredited = 0;
    frame_begin(&worker->out, FRAME_CREDIT, worker->stream);
    frame_raw(&worker->out, credit, sizeof credit);
    worker_queue(worker);
    /* The host may be waiting for the credit even while there is input left. */
    if (!worker_flush(worker)) return -1;
  }
  for (;;) {
    int type = next_of_stream(worker, bytes, length, true);
    if (type < 0 || worker->cancelled) return -1;
    if (type == FRAME_END) return 0;
    if (type != FRAME_DATA || *length == 0) continue;
    worker->uncredited += *length;
    return 1;
  }
}

uint8_t *worker_data(struct worker *worker) { return worker->data + FRAME_HEADER_BYTES; }

ssize_t worker_data_room(struct worker *worker, uint64_t wanted) {
  const uint8_t *payload;
  size_t length;
  int type;
  /* Handle what has arrived first: a cancellation must not wait until the credit is used up. */
  do type = next_of_stream(worker, &payload, &length, false);
  while (type > 0 && !worker->cancelled);
  while (worker->send_window == 0 && !worker->cancelled) next_of_stream(worker, &payload, &length, true);
  if (worker->cancelled) return -1;
  uint64_t room = wanted < FRAME_PAYLOAD_MAX ? wanted : FRAME_PAYLOAD_MAX;
  return (ssize_t)(room < worker->send_window ? room : worker->send_window);
}

bool worker_data_send(struct worker *worker, size_t length) {
  worker->send_window -= length;
  if (length < WORKER_GATHER_BYTES / 4) {
    frame_begin(&worker->out, FRAME_DATA, worker->stream);
    frame_raw(&worker->out, worker_data(worker), length);
    worker_queue(worker);
    return !worker->cancelled;
  }
  worker->used_much = true;
  frame_header_encode(worker->data, FRAME_DATA, worker->stream, (uint32_t)length);
  return worker_flush(worker) && send_bytes(worker, worker->data, FRAME_HEADER_BYTES + length);
}

void worker_data_end(struct worker *worker) {
  frame_begin(&worker->out, FRAME_END, worker->stream);
  worker_queue(worker);
}

bool worker_cancelled_now(struct worker *worker) {
  worker->entries_since_check = 0;
  while (fill(worker, false)) {}
  if (worker->input_closed) {
    worker->cancelled = true;
    return true;
  }
  /* Only peeks: requests that were sent ahead stay in place. */
  struct frame_header header;
  size_t at = worker->input_start;
  while (frame_at(worker, at, &header) == 1) {
    if (header.type == FRAME_CANCEL && header.stream == worker->stream) {
      worker->cancelled = true;
      return true;
    }
    at += FRAME_HEADER_BYTES + header.length;
  }
  return false;
}

bool worker_cancelled(struct worker *worker) {
  if (worker->cancelled) return true;
  if (++worker->entries_since_check < CANCEL_CHECK_ENTRIES) return false;
  return worker_cancelled_now(worker);
}

bool worker_wait_with(struct worker *worker, int fd) {
  const uint8_t *payload;
  size_t length;
  for (;;) {
    int type;
    do type = next_of_stream(worker, &payload, &length, false);
    while (type > 0 && !worker->cancelled);
    if (worker->cancelled || !worker_flush(worker)) return false;
    struct pollfd ready[2] = {{.fd = worker->in_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return false;
    if (ready[1].revents != 0) return true;
  }
}
