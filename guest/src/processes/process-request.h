/* What the requests about processes share with the other code that starts or ends processes. */
#pragma once

#include "processes/process.h"

/* Answers the KILLs that waited for the whole tree to end. */
void process_answer_kills(struct process *process);
/* Returns what is wrong with the fields of a SPAWN, or NULL. */
const char *spawn_fault(const uint8_t *payload, size_t length);

/* process-stdio.c. These return false with errno set on failure. */
bool stdio_open_pipes(struct process *process, bool with_stdin);
bool stdio_open_terminal(struct process *process, uint64_t cols, uint64_t rows);
/* Handles a RESIZE; returns false for a protocol error. */
bool stdio_resize(struct process *process, const uint8_t *payload, size_t length);
