/*
 * The file worker: a process of the guest that runs as the user of its requests and handles one request at a time.
 *
 * Guarantees to the guest's loop:
 * - Every request is closed by exactly one OK, ERROR or (READ, TAR_OUT) END on its stream, unless the process ends. A
 *   cancelled request is closed too, by ERROR `gone`, which tells the loop that the worker is free again; the host must
 *   not see that error.
 * - Frames for streams other than the current request's are ignored. A second request during a transfer of DATA gets
 *   ERROR `busy`, since the worker could not separate their DATA in time. Requests without DATA may be sent ahead.
 * - End of input, or SIGTERM, ends the worker; a half-written file leaves its old content and nothing else.
 * - A malformed frame ends the worker with status 1.
 */
#pragma once

#include "base/base.h"
#include "wire/frame.h"

#include <sys/stat.h>

enum {
  /* Two of the largest frames: one being processed, one arriving. */
  WORKER_INPUT_BYTES = 2 * (FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX),
  /* Answers are gathered up to this size before they are written. */
  WORKER_GATHER_BYTES = 65536,
  /* Credit is returned in steps: one small frame for each of the largest ones. */
  CREDIT_STEP = 262144,
  /* The longest path that an error message shows. */
  MESSAGE_PATH_BYTES = 512,
  /* The number of entries that are processed between checks for cancellation. */
  CANCEL_CHECK_ENTRIES = 256,
};

struct worker {
  int in_fd;
  int out_fd;
  uint8_t *input;
  size_t input_start;
  size_t input_end;
  bool input_closed;
  bool used_much;
  struct frame_writer out;
  /* Room for one DATA frame; its payload is filled in place. */
  uint8_t *data;
  uint32_t stream;
  uint64_t send_window;
  uint64_t uncredited;
  unsigned entries_since_check;
  bool cancelled;
};

/* The payload is valid until the next frame is read: copy what is needed first. */
struct request {
  uint8_t type;
  uint32_t stream;
  const uint8_t *payload;
  size_t length;
};

/*
 * Returns 1 with a frame, 0 without one (end of file, or nothing available and not `wait`), -1 for a protocol error.
 * Waiting flushes first.
 */
int worker_next_frame(struct worker *worker, struct frame_header *header, const uint8_t **payload, bool wait);
bool worker_flush(struct worker *worker);
/* Queues the frame that was built in `worker->out`. */
void worker_queue(struct worker *worker);

/* Read fields of a request. Each sends ERROR `invalid` and returns NULL or false if the field is not acceptable. */
char *request_path(struct worker *worker, const struct request *request, uint8_t tag, const char *verb);
bool request_number(struct worker *worker, const struct request *request, uint8_t tag, uint64_t fallback, uint64_t *out);

void answer_ok(struct worker *worker);
void answer_file(struct worker *worker, uint8_t type, const char *name, const struct stat *status, const char *link_target);
/* Sends "verb path: reason". A long path is shortened, and control characters are masked. */
void answer_error(struct worker *worker, enum error_code code, int error, const char *verb, const char *path, const char *reason);
void answer_errno(struct worker *worker, int error, const char *verb, const char *path);
enum error_code error_code_of(int error);

/*
 * Receives DATA from the host. Returns 1 with `bytes` valid until the next call, 0 for END, or -1 if cancelled or
 * broken (send no answer). Credit for a chunk is granted when the next one is requested.
 */
int worker_receive(struct worker *worker, const uint8_t **bytes, size_t *length);
/* Waits for credit to send DATA. Returns how many bytes of `worker_data` may be filled, or -1 (send no answer). */
ssize_t worker_data_room(struct worker *worker, uint64_t wanted);
uint8_t *worker_data(struct worker *worker);
bool worker_data_send(struct worker *worker, size_t length);
void worker_data_end(struct worker *worker);
/* Sends what is queued and waits until `fd` is readable. Returns false if the request must end without an answer. */
bool worker_wait_with(struct worker *worker, int fd);
/* Cheap: checks the input once in many calls. Returns true if the request must end without an answer. */
bool worker_cancelled(struct worker *worker);
bool worker_cancelled_now(struct worker *worker);

/* The file that SIGTERM removes before the process ends; it need not exist. */
void temporary_set(int folder_fd, const char *name);
void temporary_clear(void);
/* Defers SIGTERM: for work whose leftovers need more than one unlink, or have no name yet. */
void termination_defer(void);
void termination_allow(void);
bool termination_wanted(void);

enum { TEMPORARY_NAME_BYTES = 32 };
void temporary_name(char name[TEMPORARY_NAME_BYTES]);

/*
 * Like mkdir -p; returns 0 or an errno. The last folder gets `mode`, the others 0755. An existing folder is not an
 * error.
 */
int make_folders(const char *path, mode_t mode);
/*
 * Splits "/a/b" into an open folder and "b" (within `path`). Returns the descriptor, or -1; EINVAL for "/", "." and
 * "..".
 */
int open_parent(char *path, const char **base);

void do_stat(struct worker *worker, const struct request *request);
void do_listdir(struct worker *worker, const struct request *request);
void do_mkdir(struct worker *worker, const struct request *request);
void do_move(struct worker *worker, const struct request *request);
void do_remove(struct worker *worker, const struct request *request);
void do_read(struct worker *worker, const struct request *request);
void do_write(struct worker *worker, const struct request *request);
void do_watch(struct worker *worker, const struct request *request);
void do_tar_in(struct worker *worker, const struct request *request);
void do_tar_out(struct worker *worker, const struct request *request);
