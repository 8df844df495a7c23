/* The interface of file handling to the rest of the guest. */
#pragma once

#include "connection/connection.h"

/* file-requests.c: handles every request about files. Returns false for a protocol error. */
bool request_file(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* Dismisses workers that have been idle for a while. Called with every heartbeat. */
void file_workers_trim_idle(struct guest *guest);
/* Resumes stopped file workers. Returns false if no file request waits for its worker. */
bool file_workers_rouse(struct guest *guest);

/* fence.c */
bool request_fence(struct connection *connection, const struct frame_header *header, const uint8_t *payload);
/* Called when a file worker has ended: a new holder may be waiting for it. */
void fence_check(struct guest *guest);
