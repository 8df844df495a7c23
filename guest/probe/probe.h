#ifndef CAISSON_PROBE_H
#define CAISSON_PROBE_H

/* Prints `name result`, where result is `ok`, an errno name, or `SIGNAME` of the signal that ended the attempt. */
void probe_report(const char *name, long result, int error);
const char *probe_errno_name(int error);

/* A call to try, and the name to report it under. `attempt` returns the call's result and leaves errno set. */
struct probe_call {
  const char *name;
  long (*attempt)(void);
};
/* Terminated by an entry without a name. */
extern const struct probe_call probe_administration_calls[];

int probe_syscalls(void);
int probe_network(int argc, char **argv);
int probe_set_id(void);
int probe_allocate(void);
int probe_exhaust(const char *what, long count, long ms);
/* Like `probe_exhaust`, but keeps what it allocated until its input ends or the time is up. */
int probe_hold(const char *what, long count, long ms);
/* Prints the core size limit as inherited, and again after attempts to change it. */
int probe_core(void);

#endif
