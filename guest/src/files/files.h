/* What the rest of the guest asks of its files. */
#pragma once

#include "connection/connection.h"

/* file-requests.c: every request about files. False is a protocol error. */
bool request_file(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* With every heartbeat: workers that nobody needed for a while. */
void file_workers_trim_idle(struct guest *guest);
/* False when no file request waits for its worker. */
bool file_workers_rouse(struct guest *guest);

/* fence.c */
bool request_fence(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* A file worker ended: whoever takes over may have waited for it. */
void fence_check(struct guest *guest);
