/*
 * Fuzzes a whole connection: any bytes from the host, against a guest with processes to attach to, acknowledge, feed
 * and forget. The guest is shutting down, so it starts nothing and touches no file, and it has a separate network.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/ring.h"
#include "dispatch.h"
#include "ports/ports.h"
#include "processes/process.h"
#include "processes/processes.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct guest *guest;

static void loopback_up(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0) die_errno("loopback");
  close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) die_errno("a separate network is needed");
  signal(SIGPIPE, SIG_IGN);
  guest = xalloc(sizeof *guest);
  guest->not_init = guest->shutting_down = guest->transparent = true;
  guest->oom_fd = -1;
  loop_open(&guest->loop);
  processes_open(guest);
  ports_open(guest);
  loopback_up();
  return 0;
}

/* Connects from inside to ports that the input may have claimed, those of the vectors among them. */
static void dial(int sockets[], int count) {
  static const uint16_t ports[] = {19080, 443, 1, 53};
  for (int i = 0; i < count; i++) {
    sockets[i] = socket(AF_INET, (ports[i] == 53 ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(ports[i]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (sockets[i] < 0) abort();
    if (connect(sockets[i], (struct sockaddr *)&address, sizeof address) == 0) send(sockets[i], "question", 8, MSG_NOSIGNAL);
  }
}

/* Adds a process that has ended and one that runs, each with unacknowledged output. */
static void populate(void) {
  for (int i = 0; i < 2; i++) {
    struct process *process = process_new(guest, i ? "b" : "a");
    if (process == NULL) abort();
    int in[2], out[2];
    if (pipe(in) < 0 || pipe(out) < 0) abort();
    input_open(process, in[1]);
    output_open(process, 0, out[0]);
    close(in[0]);
    if (write(out[1], "output", 6) != 6) abort();
    close(out[1]);
    process->pid = 1;
    process->state = PROCESS_RUNNING;
    if (i == 0) {
      guest->processes->running_count++;
      process->tree_empty = true;
      process_leader_ended(process, 0);
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  populate();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) abort();
  connection_accept(guest, pair[0], dispatch);
  struct frame_writer hello = {0};
  frame_begin(&hello, FRAME_HELLO, 0);
  frame_field_u64(&hello, 1, PROTOCOL_VERSION);
  frame_end(&hello);
  /* Some inputs come without a greeting. */
  if (size > 0 && data[0] != 0x55 && write(pair[1], hello.data, hello.length) < 0) abort();
  frame_writer_free(&hello);
  static uint8_t answers[65536];
  enum { DIALS = 4 };
  int dials[DIALS] = {-1, -1, -1, -1};
  /* Written in two parts, so that frames can follow for streams that the guest opened. */
  for (size_t at = 0; at < size;) {
    size_t part = at < size / 2 ? size / 2 - at : size - at;
    ssize_t put = write(pair[1], data + at, part);
    if (put > 0) at += (size_t)put;
    loop_turn(&guest->loop, false);
    connection_flush_all(guest);
    while (read(pair[1], answers, sizeof answers) > 0) {}
    if (guest->connections == NULL) break;
    if (at < size / 2 || dials[0] >= 0 || guest->ports->listeners == NULL) continue;
    dial(dials, DIALS);
    loop_turn(&guest->loop, false);
    connection_flush_all(guest);
  }
  loop_turn(&guest->loop, false);
  connection_flush_all(guest);
  close(pair[1]);
  while (guest->connections) connection_close(guest->connections);
  for (int i = 0; i < DIALS; i++) close_fd(&dials[i]);
  /* Listeners stay. A refused client disappears one turn after it hung up, one in the backlog after two. */
  for (int turn = 0; turn < 4 || (guest->ports->accepted_count > 0 && turn < 100); turn++) loop_turn(&guest->loop, false);
  while (guest->processes->oldest) {
    guest->processes->oldest->tree_empty = true;
    process_delete(guest->processes->oldest, false);
  }
  free(guest->processes->tombstones);
  guest->processes->tombstones = NULL;
  guest->processes->running_count = 0;
  loop_turn(&guest->loop, false);
  if (guest->connection_count || guest->processes->process_count || guest->ports->accepted_count || guest->ports->claim_count || rings_held()) abort();
  return 0;
}
