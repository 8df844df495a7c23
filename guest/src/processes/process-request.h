/* Between the requests about processes and what else starts or ends them. */
#pragma once

#include "processes/process.h"

/* Nothing of the tree lives any more: the KILLs that waited for it are answered. */
void process_answer_kills(struct process *process);
/* What is wrong with the texts of a SPAWN, or NULL. */
const char *spawn_fault(const uint8_t *payload, size_t length);

/* process-stdio.c. False with errno set. */
bool stdio_open_pipes(struct process *process, bool with_stdin);
bool stdio_open_terminal(struct process *process, uint64_t cols, uint64_t rows);
/* A RESIZE; false is a protocol error. */
bool stdio_resize(struct process *process, const uint8_t *payload, size_t length);
