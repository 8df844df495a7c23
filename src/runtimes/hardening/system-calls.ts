/**
 * Every system call that we reviewed, grouped by purpose. `allowed` calls work, `refused` ones fail with EPERM,
 * `absent` ones with ENOSYS. Unlisted calls are newer and also fail with ENOSYS, as on an older kernel, so programs
 * fall back. A group with `only` contains names that exist only on that processor.
 */
export interface CallGroup {
  readonly why: string;
  readonly names: readonly string[];
  readonly only?: "x64" | "arm64";
}

export const allowed: readonly CallGroup[] = [
  {
    why: "Reading, writing and seeking in open files is what programs do.",
    names: words`read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek`,
  },
  {
    why: "Moving bytes between descriptors inside the kernel: cp, cat, web servers and Go's io.Copy.",
    names: words`sendfile splice tee vmsplice copy_file_range readahead`,
  },
  {
    why: "Opening, closing and duplicating descriptors; pipes between processes.",
    names: words`openat openat2 close close_range dup dup3 fcntl flock pipe2`,
  },
  {
    why: "Truncating and flushing files. fallocate has a separate rule.",
    names: words`fadvise64 ftruncate truncate fsync fdatasync sync syncfs sync_file_range`,
  },
  {
    why: "Inspecting files and folders.",
    names: words`fstat newfstatat statx statfs fstatfs faccessat faccessat2 getdents64 readlinkat getcwd`,
  },
  {
    why: "Changing the folder tree, within the sandbox's file permissions. mknod has a separate rule.",
    names: words`chdir fchdir mkdirat unlinkat linkat symlinkat renameat renameat2 umask`,
  },
  {
    why: "Owners, modes and times. Package managers set setuid bits, which have no effect under no_new_privs.",
    names: words`fchmod fchmodat fchmodat2 fchown fchownat utimensat`,
  },
  {
    why: "Extended attributes, which cp -a, tar and git annexes use; capabilities guard security.* ones.",
    names: words`
      getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr
      fremovexattr getxattrat setxattrat listxattrat removexattrat`,
  },
  {
    why: "Facts about mounts that /proc/self/mountinfo shows anyway, and file handles, which are useless without open_by_handle_at.",
    names: words`statmount listmount name_to_handle_at cachestat`,
  },
  {
    why: "The process's own memory.",
    names: words`
      brk mmap munmap mremap mprotect madvise mincore msync mlock mlock2 mlockall munlock munlockall remap_file_pages
      membarrier memfd_create mseal map_shadow_stack pkey_alloc pkey_free pkey_mprotect`,
  },
  {
    why: "Starting and ending programs. clone has a separate rule, since it can create namespaces.",
    names: words`execve execveat exit exit_group wait4 waitid restart_syscall rseq set_tid_address`,
  },
  {
    why: "Identity of a process, and the groups and sessions of job control.",
    names: words`getpid getppid gettid getpgid setpgid getsid setsid getuid geteuid getgid getegid getgroups getresuid getresgid`,
  },
  {
    why: "Changing users: the guest drops to the sandbox's user, and package managers that run as root drop further. The kernel requires capabilities.",
    names: words`setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget capset`,
  },
  {
    why: "Package managers and build tools chroot as root inside, if the configuration allows root. Other users lack the required capability.",
    names: words`chroot`,
  },
  {
    why: "A process's own settings, and restricting itself further: browsers and test runners sandbox their children this way.",
    names: words`prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self`,
  },
  {
    why: "Signals.",
    names: words`
      kill tkill tgkill pidfd_open pidfd_send_signal rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
      rt_tgsigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack signalfd4`,
  },
  {
    why: "Debugging one's own processes, as strace does. The guest has another uid and is not dumpable, so it is out of reach.",
    names: words`ptrace process_vm_readv process_vm_writev process_mrelease`,
  },
  {
    why: "Threads and their locks.",
    names: words`futex futex_waitv futex_wake futex_wait futex_requeue get_robust_list set_robust_list`,
  },
  {
    why: "Scheduling and priorities of the caller's processes. Raising them requires capabilities, and the cgroup limits them all.",
    names: words`
      sched_yield sched_getaffinity sched_setaffinity sched_getattr sched_setattr sched_getparam sched_setparam
      sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority
      setpriority ioprio_get ioprio_set getcpu`,
  },
  {
    why: "Resource limits and usage.",
    names: words`getrlimit getrusage times sysinfo uname getrandom`,
  },
  {
    why: "Reading clocks, sleeping, timers. Setting clocks is refused below.",
    names: words`
      clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday getitimer setitimer timer_create timer_delete
      timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime`,
  },
  {
    why: "Waiting for several events, and for file changes.",
    names: words`
      epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 ppoll pselect6 eventfd2 inotify_init1 inotify_add_watch
      inotify_rm_watch`,
  },
  {
    why: "The older kernel AIO that databases use. Unlike io_uring, it passes the checks of ordinary reads and writes.",
    names: words`io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents`,
  },
  {
    why: "Using existing sockets: socket and socketpair have separate rules.",
    names: words`
      bind connect listen accept accept4 shutdown getsockname getpeername getsockopt setsockopt sendto recvfrom sendmsg
      recvmsg sendmmsg recvmmsg`,
  },
  {
    why: "System V and POSIX message queues, semaphores and shared memory: PostgreSQL and Python's multiprocessing use them. Each sandbox has its own IPC namespace.",
    names: words`
      shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend
      mq_timedreceive mq_notify mq_getsetattr`,
  },
  {
    only: "x64",
    why: "Older forms of the calls above, which exist only on x86_64.",
    names: words`
      open creat stat lstat access readlink getdents mkdir rmdir unlink link symlink rename chmod chown lchown utime utimes
      futimesat dup2 pipe fork vfork getpgrp alarm pause time signalfd eventfd poll select epoll_create epoll_wait
      epoll_ctl_old epoll_wait_old inotify_init`,
  },
  {
    only: "x64",
    why: "Thread-local storage, which every program on x86_64 uses, and the return from the kernel's user probes.",
    names: words`arch_prctl uretprobe`,
  },
];

export const refused: readonly CallGroup[] = [
  {
    why: "io_uring works out of this filter's sight and has been the kernel's richest source of escapes.",
    names: words`io_uring_setup io_uring_enter io_uring_register`,
  },
  {
    why: "New namespaces, user namespaces above all, expose parts of the kernel that only root was meant to reach.",
    names: words`unshare setns`,
  },
  {
    why: "The mount tree is the wall itself.",
    names: words`mount umount2 pivot_root mount_setattr move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick`,
  },
  {
    why: "Namespaces do not fully separate kernel keyrings.",
    names: words`add_key request_key keyctl`,
  },
  {
    why: "Programs in the kernel and its performance counters can observe and slow down the whole machine.",
    names: words`bpf perf_event_open`,
  },
  {
    why: "Handling page faults in user space stops the kernel at a chosen point, which makes races exploitable.",
    names: words`userfaultfd`,
  },
  {
    why: "Opening by handle bypasses the mount tree to reach any file of the same file system.",
    names: words`open_by_handle_at`,
  },
  {
    why: "Access to other processes beyond what debuggers need.",
    names: words`kcmp pidfd_getfd process_madvise`,
  },
  {
    why: "Watching or deciding other users' file accesses.",
    names: words`fanotify_init fanotify_mark lookup_dcookie`,
  },
  {
    why: "Loading code into the kernel, replacing the kernel, or stopping it.",
    names: words`init_module finit_module delete_module kexec_load kexec_file_load reboot`,
  },
  {
    why: "The machine's swap, accounting, quotas, log and NFS server belong to its administrator.",
    names: words`swapon swapoff acct quotactl quotactl_fd syslog nfsservctl`,
  },
  {
    why: "The clock belongs to the whole machine.",
    names: words`settimeofday clock_settime clock_adjtime adjtimex`,
  },
  {
    why: "The host sets the sandbox's names; a terminal is hung up by its owner.",
    names: words`sethostname setdomainname vhangup`,
  },
  {
    why: "Memory that even the kernel cannot read serves only to hide something here.",
    names: words`memfd_secret`,
  },
  {
    only: "x64",
    why: "Raw ports and segment descriptors of the processor.",
    names: words`ioperm iopl modify_ldt`,
  },
];

export const absent: readonly CallGroup[] = [
  {
    why: "Its flags are in memory, which a filter cannot read; C libraries fall back to clone only on ENOSYS.",
    names: words`clone3`,
  },
  {
    why: "Memory placement on NUMA nodes. On ENOSYS, libraries assume a machine without nodes; on EPERM, they print a warning.",
    names: words`get_mempolicy set_mempolicy set_mempolicy_home_node mbind migrate_pages move_pages`,
  },
  {
    why: "Attributes of security modules, which the sandbox may neither read nor set.",
    names: words`lsm_get_self_attr lsm_set_self_attr lsm_list_modules`,
  },
  {
    only: "x64",
    why: "Calls that current kernels no longer have.",
    names: words`
      _sysctl afs_syscall create_module get_kernel_syms get_thread_area getpmsg putpmsg query_module security set_thread_area
      sysfs tuxcall uselib ustat vserver`,
  },
];

/** Splits names at white space, which keeps the lists easy to read. */
function words(text: TemplateStringsArray): readonly string[] {
  return text.join("").trim().split(/\s+/);
}
