/* Processes by ref and by age, and the refs that were forgotten. */
#include <string.h>

#include "processes/process.h"
#include "processes/processes.h"
#include "processes/supervisors.h"

void processes_open(struct guest *guest) {
  guest->processes = xalloc(sizeof *guest->processes);
  guest->processes->guest = guest;
  guest->processes->sudo_listener.fd = -1;
}

/*
 * Forgotten refs as keyed 64-bit hashes: the chance of a false "gone" is about 1 in 10^15, and 16,384 of them fit where
 * their texts would take a megabyte. Memory is only touched as it is used.
 */
enum { TOMBSTONES_MAX = 16384, TOMBSTONE_BUCKETS = 4096 };
struct tombstones {
  uint64_t hashes[TOMBSTONES_MAX];
  uint16_t next[TOMBSTONES_MAX]; /* index plus one */
  uint16_t buckets[TOMBSTONE_BUCKETS];
  uint64_t written;
};

static uint64_t hash_of(const struct guest *guest, const char *ref) {
  uint64_t hash, multiplier;
  memcpy(&hash, guest->boot_id, 8);
  memcpy(&multiplier, guest->boot_id + 8, 8);
  multiplier |= 1;
  for (; *ref; ref++) {
    hash = (hash ^ (uint8_t)*ref) * UINT64_C(0x100000001b3);
    hash = (hash ^ (hash >> 29)) * multiplier;
  }
  return hash ^ (hash >> 32);
}

bool tombstone_has(struct guest *guest, const char *ref) {
  struct tombstones *t = guest->processes->tombstones;
  if (t == NULL) return false;
  uint64_t hash = hash_of(guest, ref);
  for (uint16_t at = t->buckets[hash % TOMBSTONE_BUCKETS]; at; at = t->next[at - 1]) {
    if (t->hashes[at - 1] == hash) return true;
  }
  return false;
}

void tombstone_add(struct guest *guest, const char *ref) {
  if (guest->processes->tombstones == NULL) guest->processes->tombstones = calloc(1, sizeof *guest->processes->tombstones);
  struct tombstones *t = guest->processes->tombstones;
  if (t == NULL) return;
  uint16_t place = (uint16_t)(t->written % TOMBSTONES_MAX);
  if (t->written++ >= TOMBSTONES_MAX) {
    /* The oldest makes room: remove it from its chain. */
    uint16_t *link = &t->buckets[t->hashes[place] % TOMBSTONE_BUCKETS];
    while (*link && *link != place + 1) link = &t->next[*link - 1];
    if (*link) *link = t->next[place];
  }
  uint64_t hash = hash_of(guest, ref);
  uint16_t *bucket = &t->buckets[hash % TOMBSTONE_BUCKETS];
  t->hashes[place] = hash;
  t->next[place] = *bucket;
  *bucket = (uint16_t)(place + 1);
}

static struct process **bucket_of(struct guest *guest, const char *ref) { return &guest->processes->refs[hash_of(guest, ref) % REF_BUCKETS]; }

struct process *process_find(struct guest *guest, const char *ref) {
  struct process *process = *bucket_of(guest, ref);
  while (process && strcmp(process->ref, ref) != 0) process = process->bucket_next;
  return process;
}

static bool may_be_evicted(const struct process *process) {
  if (process->state != PROCESS_ENDED || !process->tree_empty) return false;
  if (!output_taken(process)) return false;
  return process->stream == NULL || process->stream->closed;
}

struct process *process_new(struct guest *guest, const char *ref) {
  if (guest->processes->process_count >= PROCESSES_MAX) {
    struct process *victim = guest->processes->oldest;
    while (victim && !may_be_evicted(victim)) victim = victim->newer;
    if (victim == NULL) return NULL;
    process_delete(victim, true);
  }
  struct process *process = calloc(1, sizeof *process);
  if (process == NULL) return NULL;
  process->guest = guest;
  process->request_fd = -1;
  process->input.fd = -1;
  for (int i = 0; i < 3; i++) process->child_fds[i] = -1;
  for (int i = 0; i < 2; i++) {
    process->outputs[i].process = process;
    process->outputs[i].source.fd = -1;
  }
  if (ref == NULL) {
    process->hidden = true;
    return process;
  }
  strcpy(process->ref, ref);
  struct process **bucket = bucket_of(guest, ref);
  process->bucket_next = *bucket;
  *bucket = process;
  process->older = guest->processes->newest;
  if (guest->processes->newest)
    guest->processes->newest->newer = process;
  else
    guest->processes->oldest = process;
  guest->processes->newest = process;
  guest->processes->process_count++;
  return process;
}

static void unlink_from_table(struct process *process) {
  struct guest *guest = process->guest;
  struct process **link = bucket_of(guest, process->ref);
  while (*link && *link != process) link = &(*link)->bucket_next;
  if (*link) *link = process->bucket_next;
  if (process->older)
    process->older->newer = process->newer;
  else
    guest->processes->oldest = process->newer;
  if (process->newer)
    process->newer->older = process->older;
  else
    guest->processes->newest = process->older;
  guest->processes->process_count--;
}

void process_delete(struct process *process, bool remember) {
  struct guest *guest = process->guest;
  supervisors_cancel(process);
  process_detach(process);
  process_release_request(process);
  output_close(process);
  input_close(process);
  for (int i = 0; i < 2; i++) ring_free(&process->outputs[i].ring);
  ring_free(&process->input_ring);
  timer_clear(&guest->loop, &process->timeout);
  timer_clear(&guest->loop, &process->linger);
  timer_clear(&guest->loop, &process->overdue);
  if (process->supervisor) process->supervisor->process = NULL;
  if (!process->hidden) {
    unlink_from_table(process);
    if (remember && !process->forgotten) tombstone_add(guest, process->ref);
  }
  loop_free_later(&guest->loop, process);
}
