import { CaissonError } from "../../contract/error/error.ts";
import { argumentRules } from "./argument-rules.ts";
import { setIdRefusals, withoutSetId } from "./set-id-rules.ts";
import { absent, allowed, type CallGroup, refused } from "./system-calls.ts";

const EPERM = 1;
const ENOSYS = 38;

type Operator = "SCMP_CMP_EQ" | "SCMP_CMP_NE" | "SCMP_CMP_LT" | "SCMP_CMP_LE" | "SCMP_CMP_GT" | "SCMP_CMP_GE" | "SCMP_CMP_MASKED_EQ";

export interface SeccompArgument {
  index: number;
  value: number;
  valueTwo?: number;
  op: Operator;
}

export interface SeccompRule {
  names: string[];
  action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  errnoRet?: number;
  args?: SeccompArgument[];
}

/** `linux.seccomp` of an OCI config.json. */
export interface OciSeccomp {
  defaultAction: "SCMP_ACT_ERRNO";
  defaultErrnoRet: number;
  architectures: string[];
  syscalls: SeccompRule[];
}

const architectures = {
  x64: { oci: "SCMP_ARCH_X86_64", docker: "amd64" },
  arm64: { oci: "SCMP_ARCH_AARCH64", docker: "arm64" },
} as const;
type Arch = keyof typeof architectures;

export interface FilterOptions {
  /** Whether a host folder is writable. If so, the filter keeps code inside from creating set-user-id files. */
  writesToHost: boolean;
}

/**
 * Returns the filter for an OCI bundle. `arch` is Node's name for the processor. Only its 64-bit calls pass: a program
 * that enters the kernel through the 32-bit or x32 entry is killed, since numbers mean other calls there. Throws
 * `unsupported` for other processors.
 */
export function seccompProfile(options: FilterOptions & { arch: string }): OciSeccomp {
  const { arch } = options;
  if (!isArch(arch)) {
    throw new CaissonError("unsupported", `no system-call filter exists for the processor ${arch}`, {
      hint: `Use a machine with one of these processors: ${Object.keys(architectures).join(", ")}.`,
    });
  }
  return {
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: ENOSYS,
    architectures: [architectures[arch].oci],
    // `absent` is left out: it equals the default action, and libseccomp rejects such a rule.
    syscalls: rulesFor(options).flatMap(({ rule, only }) => (only === undefined || only === arch ? [rule] : [])),
  };
}

/**
 * Returns the same filter as text for an engine's `seccomp=` option. One text serves both processors: the engine drops
 * the rules of the other. Engines that predate `defaultErrnoRet` answer EPERM to unknown calls, so the absent ones are
 * spelled out for them.
 */
export function dockerSeccompProfile(options: FilterOptions): string {
  const spelledOut = absent.map(({ names, only }) => ({ rule: absentRule(names), only }));
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: ENOSYS,
    archMap: Object.values(architectures).map(({ oci }) => ({ architecture: oci, subArchitectures: [] })),
    syscalls: [...rulesFor(options), ...spelledOut].map(({ rule, only }) =>
      only === undefined ? rule : { ...rule, includes: { arches: [architectures[only].docker] } },
    ),
  });
}

interface ArchRule {
  rule: SeccompRule;
  only: Arch | undefined;
}

/** Returns the rules that both filter formats share. */
function rulesFor(options: FilterOptions): ArchRule[] {
  const rules: ArchRule[] = [
    ...allowed.map((group) => ({ rule: allow(group), only: group.only })),
    ...refused.map((group) => ({ rule: refuse(group), only: group.only })),
    ...argumentRules.flatMap((call) => call.rules.map((rule) => ({ rule, only: call.only }))),
  ];
  if (!options.writesToHost) return rules;
  const calls = [...allowed, ...argumentRules.map(({ name, only }) => ({ names: [name], only }))];
  return [
    ...rules.flatMap(({ rule, only }) => withoutSetId(rule).map((each) => ({ rule: each, only }))),
    ...calls.flatMap(({ names, only }) => setIdRefusals(names).map((rule) => ({ rule, only }))),
  ];
}

const absentRule = (names: readonly string[]): SeccompRule => ({ names: [...names], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS });
const allow = (group: CallGroup): SeccompRule => ({ names: [...group.names], action: "SCMP_ACT_ALLOW" });
const refuse = (group: CallGroup): SeccompRule => ({ names: [...group.names], action: "SCMP_ACT_ERRNO", errnoRet: EPERM });
const isArch = (arch: string): arch is Arch => Object.hasOwn(architectures, arch);

/** Paths hidden inside under an empty file or folder. They reveal facts about the whole machine, or affect it. */
export const maskedPaths: readonly string[] = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/key-users",
  "/proc/keys",
  "/proc/kmsg",
  "/proc/latency_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/sysrq-trigger",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/sys/devices/virtual/powercap",
  "/sys/devices/virtual/thermal",
  "/sys/firmware",
  "/sys/fs/selinux",
];

/** Paths that are visible but never writable, even for root: settings of the whole machine. */
export const readonlyPaths: readonly string[] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/mtrr", "/proc/sys"];
