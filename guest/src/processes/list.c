/* LIST: every live process of the sandbox with the ref of its tree, and the refs that have ended. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/proc.h"
#include "processes/process.h"
#include "processes/processes.h"
#include "processes/supervisors.h"
#include "wire/tags.h"

/* The state of a listed process; see docs/guest-protocol.md. */
enum { STATE_RUNS = 1, STATE_ENDED = 2 };

enum { LIST_MAX = 4096, COMMAND_SHOWN_MAX = 1024, PARENTS_MAX = 4096 };

struct listing {
  struct connection *connection;
  uint32_t stream;
  struct proc_stat *all;
  size_t count, sent;
  uint64_t boot_ms_now, ticks_per_second, page_bytes;
};

static const struct proc_stat *find(const struct listing *listing, pid_t pid) {
  size_t low = 0, high = listing->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (listing->all[middle].pid == pid) return &listing->all[middle];
    if (listing->all[middle].pid < pid)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

static struct supervisor *supervisor_of(const struct guest *guest, pid_t pid) {
  for (struct supervisor *s = guest->processes->supervisors; s; s = s->next) {
    if (s->own.pid == pid) return s;
  }
  return NULL;
}

/* Walks up the parents to a supervisor. Sets `inside` if the process belongs to the sandbox. */
static const char *ref_of(const struct listing *listing, const struct proc_stat *stat, bool *inside) {
  const struct guest *guest = listing->connection->guest;
  *inside = !guest->not_init;
  for (int steps = 0; stat && steps < PARENTS_MAX; steps++) {
    struct supervisor *supervisor = supervisor_of(guest, stat->parent);
    if (supervisor) {
      *inside = true;
      return supervisor->process ? supervisor->process->ref : "";
    }
    stat = find(listing, stat->parent);
  }
  return "";
}

static void command_of(pid_t pid, char *out, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
  ssize_t length = proc_read(path, out, size);
  if (length <= 0) {
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    length = proc_read(path, out, size);
  }
  if (length < 0) length = 0;
  for (ssize_t i = 0; i < length; i++) {
    if (out[i] == 0 || out[i] == '\n') out[i] = ' ';
  }
  while (length > 0 && out[length - 1] == ' ') length--;
  out[length] = 0;
}

static void entry_live(struct listing *listing, const struct proc_stat *stat, const char *ref) {
  char command[COMMAND_SHOWN_MAX + 1], path[64];
  command_of(stat->pid, command, sizeof command);
  snprintf(path, sizeof path, "/proc/%d", (int)stat->pid);
  struct stat owner;
  uint64_t uid = lstat(path, &owner) == 0 ? owner.st_uid : 0;
  uint64_t began_ms = stat->start_ticks * 1000 / listing->ticks_per_second;
  /* Both clocks count from the machine's boot. */
  uint64_t age_ms = listing->boot_ms_now > began_ms ? listing->boot_ms_now - began_ms : 0;
  uint64_t up_ms = now_ms() - listing->connection->guest->started_at;
  struct frame_writer *out = &listing->connection->out;
  frame_begin(out, FRAME_ENTRY, listing->stream);
  frame_field_text(out, TAG_REF, ref);
  frame_field_u64(out, TAG_PROCESS_PID, (uint64_t)stat->pid);
  frame_field_u64(out, TAG_PROCESS_PARENT_PID, (uint64_t)stat->parent);
  frame_field_u64(out, TAG_PROCESS_STATE, STATE_RUNS);
  frame_field_text(out, TAG_PROCESS_COMMAND, command);
  frame_field_u64(out, TAG_PROCESS_UID, uid);
  frame_field_u64(out, TAG_PROCESS_START_MS, up_ms > age_ms ? up_ms - age_ms : 0);
  frame_field_u64(out, TAG_PROCESS_RESIDENT_BYTES, stat->resident_pages * listing->page_bytes);
  frame_field_u64(out, TAG_PROCESS_CPU_MS, stat->cpu_ticks * 1000 / listing->ticks_per_second);
  const struct process *process = *ref ? process_find(listing->connection->guest, ref) : NULL;
  frame_field_u64(out, TAG_PROCESS_KEEPS_LAST, process && process->keeps_last);
  frame_end(out);
  listing->sent++;
}

static void entry_ended(struct listing *listing, const struct process *process) {
  struct frame_writer *out = &listing->connection->out;
  frame_begin(out, FRAME_ENTRY, listing->stream);
  frame_field_text(out, TAG_REF, process->ref);
  frame_field_u64(out, TAG_PROCESS_PID, (uint64_t)process->pid);
  frame_field_u64(out, TAG_PROCESS_PARENT_PID, 0);
  frame_field_u64(out, TAG_PROCESS_STATE, STATE_ENDED);
  frame_field_text(out, TAG_PROCESS_COMMAND, "");
  frame_field_u64(out, TAG_PROCESS_UID, process->identity.uid);
  frame_field_u64(out, TAG_PROCESS_START_MS, process->started_at - process->guest->started_at);
  frame_field_u64(out, TAG_PROCESS_RESIDENT_BYTES, 0);
  frame_field_u64(out, TAG_PROCESS_CPU_MS, 0);
  frame_field_u64(out, TAG_PROCESS_KEEPS_LAST, process->keeps_last);
  frame_end(out);
  listing->sent++;
}

static uint64_t boot_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool request_list(struct connection *connection, const struct frame_header *header) {
  struct guest *guest = connection->guest;
  struct listing listing = {
      .connection = connection,
      .stream = header->stream,
      .boot_ms_now = boot_ms(),
      .ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK),
      .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
  };
  listing.count = proc_all(&listing.all, 2 * LIST_MAX);
  pid_t self = getpid();
  for (size_t i = 0; i < listing.count && listing.sent < LIST_MAX; i++) {
    const struct proc_stat *stat = &listing.all[i];
    if (stat->pid == self || is_own_process(guest, stat->pid) || stat->state == 'Z') continue;
    bool inside;
    const char *ref = ref_of(&listing, stat, &inside);
    if (inside) entry_live(&listing, stat, ref);
  }
  for (struct process *p = guest->processes->oldest; p && listing.sent < LIST_MAX; p = p->newer) {
    if (p->state == PROCESS_ENDED && !p->forgotten) entry_ended(&listing, p);
  }
  free(listing.all);
  reply_ok(connection, header->stream);
  return true;
}
