/* Lists the listening ports of programs inside. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "ports/ports.h"
#include "ports/serve.h"
#include "wire/tags.h"

enum { LISTENERS_MAX = 4096 };

static void entry(struct connection *connection, uint32_t stream, const char *hex, unsigned number, unsigned long uid, int family) {
  /* The kernel prints each 32-bit word of the address in the machine's byte order. */
  uint32_t words[4] = {0};
  int count = family == AF_INET ? 1 : 4;
  for (int i = 0; i < count; i++) {
    char word[9] = "";
    memcpy(word, hex + 8 * i, 8);
    words[i] = (uint32_t)strtoul(word, NULL, 16);
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, words, text, sizeof text);
  frame_begin(&connection->out, FRAME_ENTRY, stream);
  frame_field_u64(&connection->out, TAG_LISTENER_PORT, number);
  frame_field_u64(&connection->out, TAG_LISTENER_UID, uid);
  frame_field_text(&connection->out, TAG_LISTENER_ADDRESS, text);
  frame_end(&connection->out);
}

static void entries(struct connection *connection, uint32_t stream, const char *path, int family, int *sent) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return;
  char line[512];
  while (*sent < LISTENERS_MAX && fgets(line, sizeof line, file)) {
    char hex[33] = "";
    unsigned number, state;
    unsigned long uid;
    if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*32[0-9A-Fa-f]:%*x %x %*s %*s %*s %lu", hex, &number, &state, &uid) != 4) continue;
    if (state != 0x0A || strlen(hex) != (family == AF_INET ? 8 : 32)) continue;
    if (serve_owns(connection->guest, number)) continue; /* ours, not a program's */
    entry(connection, stream, hex, number, uid, family);
    (*sent)++;
  }
  fclose(file);
}

bool request_listeners(struct connection *connection, const struct frame_header *header) {
  int sent = 0;
  entries(connection, header->stream, "/proc/net/tcp", AF_INET, &sent);
  entries(connection, header->stream, "/proc/net/tcp6", AF_INET6, &sent);
  reply_ok(connection, header->stream);
  return true;
}
