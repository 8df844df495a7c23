/* Routes each frame to its handler. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"

#include "files/files.h"
#include "ports/ports.h"
#include "processes/processes.h"
#include "wire/tags.h"

enum { TOKEN_BYTES_MAX = 4096 };

/* Compares every byte, so the time taken does not reveal where the first difference is. */
static bool same_bytes(const uint8_t *one, const char *other, size_t length) {
  uint8_t difference = 0;
  for (size_t i = 0; i < length; i++) difference |= (uint8_t)(one[i] ^ (uint8_t)other[i]);
  return difference == 0;
}

static bool token_matches(const struct guest *guest, const uint8_t *payload, size_t length) {
  if (guest->token_fd < 0) return true;
  char token[TOKEN_BYTES_MAX];
  ssize_t got = pread(guest->token_fd, token, sizeof token, 0);
  while (got > 0 && token[got - 1] == '\n') got--;
  struct field field;
  bool found = field_find(payload, length, TAG_HELLO_TOKEN, &field);
  bool matches = got > 0 && found && field.length == (size_t)got && same_bytes(field.data, token, field.length);
  explicit_bzero(token, sizeof token);
  return matches;
}

static bool hello(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct guest *guest = connection->guest;
  uint64_t version;
  if (header->type != FRAME_HELLO || header->stream != 0 || connection->greeted) return false;
  if (!fields_valid(payload, header->length) || !field_find_u64(payload, header->length, TAG_HELLO_VERSION, 0, &version)) return false;
  if (version != PROTOCOL_VERSION) {
    reply_error(connection, 0, ERR_UNSUPPORTED, 0, "the guest speaks protocol version %d", PROTOCOL_VERSION);
    connection->closing = true;
    return true;
  }
  if (!token_matches(guest, payload, header->length)) {
    reply_error(connection, 0, ERR_DENIED, 0, "wrong token");
    connection->closing = true;
    return true;
  }
  connection->greeted = true;
  struct frame_writer *out = &connection->out;
  frame_begin(out, FRAME_WELCOME, 0);
  frame_field_u64(out, TAG_WELCOME_VERSION, PROTOCOL_VERSION);
  frame_field_text(out, TAG_WELCOME_GUEST_VERSION, GUEST_VERSION);
  frame_field(out, TAG_WELCOME_BOOT_ID, guest->boot_id, sizeof guest->boot_id);
  frame_field_u64(out, TAG_WELCOME_UID, guest->uid);
  frame_field_u64(out, TAG_WELCOME_GID, guest->gid);
  frame_field_u64(out, TAG_WELCOME_ROOT_ALLOWED, guest->allow_root);
  frame_field_u64(out, TAG_WELCOME_FENCES, 1);
  frame_field_u64(out, TAG_WELCOME_KEEPS_LAST, 1);
  frame_end(out);
  connection_touch(connection);
  return true;
}

/* Handles a frame on an open stream. */
static bool continued(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  struct stream *stream = stream_find(connection, header->stream);
  if (stream == NULL) return true; /* the stream has just closed; the frames crossed */
  if (header->type == FRAME_CANCEL) {
    stream->kind->cancel(stream);
    return true;
  }
  return stream->kind->frame == NULL || stream->kind->frame(stream, header, payload);
}

static bool request(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  switch (header->type) {
    case FRAME_SPAWN:
      return request_spawn(connection, header, payload);
    case FRAME_ATTACH:
      return request_attach(connection, header, payload);
    case FRAME_SIGNAL:
      return request_signal(connection, header, payload);
    case FRAME_FORGET:
      return request_forget(connection, header, payload);
    case FRAME_KILL:
      return request_kill(connection, header, payload);
    case FRAME_LIST:
      return request_list(connection, header);
    case FRAME_CONNECT:
      return request_connect(connection, header, payload);
    case FRAME_LISTENERS:
      return request_listeners(connection, header);
    case FRAME_FENCE:
      return request_fence(connection, header, payload);
    case FRAME_LISTEN:
      return request_listen(connection, header, payload);
    case FRAME_SHUTDOWN:
      return request_shutdown(connection, header, payload);
    default:
      return request_file(connection, header, payload);
  }
}

bool dispatch(struct connection *connection, const struct frame_header *header, const uint8_t *payload) {
  if (!connection->greeted || header->type == FRAME_HELLO) return hello(connection, header, payload);
  switch (header->type) {
    case FRAME_PING:
      if (header->length > 64) return false;
      frame_begin(&connection->out, FRAME_PONG, header->stream);
      frame_raw(&connection->out, payload, header->length);
      frame_end(&connection->out);
      connection_touch(connection);
      return true;
    case FRAME_DATA:
    case FRAME_END:
    case FRAME_CREDIT:
    case FRAME_CANCEL:
    case FRAME_ACK:
    case FRAME_STDIN:
    case FRAME_STDIN_END:
    case FRAME_RESIZE:
    case FRAME_DATAGRAM:
      return continued(connection, header, payload);
    default:
      break;
  }
  /* The rest open a stream: the host's ids are odd, and an open one cannot be opened again. */
  if ((header->stream & 1) == 0 || !fields_valid(payload, header->length)) return false;
  struct stream *stream = stream_find(connection, header->stream);
  if (stream && !stream->closed) return false;
  if (stream) stream_remove(stream);
  if (connection->stream_count >= STREAMS_MAX) {
    reply_error(connection, header->stream, ERR_BUSY, 0, "too many streams (limit %d)", STREAMS_MAX);
    return true;
  }
  return request(connection, header, payload);
}
