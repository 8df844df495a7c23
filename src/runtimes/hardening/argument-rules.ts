import type { SeccompArgument, SeccompRule } from "./seccomp.ts";

const EPERM = 1;
const EPROTONOSUPPORT = 93;
const EOPNOTSUPP = 95;
const EAFNOSUPPORT = 97;
const LOW_WORD = 0xffff_ffff;

/**
 * Rules for calls that depend on their arguments. The allowed and the refused cases of a call never overlap, and
 * together cover everything that matters: libseccomp does not let a rule with arguments override one without, so "all
 * but" must be spelled out.
 */
interface CallRules {
  readonly name: string;
  readonly why: string;
  readonly only?: "x64" | "arm64";
  readonly rules: SeccompRule[];
}

export const argumentRules: readonly CallRules[] = [clone(), ...socket(), personality(), ioctl(), fallocate(), ...mknod(), ...coreLimit()];

function clone(): CallRules {
  // mount, cgroup, uts, ipc, user, pid, net
  const namespaceFlags = [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
  const all = namespaceFlags.reduce((sum, flag) => sum + flag, 0);
  return {
    name: "clone",
    why: "Creates processes and threads; with these flags, also namespaces.",
    rules: [
      allow("clone", [maskedEqual(0, all, 0)]),
      ...namespaceFlags.map((flag) => refuse("clone", EPERM, [maskedEqual(0, flag, flag)])),
    ],
  };
}

/**
 * Refused families and protocols get the answer of a kernel built without them, so that programs and libaudit continue.
 */
function socket(): CallRules[] {
  const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16];
  const [NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT] = [0, 4, 15];
  const families = [AF_UNIX, AF_INET, AF_INET6];
  const protocols = [NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT];
  const netlink = equal(0, AF_NETLINK);
  return [
    {
      name: "socket",
      why: "Local and internet sockets, and netlink for the lists of interfaces and sockets; no AF_VSOCK, AF_ALG, AF_PACKET and others.",
      rules: [
        ...families.map((family) => allow("socket", [equal(0, family)])),
        ...protocols.map((protocol) => allow("socket", [netlink, equal(2, protocol)])),
        ...allBut([...families, AF_NETLINK], 0).map((condition) => refuse("socket", EAFNOSUPPORT, [condition])),
        ...allBut(protocols, 2).map((condition) => refuse("socket", EPROTONOSUPPORT, [netlink, condition])),
      ],
    },
    {
      name: "socketpair",
      why: "Only local sockets come in pairs.",
      rules: [
        allow("socketpair", [equal(0, AF_UNIX)]),
        ...allBut([AF_UNIX], 0).map((condition) => refuse("socketpair", EAFNOSUPPORT, [condition])),
      ],
    },
  ];
}

function personality(): CallRules {
  const UNAME26_OR_LINUX32 = 0x0002_0008;
  const QUERY = 0xffff_ffff;
  const QUERY_BIT = 0x8000_0000;
  const harmful = Array.from({ length: 31 }, (_, bit) => 2 ** bit).filter((bit) => (bit & UNAME26_OR_LINUX32) === 0);
  return {
    name: "personality",
    why: "Queries, and the two values that only change what uname reports; the others disable randomization and memory protection.",
    rules: [
      allow("personality", [equal(0, QUERY)]),
      allow("personality", [maskedEqual(0, QUERY - UNAME26_OR_LINUX32, 0)]),
      ...harmful.map((bit) => refuse("personality", EPERM, [maskedEqual(0, QUERY_BIT + bit, bit)])),
    ],
  };
}

function ioctl(): CallRules {
  const TIOCSTI = 0x5412;
  // FS_IOC_RESVSP, FS_IOC_RESVSP64 and FS_IOC_ZERO_RANGE: fallocate by other names.
  const allocating = [0x4030_5828, 0x4030_582a, 0x4030_5839];
  return {
    name: "ioctl",
    why: "All but TIOCSTI, which types into a terminal on behalf of its user, and those that allocate disk space at once.",
    rules: [
      ...allButWords([TIOCSTI, ...allocating], 1).map((condition) => allow("ioctl", [condition])),
      refuse("ioctl", EPERM, [maskedEqual(1, LOW_WORD, TIOCSTI)]),
      ...allocating.map((request) => refuse("ioctl", EOPNOTSUPP, [maskedEqual(1, LOW_WORD, request)])),
    ],
  };
}

/** Programs take the answer to mean that the file system lacks the call, and write the bytes instead. */
function fallocate(): CallRules {
  const PUNCH_HOLE = 0x02;
  const COLLAPSE_RANGE = 0x08;
  return {
    name: "fallocate",
    why: "Freeing space. Allocating it would fill the host's disk in one call, before the guest could react.",
    rules: [
      allow("fallocate", [maskedEqual(1, PUNCH_HOLE, PUNCH_HOLE)]),
      allow("fallocate", [maskedEqual(1, COLLAPSE_RANGE, COLLAPSE_RANGE)]),
      refuse("fallocate", EOPNOTSUPP, [maskedEqual(1, PUNCH_HOLE + COLLAPSE_RANGE, 0)]),
    ],
  };
}

function mknod(): CallRules[] {
  const FORMAT = 0o170000;
  const harmless = [0, 0o010000, 0o100000, 0o140000]; // unspecified, FIFO, file, socket
  const rest = Array.from({ length: 16 }, (_, index) => index * 0o010000).filter((format) => !harmless.includes(format));
  const rules = (name: string, index: number) => [
    ...harmless.map((format) => allow(name, [maskedEqual(index, FORMAT, format)])),
    ...rest.map((format) => refuse(name, EPERM, [maskedEqual(index, FORMAT, format)])),
  ];
  const why = "FIFOs, sockets and regular files; never a device.";
  return [
    { name: "mknodat", why, rules: rules("mknodat", 2) },
    { name: "mknod", why, only: "x64", rules: rules("mknod", 1) },
  ];
}

/**
 * Returns conditions that match every number whose lower 32 bits are not one of the values. The kernel only reads those
 * bits, so a 64-bit comparison could be bypassed with a higher bit. From the top bit down, each condition matches the
 * numbers that first differ from all values at that bit.
 */
function allButWords(values: readonly number[], index: number): SeccompArgument[] {
  const leave = (prefix: number, mask: number, bit: number): SeccompArgument[] => {
    if (!values.some((value) => applyMask(value, mask) === prefix)) return [maskedEqual(index, mask, prefix)];
    return bit < 1 ? [] : [prefix, prefix + bit].flatMap((next) => leave(next, mask + bit, bit / 2));
  };
  return leave(0, 0, 2 ** 31);
}

/** JavaScript's `&` is signed. */
function applyMask(value: number, mask: number): number {
  return Number(BigInt(value) & BigInt(mask));
}

/**
 * Core dumps are limited to 1 byte, the only value that also keeps the machine's core handler from starting. A request
 * for another limit succeeds without effect, because programs that turn off core dumps would otherwise give up.
 */
function coreLimit(): CallRules[] {
  const RLIMIT_CORE = 4;
  const RESOURCES = 16;
  const SUCCESS = 0;
  const LOW_WORD = 0xffff_ffff;
  const others = Array.from({ length: RESOURCES }, (_, resource) => resource).filter((resource) => resource !== RLIMIT_CORE);
  const why = "Limits of all resources but the core size, which stays as it is.";
  return [
    {
      name: "setrlimit",
      why,
      rules: [
        ...others.map((resource) => allow("setrlimit", [maskedEqual(0, LOW_WORD, resource)])),
        refuse("setrlimit", SUCCESS, [maskedEqual(0, LOW_WORD, RLIMIT_CORE)]),
      ],
    },
    {
      name: "prlimit64",
      why,
      rules: [
        ...others.map((resource) => allow("prlimit64", [maskedEqual(1, LOW_WORD, resource)])),
        allow("prlimit64", [maskedEqual(1, LOW_WORD, RLIMIT_CORE), equal(2, 0)]),
        refuse("prlimit64", SUCCESS, [maskedEqual(1, LOW_WORD, RLIMIT_CORE), { index: 2, value: 0, op: "SCMP_CMP_GT" }]),
      ],
    },
  ];
}

function allow(name: string, args: SeccompArgument[]): SeccompRule {
  return { names: [name], action: "SCMP_ACT_ALLOW", args };
}
function refuse(name: string, errnoRet: number, args: SeccompArgument[]): SeccompRule {
  return { names: [name], action: "SCMP_ACT_ERRNO", errnoRet, args };
}
function equal(index: number, value: number): SeccompArgument {
  return { index, value, op: "SCMP_CMP_EQ" };
}
export function maskedEqual(index: number, mask: number, value: number): SeccompArgument {
  return { index, value: mask, valueTwo: value, op: "SCMP_CMP_MASKED_EQ" };
}
/** Returns one condition for each unlisted number below the largest, and one for everything above it. */
function allBut(values: readonly number[], index: number): SeccompArgument[] {
  const largest = Math.max(...values);
  const below = Array.from({ length: largest }, (_, value) => value).filter((value) => !values.includes(value));
  return [...below.map((value) => equal(index, value)), { index, value: largest, op: "SCMP_CMP_GT" }];
}
