#ifndef CAISSON_PROBE_H
#define CAISSON_PROBE_H

/* Prints `name result` where result is `ok`, an errno's name, or `SIGNAME` of the signal that ended the attempt. */
void probe_report(const char *name, long result, int error);
const char *probe_errno_name(int error);

/* A call to try, and the name it is reported by; `attempt` returns as the call does, and leaves its errno. */
struct probe_call {
  const char *name;
  long (*attempt)(void);
};
/* Ends with an entry that has no name. */
extern const struct probe_call probe_administration_calls[];

int probe_syscalls(void);
int probe_network(int argc, char **argv);
int probe_set_id(void);
int probe_allocate(void);
int probe_exhaust(const char *what, long count, long ms);
/* The same, and keeps what it made until its input ends or the time is over. */
int probe_hold(const char *what, long count, long ms);
/* Prints the limit on cores as it was given, and as it is after others were asked for. */
int probe_core(void);

#endif
