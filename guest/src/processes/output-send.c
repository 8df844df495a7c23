/* Sends the output of processes to the attached client. */
#include "processes/process.h"
#include "processes/processes.h"
#include "wire/tags.h"

enum {
  /*
   * The bytes of output in one frame: enough that frames are cheap, and few enough that the remainder is cheap to copy
   * if the socket is full.
   */
  CHUNK = 131072,
  COPIED_CHUNK = 8192,
  SEND_BUDGET = 1048576,
};

void output_want_send(struct process *process) {
  struct stream *stream = process->stream;
  if (stream && process->state != PROCESS_STARTING) stream_want_send(stream);
}

static void send_ended(struct process *process) {
  struct stream *stream = process->stream;
  struct frame_writer *out = &stream->connection->out;
  frame_begin(out, FRAME_ENDED, stream->id);
  frame_field_u64(out, TAG_ENDED_KIND, process->kind);
  frame_field_u64(out, TAG_ENDED_EXIT_CODE, (uint64_t)process->exit_code);
  frame_field_u64(out, TAG_ENDED_SIGNAL, (uint64_t)process->exit_signal);
  frame_field_u64(out, TAG_ENDED_STDOUT_BYTES, process->outputs[0].ring.end);
  frame_field_u64(out, TAG_ENDED_STDERR_BYTES, process->outputs[1].ring.end);
  frame_field_u64(out, TAG_ENDED_DURATION_MS, process->ended_at - process->started_at);
  frame_field_u64(out, TAG_ENDED_MEMORY_KILLS, process->oom_kills);
  frame_end(out);
  stream_close(stream);
  /* Otherwise the stream remains for ACKs in transit. */
  if (output_taken(process)) process_detach(process);
}

static void send_chunk(struct connection *connection, struct output *output, uint32_t stream, uint8_t number, size_t count) {
  uint8_t head[FRAME_HEADER_BYTES + OUTPUT_HEADER];
  frame_header_encode(head, FRAME_OUTPUT, stream, (uint32_t)(OUTPUT_HEADER + count));
  head[FRAME_HEADER_BYTES] = number;
  put_u64(head + FRAME_HEADER_BYTES + 1, output->cursor);
  struct iovec parts[3] = {{head, sizeof head}};
  int views = ring_view(&output->ring, output->cursor, count, parts + 1);
  output->cursor += count;
  if (count > COPIED_CHUNK) {
    connection_send(connection, parts, 1 + views);
    return;
  }
  frame_begin(&connection->out, FRAME_OUTPUT, stream);
  frame_raw(&connection->out, head + FRAME_HEADER_BYTES, OUTPUT_HEADER);
  for (int i = 1; i <= views; i++) frame_raw(&connection->out, parts[i].iov_base, parts[i].iov_len);
  frame_end(&connection->out);
}

bool output_pump(struct process *process) {
  struct stream *stream = process->stream;
  if (stream == NULL || stream->closed) return true;
  struct connection *connection = stream->connection;
  size_t budget = SEND_BUDGET;
  for (int i = 0; i < 2; i++) {
    struct output *output = &process->outputs[i];
    while (output->cursor < output->ring.end) {
      if (budget == 0 || connection_queued(connection) >= CHUNK || connection->dead) return false;
      size_t count = (size_t)(output->ring.end - output->cursor);
      if (count > CHUNK) count = CHUNK;
      send_chunk(connection, output, stream->id, (uint8_t)(i + 1), count);
      budget -= count < budget ? count : budget;
    }
  }
  if (process->state == PROCESS_ENDED) send_ended(process);
  return true;
}
