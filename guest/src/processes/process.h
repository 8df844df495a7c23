/* Between process.c and the requests about processes. */
#pragma once

#include "connection/guest.h"

/* Nothing of the tree lives any more: the KILLs that waited for it are answered. */
void process_answer_kills(struct process *process);
bool process_signal(struct process *process, int number, bool tree);
/* Drops outcome and output of an ended one; while its tree lives it can still be listed and killed. */
void process_forget(struct process *process);
/* Its time runs from here; once it has started, anew. */
void process_set_timeout(struct process *process);
/* What is wrong with the texts of a SPAWN, or NULL. */
const char *spawn_fault(const uint8_t *payload, size_t length);
