/*
 * Single-datagram queries to any address, which the host answers with one datagram. They are the name lookups of
 * programs that do not know about proxies.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "ports/serve.h"

enum {
  /*
   * The maximum number of unanswered queries. Further queries wait in the socket; if its buffer is full, the kernel
   * drops them.
   */
  DATAGRAMS_MAX = 256,
  DATAGRAM_BYTES_MAX = 65536,
  /* A later answer may find no receiver; checked with every heartbeat. */
  ANSWER_MS = 2500,
  PER_TURN = 64,
  TOKEN_BYTES = 4,
};

union local_address {
  struct in_pktinfo v4;
  struct in6_pktinfo v6;
};

struct question {
  bool open;
  uint32_t token;
  uint64_t at;
  const struct listening_socket *socket;
  struct sockaddr_storage from;
  socklen_t from_size;
  union local_address asked;
};

struct datagrams {
  struct question questions[DATAGRAMS_MAX];
  size_t open_count;
  uint32_t last_token; /* its remainder is the question's place, so an old token is recognized */
};

struct datagrams *datagrams_new(void) { return calloc(1, sizeof(struct datagrams)); }

bool datagrams_prepare(int fd, int family) {
  int on = 1;
  if (family == AF_INET) return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) == 0;
  /*
   * Unlike IPv4, IPv6 only answers from an address that is assigned to an interface; being routed to us is not enough.
   */
  setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
  return setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) == 0;
}

bool datagrams_may_come(const struct listener *listener) {
  if (listener->newest == NULL) return true;
  return listener->datagrams->open_count < DATAGRAMS_MAX && !connection_busy(listener->newest->stream->connection);
}

static struct question *question_new(struct datagrams *datagrams) {
  do datagrams->last_token++;
  while (datagrams->questions[datagrams->last_token % DATAGRAMS_MAX].open);
  struct question *question = &datagrams->questions[datagrams->last_token % DATAGRAMS_MAX];
  *question = (struct question){.open = true, .token = datagrams->last_token};
  datagrams->open_count++;
  return question;
}

static void question_end(struct datagrams *datagrams, struct question *question) {
  question->open = false;
  datagrams->open_count--;
}

static void take_asked(struct question *question, struct msghdr *message) {
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
      memcpy(&question->asked.v4, CMSG_DATA(part), sizeof question->asked.v4);
      /* Answer from the address that was asked, through whichever interface leads back. */
      question->asked.v4.ipi_spec_dst = question->asked.v4.ipi_addr;
      question->asked.v4.ipi_ifindex = 0;
    }
    if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
      memcpy(&question->asked.v6, CMSG_DATA(part), sizeof question->asked.v6);
      question->asked.v6.ipi6_ifindex = 0;
    }
  }
}

/* Returns false if there is nothing more to receive. */
static bool take_one(struct listening_socket *socket) {
  struct listener *listener = socket->listener;
  static uint8_t bytes[TOKEN_BYTES + DATAGRAM_BYTES_MAX];
  _Alignas(struct cmsghdr) char control[256];
  struct sockaddr_storage from;
  struct iovec part = {bytes + TOKEN_BYTES, DATAGRAM_BYTES_MAX};
  struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = recvmsg(socket->source.fd, &message, MSG_DONTWAIT);
  if (got < 0) return errno == EINTR;
  if (listener->newest == NULL) return true; /* no claim answers now */
  struct question *question = question_new(listener->datagrams);
  question->at = listener->guest->loop.now;
  question->socket = socket;
  question->from = from;
  question->from_size = message.msg_namelen;
  take_asked(question, &message);
  put_u32(bytes, question->token);
  struct stream *stream = listener->newest->stream;
  frame_begin(&stream->connection->out, FRAME_DATAGRAM, stream->id);
  frame_raw(&stream->connection->out, bytes, TOKEN_BYTES + (size_t)got);
  if (!frame_end(&stream->connection->out)) question_end(listener->datagrams, question);
  connection_touch(stream->connection);
  return true;
}

void datagrams_ready(struct source *source, uint32_t events) {
  (void)events;
  struct listening_socket *socket = container_of(source, struct listening_socket, source);
  for (int turn = 0; turn < PER_TURN; turn++) {
    if (!datagrams_may_come(socket->listener)) {
      listener_watch(socket->listener, false);
      return;
    }
    if (!take_one(socket)) return;
  }
}

static void send_answer(const struct question *question, const uint8_t *bytes, size_t length) {
  bool is_v4 = question->from.ss_family == AF_INET;
  size_t size = is_v4 ? sizeof question->asked.v4 : sizeof question->asked.v6;
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(union local_address))] = {0};
  struct iovec part = {(void *)bytes, length};
  struct msghdr message = {.msg_name = (void *)&question->from, .msg_namelen = question->from_size, .msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(size);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
  header->cmsg_type = is_v4 ? IP_PKTINFO : IPV6_PKTINFO;
  header->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(header), &question->asked, size);
  /* An answer that cannot be delivered is lost, as datagrams are. */
  sendmsg(question->socket->source.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool datagrams_answer(struct listener *listener, const uint8_t *payload, size_t length) {
  if (length < TOKEN_BYTES) return false;
  struct question *question = &listener->datagrams->questions[get_u32(payload) % DATAGRAMS_MAX];
  /* The question may have expired. */
  if (!question->open || question->token != get_u32(payload)) return true;
  if (length > TOKEN_BYTES) send_answer(question, payload + TOKEN_BYTES, length - TOKEN_BYTES);
  question_end(listener->datagrams, question);
  serve_resume(listener->guest);
  return true;
}

void datagrams_expire(struct listener *listener) {
  for (size_t i = 0; i < DATAGRAMS_MAX; i++) {
    struct question *question = &listener->datagrams->questions[i];
    if (question->open && listener->guest->loop.now - question->at >= ANSWER_MS) question_end(listener->datagrams, question);
  }
}
