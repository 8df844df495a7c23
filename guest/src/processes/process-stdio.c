/* Standard input and output of a command: pipes or a terminal. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "processes/process-request.h"
#include "wire/tags.h"

bool stdio_open_pipes(struct process *process, bool with_stdin) {
  int pair[2];
  if (with_stdin) {
    if (pipe2(pair, O_CLOEXEC) < 0) return false;
    process->child_fds[0] = pair[0];
    input_open(process, pair[1]);
  } else {
    process->child_fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (process->child_fds[0] < 0) return false;
    process->input_closed = true;
  }
  for (int i = 0; i < 2; i++) {
    if (pipe2(pair, O_CLOEXEC) < 0) return false;
    process->child_fds[i + 1] = pair[1];
    output_open(process, i, pair[0]);
  }
  return true;
}

bool stdio_open_terminal(struct process *process, uint64_t cols, uint64_t rows) {
  cleanup_fd int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return false;
  int unlocked = 0;
  if (ioctl(master, TIOCSPTLCK, &unlocked) < 0) return false;
  /* Opened by descriptor: a path could lead to a terminal of the same number in another mount. */
  int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) {
    char name[64];
    if (ptsname_r(master, name, sizeof name) != 0) return false;
    slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0) return false;
  }
  process->child_fds[0] = slave;
  if (process->identity.change && fchown(slave, process->identity.uid, process->identity.gid) < 0) {
    /* Without CHOWN it still belongs to the guest's user, but the command holds it open anyway. */
  }
  struct winsize size = {.ws_col = (unsigned short)(cols ? cols : 80), .ws_row = (unsigned short)(rows ? rows : 24)};
  ioctl(master, TIOCSWINSZ, &size);
  struct termios modes;
  if (tcgetattr(slave, &modes) == 0) {
    modes.c_iflag |= IUTF8;
    tcsetattr(slave, TCSANOW, &modes);
  }
  int writer = fcntl(master, F_DUPFD_CLOEXEC, 3);
  if (writer < 0) return false;
  input_open(process, writer);
  output_open(process, 0, steal_fd(&master));
  return true;
}

bool stdio_resize(struct process *process, const uint8_t *payload, size_t length) {
  uint64_t cols, rows;
  if (!field_find_u64(payload, length, TAG_RESIZE_COLS, 80, &cols) || !field_find_u64(payload, length, TAG_RESIZE_ROWS, 24, &rows)) return false;
  if (!process->pty || process->outputs[0].source.fd < 0) return true;
  struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
  ioctl(process->outputs[0].source.fd, TIOCSWINSZ, &size);
  return true;
}
