import type { SeccompArgument, SeccompRule } from "./seccomp.ts";

const EPERM = 1;
const EPROTONOSUPPORT = 93;
const EAFNOSUPPORT = 97;

/**
 * Calls whose arguments decide. The allowed and the refused cases of a call never overlap and leave nothing between them that matters:
 * libseccomp does not let a rule with arguments override one without, so "all but" has to be spelled out.
 */
interface CallRules {
  readonly name: string;
  readonly why: string;
  readonly only?: "x64" | "arm64";
  readonly rules: SeccompRule[];
}

export const argumentRules: readonly CallRules[] = [clone(), ...socket(), personality(), ioctl(), ...mknod()];

function clone(): CallRules {
  // mount, cgroup, uts, ipc, user, pid, net
  const namespaceFlags = [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000];
  const all = namespaceFlags.reduce((sum, flag) => sum + flag, 0);
  return {
    name: "clone",
    why: "Makes processes and threads, and, with these flags, namespaces.",
    rules: [
      allow("clone", [maskedEqual(0, all, 0)]),
      ...namespaceFlags.map((flag) => refuse("clone", EPERM, [maskedEqual(0, flag, flag)])),
    ],
  };
}

/** Families and protocols that are refused answer as from a kernel built without them, so that programs and libaudit go on. */
function socket(): CallRules[] {
  const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16];
  const [NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT] = [0, 4, 15];
  const families = [AF_UNIX, AF_INET, AF_INET6];
  const protocols = [NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_KOBJECT_UEVENT];
  const netlink = equal(0, AF_NETLINK);
  return [
    {
      name: "socket",
      why: "Local and internet sockets, and of netlink the lists of interfaces and sockets; no AF_VSOCK, AF_ALG, AF_PACKET and the rest.",
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
    why: "Asking, and the two values that only change what uname says; the others switch off randomisation and protection of memory.",
    rules: [
      allow("personality", [equal(0, QUERY)]),
      allow("personality", [maskedEqual(0, QUERY - UNAME26_OR_LINUX32, 0)]),
      ...harmful.map((bit) => refuse("personality", EPERM, [maskedEqual(0, QUERY_BIT + bit, bit)])),
    ],
  };
}

function ioctl(): CallRules {
  const TIOCSTI = 0x5412;
  const LOW_WORD = 0xffff_ffff;
  // The kernel looks at 32 bits only, so a comparison of all 64 could be passed by with a bit above them: some bit of the 32 must differ.
  const differing = Array.from({ length: 32 }, (_, index) => 2 ** index).map((bit) => {
    const expected = Math.floor(TIOCSTI / bit) % 2 === 1 ? 0 : bit;
    return allow("ioctl", [maskedEqual(1, bit, expected)]);
  });
  return {
    name: "ioctl",
    why: "All but TIOCSTI, which types into a terminal on behalf of whoever sits there.",
    rules: [...differing, refuse("ioctl", EPERM, [maskedEqual(1, LOW_WORD, TIOCSTI)])],
  };
}

function mknod(): CallRules[] {
  const FORMAT = 0o170000;
  const harmless = [0, 0o010000, 0o100000, 0o140000]; // nothing said, FIFO, file, socket
  const rest = Array.from({ length: 16 }, (_, index) => index * 0o010000).filter((format) => !harmless.includes(format));
  const rules = (name: string, index: number) => [
    ...harmless.map((format) => allow(name, [maskedEqual(index, FORMAT, format)])),
    ...rest.map((format) => refuse(name, EPERM, [maskedEqual(index, FORMAT, format)])),
  ];
  const why = "FIFOs, sockets and plain files; never a device.";
  return [
    { name: "mknodat", why, rules: rules("mknodat", 2) },
    { name: "mknod", why, only: "x64", rules: rules("mknod", 1) },
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
function maskedEqual(index: number, mask: number, value: number): SeccompArgument {
  return { index, value: mask, valueTwo: value, op: "SCMP_CMP_MASKED_EQ" };
}
/** One condition for each number below the largest that is not listed, and one for everything above it. */
function allBut(values: readonly number[], index: number): SeccompArgument[] {
  const largest = Math.max(...values);
  const below = Array.from({ length: largest }, (_, value) => value).filter((value) => !values.includes(value));
  return [...below.map((value) => equal(index, value)), { index, value: largest, op: "SCMP_CMP_GT" }];
}
