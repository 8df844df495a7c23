import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { argumentRules } from "./argument-rules.ts";
import { dockerSeccompProfile, maskedPaths, readonlyPaths, type SeccompRule, seccompProfile } from "./seccomp.ts";
import { outcomes } from "./seccomp-fixture.ts";
import { absent, allowed, refused } from "./system-calls.ts";

const namesOf = (groups: readonly { names: readonly string[] }[]) => groups.flatMap(({ names }) => names);
const EPERM = 1;

describe("the system call table", () => {
  it("decides each call exactly once", () => {
    const all = [...namesOf(allowed), ...namesOf(refused), ...namesOf(absent), ...argumentRules.map(({ name }) => name)];
    expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
    expect(all.length).toBeGreaterThan(350);
  });

  it("allows none of the dangerous calls", () => {
    const dangerous = `io_uring_setup io_uring_enter io_uring_register unshare setns mount umount2 pivot_root fsopen fsconfig fsmount fspick open_tree move_mount
      mount_setattr add_key request_key keyctl bpf perf_event_open userfaultfd open_by_handle_at kexec_load kexec_file_load init_module finit_module
      delete_module swapon swapoff reboot acct quotactl quotactl_fd settimeofday clock_settime nfsservctl clone3 syslog iopl ioperm modify_ldt kcmp
      pidfd_getfd process_madvise fanotify_init lookup_dcookie`;
    expect(namesOf(allowed).filter((name) => dangerous.split(/\s+/).includes(name))).toEqual([]);
    for (const arch of ["x64", "arm64"]) {
      for (const name of dangerous.split(/\s+/))
        expect(outcomes(seccompProfile({ arch, writesToHost: false }).syscalls, name).join(), name).toMatch(/^errno (1|38)$/);
    }
  });

  it("allows nothing that Docker's default of 2025 refuses", () => {
    const docker = new Set(dockerAllows.split(/\s+/));
    const names = [...namesOf(allowed), ...argumentRules.map(({ name }) => name)];
    expect(names.filter((name) => !docker.has(name))).toEqual([]);
  });

  it("allows the guest's own calls", () => {
    const needed = `setuid setgid setgroups setresuid setresgid prctl capset close_range epoll_create1 epoll_pwait inotify_init1 signalfd4 timerfd_create
      pidfd_open pidfd_send_signal openat2 renameat2 execve execveat wait4 waitid chroot prlimit64 accept4 pipe2 dup3 setsid kill getrandom fchownat`;
    for (const arch of ["x64", "arm64"]) {
      for (const name of needed.split(/\s+/))
        expect(outcomes(seccompProfile({ arch, writesToHost: false }).syscalls, name), name).toEqual(["allowed"]);
    }
  });

  const headers = spawnSync("cc", ["-E", "-dM", "-"], { input: "#include <asm/unistd.h>\n", encoding: "utf8" });
  it.skipIf(headers.status !== 0)("decides every call in this kernel's headers", () => {
    const known = [...headers.stdout.matchAll(/^#define __NR_(\w+) /gm)].flatMap(([, name]) => name ?? []);
    expect(known.length).toBeGreaterThan(250);
    const markers = ["syscalls", "arch_specific_syscall"];
    const decided = new Set([
      ...namesOf(allowed),
      ...namesOf(refused),
      ...namesOf(absent),
      ...argumentRules.map(({ name }) => name),
      ...markers,
    ]);
    expect(known.filter((name) => !decided.has(name))).toEqual([]);
  });

  const resolver = spawnSync("scmp_sys_resolver", ["read"]);
  it.skipIf(resolver.status !== 0)("uses names that libseccomp knows, except the newest", () => {
    const unknown = [...namesOf(allowed), ...namesOf(refused)].filter(
      (name) => spawnSync("scmp_sys_resolver", ["-a", "x86_64", name], { encoding: "utf8" }).stdout.trim() === "-1",
    );
    const newest = `futex_wake futex_wait futex_requeue fchmodat2 cachestat map_shadow_stack mseal statmount listmount getxattrat setxattrat listxattrat
      removexattrat open_tree_attr uretprobe`;
    expect(unknown.filter((name) => !newest.split(/\s+/).includes(name))).toEqual([]);
  });
});

describe("argument rules", () => {
  const { syscalls } = seccompProfile({ arch: "x64", writesToHost: false });
  const word = fc.bigInt(0n, 2n ** 64n - 1n);

  it("never contradict each other for one call", () => {
    const small = fc.bigInt(0n, 40n);
    for (const { name } of argumentRules) {
      const once = (first: bigint, second: bigint, third: bigint) => {
        expect(outcomes(syscalls, name, [first, second, third])).toHaveLength(1);
      };
      fc.assert(fc.property(word, word, word, once));
      fc.assert(fc.property(small, small, small, once));
    }
  });

  it("let clone create processes and threads, but no namespaces", () => {
    const namespaces = 0x7e02_0000n;
    expect(outcomes(syscalls, "clone", [17n])).toEqual(["allowed"]);
    expect(outcomes(syscalls, "clone", [0x3d0f00n])).toEqual(["allowed"]);
    fc.assert(
      fc.property(word, (flags) => {
        expect(outcomes(syscalls, "clone", [flags])).toEqual([(flags & namespaces) === 0n ? "allowed" : `errno ${EPERM}`]);
      }),
    );
  });

  it("let socket create local, internet and three kinds of netlink sockets", () => {
    const families = Array.from({ length: 64 }, (_, family) => family).filter(
      (family) => outcomes(syscalls, "socket", [BigInt(family), 1n, 0n])[0] === "allowed",
    );
    expect(families).toEqual([1, 2, 10, 16]);
    const protocols = Array.from({ length: 64 }, (_, protocol) => protocol).filter(
      (protocol) => outcomes(syscalls, "socket", [16n, 3n, BigInt(protocol)])[0] === "allowed",
    );
    expect(protocols).toEqual([0, 4, 15]);
    expect(outcomes(syscalls, "socket", [40n, 1n, 0n])).toEqual(["errno 97"]);
    expect(outcomes(syscalls, "socket", [0x1_0000_0028n, 1n, 0n])).not.toContain("allowed");
    expect(outcomes(syscalls, "socketpair", [40n, 1n, 0n])).toEqual(["errno 97"]);
  });

  it("refuse TIOCSTI, even with bits that the kernel ignores", () => {
    const forbidden = [0x5412n, 0x40305828n, 0x4030582an, 0x40305839n];
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 32n - 1n), (high) => {
        expect(outcomes(syscalls, "ioctl", [0n, (high << 32n) | 0x5412n])).toEqual([`errno ${EPERM}`]);
      }),
    );
    fc.assert(
      fc.property(
        word,
        (request) => forbidden.includes(request & 0xffff_ffffn) || outcomes(syscalls, "ioctl", [0n, request])[0] === "allowed",
      ),
    );
  });

  it("let only writes take disk space: no fallocate or ioctl can", () => {
    for (const mode of [0n, 1n, 0x10n, 0x11n, 0x20n, 0x40n, 1n << 40n])
      expect(outcomes(syscalls, "fallocate", [3n, mode])).toEqual(["errno 95"]);
    for (const mode of [3n, 8n]) expect(outcomes(syscalls, "fallocate", [3n, mode])).toEqual(["allowed"]);
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 32n - 1n), fc.constantFrom(0x40305828n, 0x4030582an, 0x40305839n), (high, request) => {
        expect(outcomes(syscalls, "ioctl", [0n, (high << 32n) | request])).toEqual(["errno 95"]);
      }),
    );
    // Requests that free space, and neighbors of the refused ones.
    for (const request of [0x40305829n, 0x4030582bn, 0x40305838n, 0x5411n, 0x5413n])
      expect(outcomes(syscalls, "ioctl", [0n, request])).toEqual(["allowed"]);
  });

  it("let personality be queried and set only to harmless values", () => {
    for (const value of [0n, 8n, 0x20000n, 0x20008n, 0xffff_ffffn]) expect(outcomes(syscalls, "personality", [value])).toEqual(["allowed"]);
    for (const value of [0x40000n, 0x400000n, 1n, 0x100000n])
      expect(outcomes(syscalls, "personality", [value])).toEqual([`errno ${EPERM}`]);
    const harmless = [0n, 8n, 0x20000n, 0x20008n, 0xffff_ffffn];
    fc.assert(
      fc.property(
        fc.bigInt(0n, 2n ** 32n - 1n),
        (value) => harmless.includes(value) || outcomes(syscalls, "personality", [value])[0] !== "allowed",
      ),
    );
  });

  it("keep mknod from creating devices", () => {
    for (const [name, at] of [
      ["mknod", 1],
      ["mknodat", 2],
    ] as const) {
      const call = (mode: bigint) => outcomes(syscalls, name, at === 1 ? [0n, mode] : [0n, 0n, mode]);
      for (const mode of [0o644n, 0o010644n, 0o100644n, 0o140600n]) expect(call(mode)).toEqual(["allowed"]);
      for (const mode of [0o020644n, 0o060600n]) expect(call(mode)).toEqual([`errno ${EPERM}`]);
    }
  });
});

describe("the filter of a sandbox that writes to a host folder", () => {
  const modes = { chmod: 1, fchmod: 1, fchmodat: 2, fchmodat2: 2, creat: 1, mknod: 1, mknodat: 2, open: 2, openat: 3 };
  const O_CREAT = 0o100n;
  const O_TMPFILE = 0o20_000_000n;
  const { syscalls } = seccompProfile({ arch: "x64", writesToHost: true });
  const call = (name: keyof typeof modes, mode: bigint, flags = O_CREAT) => {
    const args = [7n, 7n, 7n, 7n];
    args[modes[name]] = mode;
    if (name === "open") args[1] = flags;
    if (name === "openat") args[2] = flags;
    return outcomes(syscalls, name, args);
  };
  const each = Object.keys(modes) as (keyof typeof modes)[];

  it.each(each)("keeps %s from setting a set-user-id or set-group-id bit", (name) => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 64n - 1n), fc.constantFrom(O_CREAT, O_TMPFILE, O_CREAT | 2n), (mode, flags) => {
        const found = call(name, mode, flags);
        expect(found).toHaveLength(1);
        if ((mode & 0o6000n) !== 0n) expect(found).not.toContain("allowed");
      }),
    );
    for (const mode of [0o644n, 0o755n, 0o1777n, 0o100644n]) expect(call(name, mode), name).toEqual(["allowed"]);
  });

  it("opens existing files with any unused mode, and refuses openat2", () => {
    expect(call("openat", 0o4755n, 0n)).toEqual(["allowed"]);
    expect(call("open", 0o4755n, 2n)).toEqual(["allowed"]);
    expect(outcomes(syscalls, "openat2")).toEqual(["errno 38"]);
  });

  it("decides everything else as the usual filter does", () => {
    const usual = seccompProfile({ arch: "x64", writesToHost: false }).syscalls;
    for (const name of [...namesOf(allowed), ...namesOf(refused)].filter((name) => !(name in modes) && name !== "openat2"))
      expect(outcomes(syscalls, name), name).toEqual(outcomes(usual, name));
    for (const mode of [0o020644n, 0o060600n]) expect(call("mknod", mode)).toEqual([`errno ${EPERM}`]);
  });
});

describe("the two filter formats", () => {
  it("support two processors, 64 bits only", () => {
    expect(seccompProfile({ arch: "x64", writesToHost: false }).architectures).toEqual(["SCMP_ARCH_X86_64"]);
    expect(seccompProfile({ arch: "arm64", writesToHost: false }).architectures).toEqual(["SCMP_ARCH_AARCH64"]);
    expect(() => seccompProfile({ arch: "arm", writesToHost: false })).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(() => seccompProfile({ arch: "constructor", writesToHost: false })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });

  it.each([false, true])("give an engine the same rules plus the absent calls (writes to the host: %s)", (writesToHost) => {
    const text = JSON.parse(dockerSeccompProfile({ writesToHost })) as {
      archMap: unknown;
      syscalls: (SeccompRule & { includes?: { arches: string[] } })[];
    };
    expect(text.archMap).toEqual([
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: [] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: [] },
    ]);
    for (const [arch, engine] of [
      ["x64", "amd64"],
      ["arm64", "arm64"],
    ] as const) {
      const rules = text.syscalls
        .filter(({ includes }) => includes === undefined || includes.arches.includes(engine))
        .map(({ includes: _, ...rule }) => rule);
      const { syscalls } = seccompProfile({ arch, writesToHost });
      expect(rules.filter(({ errnoRet }) => errnoRet !== 38)).toEqual(syscalls);
      expect(rules.filter(({ errnoRet }) => errnoRet === 38).flatMap(({ names }) => names)).toContain("clone3");
    }
  });

  it("hide and protect paths that affect the whole machine", () => {
    for (const path of ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sysrq-trigger", "/sys/firmware"])
      expect(maskedPaths).toContain(path);
    for (const path of ["/proc/sys", "/proc/bus", "/proc/irq", "/proc/fs"]) expect(readonlyPaths).toContain(path);
    expect(maskedPaths.filter((path) => readonlyPaths.includes(path))).toEqual([]);
  });
});

/** Calls that Docker's default profile allows to a process without capabilities, or with those of root inside. */
const dockerAllows = `accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown clock_adjtime clock_getres clock_gettime
  clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait
  epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir
  fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate
  futex futex_requeue futex_wait futex_waitv futex_wake futimesat getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername
  getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit get_robust_list getrusage getsid getsockname getsockopt
  get_thread_area gettid gettimeofday getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel ioctl
  io_destroy io_getevents io_pgetevents ioprio_get ioprio_set io_setup io_submit kill landlock_add_rule landlock_create_ruleset
  landlock_restrict_self lchown lgetxattr link linkat listen listmount listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat madvise
  map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr
  mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap
  name_to_handle_at nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll
  ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom
  recvmmsg recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending
  rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_getaffinity sched_getattr sched_getparam
  sched_get_priority_max sched_get_priority_min sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
  sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto setfsgid setfsuid setgid setgroups
  setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit set_robust_list setsid setsockopt set_thread_area set_tid_address
  setuid setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statmount statx symlink
  symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
  timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat uretprobe utime utimensat utimes vfork vmsplice wait4 waitid write
  writev process_vm_readv process_vm_writev ptrace socket personality arch_prctl modify_ldt clone chroot`;
