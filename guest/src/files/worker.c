#include "files/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

static volatile sig_atomic_t termination_deferred;
static volatile sig_atomic_t termination_noted;
static volatile sig_atomic_t temporary_folder = -1;
static char temporary_base[256];

static void terminate(void) {
  if (temporary_folder >= 0) unlinkat(temporary_folder, temporary_base, 0);
  _exit(128 + SIGTERM);
}

static void on_termination(int signal_number) {
  (void)signal_number;
  if (termination_deferred) termination_noted = 1;
  else terminate();
}

void temporary_set(int folder_fd, const char *name) {
  temporary_folder = -1;
  atomic_signal_fence(memory_order_seq_cst);
  snprintf(temporary_base, sizeof temporary_base, "%s", name);
  atomic_signal_fence(memory_order_seq_cst);
  temporary_folder = folder_fd;
}

void temporary_clear(void) { temporary_folder = -1; }
void termination_defer(void) { termination_deferred = 1; }
bool termination_wanted(void) { return termination_noted != 0; }
void termination_allow(void) {
  termination_deferred = 0;
  if (termination_noted) terminate();
}

void temporary_name(char name[TEMPORARY_NAME_BYTES]) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = now_ms() * 0x9E3779B97F4A7C15u ^ (uint64_t)getpid();
  snprintf(name, TEMPORARY_NAME_BYTES, ".caisson-%016llx", (unsigned long long)random);
}

static void handle_signals(void) {
  struct sigaction action = {.sa_handler = on_termination, .sa_flags = SA_RESTART};
  sigfillset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGHUP, &action, NULL);
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigaction(SIGPIPE, &ignore, NULL);
  /* Past a file size limit a write must fail with EFBIG, not kill the worker. */
  sigaction(SIGXFSZ, &ignore, NULL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static void *map_buffer(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die_errno("file worker: cannot map a buffer of %zu bytes", bytes);
  return memory;
}

/* An idle worker must not keep the pages of its last large transfer. */
static void give_memory_back(struct worker *worker) {
  if (!worker->used_much || worker->input_start != worker->input_end) return;
  worker->used_much = false;
  madvise(worker->input, WORKER_INPUT_BYTES, MADV_DONTNEED);
  madvise(worker->data, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX, MADV_DONTNEED);
}

typedef void request_handler(struct worker *worker, const struct request *request);

static request_handler *handler_of(uint8_t type) {
  switch (type) {
    case FRAME_STAT: return do_stat;
    case FRAME_LISTDIR: return do_listdir;
    case FRAME_MKDIR: return do_mkdir;
    case FRAME_MOVE: return do_move;
    case FRAME_REMOVE: return do_remove;
    case FRAME_READ: return do_read;
    case FRAME_WRITE: return do_write;
    case FRAME_WATCH: return do_watch;
    case FRAME_TAR_IN: return do_tar_in;
    case FRAME_TAR_OUT: return do_tar_out;
    default: return NULL;
  }
}

static void serve(struct worker *worker, request_handler *handler, const struct request *request) {
  worker->stream = request->stream;
  worker->send_window = STREAM_WINDOW;
  worker->uncredited = 0;
  worker->entries_since_check = 0;
  worker->cancelled = false;
  if (!fields_valid(request->payload, request->length)) {
    answer_error(worker, ERR_INVALID, 0, "request", NULL, "a field runs past the frame");
    return;
  }
  handler(worker, request);
  if (worker->cancelled) answer_error(worker, ERR_GONE, ECANCELED, "request", NULL, "cancelled");
}

int worker_main(int in_fd, int out_fd) {
  struct worker worker = {.in_fd = in_fd, .out_fd = out_fd};
  handle_signals();
  umask(0);
  /* Pipes are made as large as the window if that is allowed; a refusal only costs speed. */
  fcntl(in_fd, F_SETPIPE_SZ, STREAM_WINDOW);
  fcntl(out_fd, F_SETPIPE_SZ, STREAM_WINDOW);
  worker.input = map_buffer(WORKER_INPUT_BYTES);
  worker.data = map_buffer(FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
  struct frame_header header;
  const uint8_t *payload;
  int got;
  while ((got = worker_next_frame(&worker, &header, &payload, true)) == 1) {
    request_handler *handler = handler_of(header.type);
    if (handler != NULL) {
      serve(&worker, handler, &(struct request){header.type, header.stream, payload, header.length});
      if (worker.input_closed) break;
      give_memory_back(&worker);
      continue;
    }
    /* Late frames of a stream that has just closed. */
    if (header.type == FRAME_DATA || header.type == FRAME_END || header.type == FRAME_CREDIT || header.type == FRAME_CANCEL) continue;
    got = -1;
    break;
  }
  worker_flush(&worker);
  frame_writer_free(&worker.out);
  munmap(worker.input, WORKER_INPUT_BYTES);
  munmap(worker.data, FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
  return got < 0 ? 1 : 0;
}
