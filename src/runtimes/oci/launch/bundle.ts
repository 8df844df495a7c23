import type { SandboxSpec } from "../../../contract/sandbox.ts";
import { tmpfsSize } from "../../../sandbox/tmpfs-size.ts";
import { maskedPaths, readonlyPaths } from "../../hardening/seccomp.ts";
import { sandboxHostname, sandboxUser } from "../template/etc-files.ts";
import { isTransparent } from "./transparent.ts";

export interface BundleOptions {
  spec: Pick<SandboxSpec, "allowRoot" | "readOnlyPaths" | "deniedPaths" | "tmpBytes" | "network">;
  /** Paths the template wants covered. */
  hidden: readonly string[];
  /**
   * How many descriptors of work groups the guest is given, from 6 on; and whether the one that counts kills for memory
   * follows.
   */
  workDescriptors: number;
  memoryKillsDescriptor: boolean;
  /** Whether its files lie on a disk of their own; otherwise the guest leaves room on the host's. */
  ownDisk: boolean;
  /** The launcher prepares what is to be seen of the control groups, in the bundle. */
  cgroupView: boolean;
  /** The most processes of the sandbox's user, where no control group limits them. */
  processesMax: number | null;
  /** The highest limits that this process may give away. */
  hardLimits: HardLimits;
}

export const GUEST_PATH = "/.caisson/guest";
/**
 * The descriptors of the listening socket, of the file with the token and of the one with the filter of system calls;
 * the others follow them.
 */
const LISTEN_FD = 3;
const TOKEN_FD = 4;
const FILTER_FD = 5;
/** The machine has about three thousand for all. */
const TERMINALS_MAX = 64;
const SHM_BYTES = 64 * 1024 * 1024;
const DEV_BYTES = 1024 * 1024;
/** Sandboxes die before anything of the host does. */
const OOM_SCORE = 500;

/** What the guest needs: to become the sandbox's user, drop capabilities, end its processes and give it terminals. */
const guestCapabilities = ["CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"];
/** What package managers need of root. They mean something inside the user namespace only. */
const rootCapabilities = ["CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_NET_BIND_SERVICE", "CAP_SETFCAP", "CAP_SYS_CHROOT"];

/** The guest listens on the ports of the world's services for programs that know nothing of proxies. */
const transparentCapability = "CAP_NET_BIND_SERVICE";

/**
 * The OCI bundle's config.json. User and network namespace are the launcher's: the OCI runtime itself runs inside them.
 * The filter of system calls is not in it: the guest puts it on before anything else, which spares the OCI runtime to
 * compile it for each sandbox.
 */
export function bundleConfig(options: BundleOptions) {
  const { spec } = options;
  const capabilities = [
    ...guestCapabilities,
    ...(spec.allowRoot ? rootCapabilities : isTransparent(spec.network) ? [transparentCapability] : []),
  ];
  return {
    ociVersion: "1.0.2",
    root: { path: "rootfs", readonly: false },
    hostname: sandboxHostname,
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: guestArguments(options),
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      cwd: "/",
      noNewPrivileges: true,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities, inheritable: [], ambient: [] },
      oomScoreAdj: OOM_SCORE,
      rlimits: resourceLimits(options.hardLimits),
    },
    mounts: [...mounts(spec.tmpBytes), ...(options.cgroupView ? [cgroupMount] : [])],
    linux: {
      // Where there are groups the launcher has made that of cgroups: its root is the work, not the guest that starts
      // here.
      namespaces: ["pid", "mount", "ipc", "uts", ...(options.workDescriptors === 0 ? ["cgroup"] : [])].map((type) => ({ type })),
      maskedPaths: [...maskedPaths, ...options.hidden, ...spec.deniedPaths],
      readonlyPaths: [...readonlyPaths, ...spec.readOnlyPaths],
      rootfsPropagation: "private",
    },
  };
}

function guestArguments(options: BundleOptions): string[] {
  const first = FILTER_FD + 1;
  const work = Array.from({ length: options.workDescriptors }, (_, index) => first + index);
  return [
    GUEST_PATH,
    "init",
    ...["--listen-fd", String(LISTEN_FD), "--token-fd", String(TOKEN_FD), "--filter-fd", String(FILTER_FD)],
    ...["--uid", String(sandboxUser.uid), "--gid", String(sandboxUser.gid), "--home", sandboxUser.home],
    ...(options.spec.allowRoot ? ["--allow-root"] : []),
    ...(isTransparent(options.spec.network) ? ["--transparent"] : []),
    ...(work.length === 0 ? [] : ["--work-procs-fds", work.join(",")]),
    ...(options.memoryKillsDescriptor ? ["--oom-fd", String(first + work.length)] : []),
    ...(options.ownDisk ? [] : ["--disk-guard"]),
    ...(options.processesMax === null ? [] : ["--nproc", String(options.processesMax)]),
    // The launcher's last descriptor: it holds the other end until the guest's number is written down.
    ...["--leash-fd", String(first + work.length + (options.memoryKillsDescriptor ? 1 : 0))],
  ];
}

/** This process's own hard limits, by the kernel's names; absent ones are unlimited. */
export type HardLimits = Readonly<Record<string, number>>;

const wantedLimits = [
  { type: "RLIMIT_NOFILE", label: "Max open files", most: 65_536, soft: 8_192 },
  { type: "RLIMIT_MEMLOCK", label: "Max locked memory", most: 65_536 },
  { type: "RLIMIT_SIGPENDING", label: "Max pending signals", most: 16_384 },
  { type: "RLIMIT_MSGQUEUE", label: "Max msgqueue size", most: 819_200 },
];

function resourceLimits(own: HardLimits) {
  return wantedLimits.map(({ type, label, most, soft }) => {
    const hard = Math.min(most, own[label] ?? most);
    return { type, hard, soft: Math.min(hard, soft ?? hard) };
  });
}

/** From the text of /proc/self/limits. */
export function parseHardLimits(text: string): HardLimits {
  const limits: Record<string, number> = {};
  for (const line of text.split("\n")) {
    const [, label, hard] = /^(Max [a-z ]{1,40}?)\s{2,}\S+\s+(\d+)\s/.exec(line) ?? [];
    if (label !== undefined) limits[label] = Number(hard);
  }
  return limits;
}

/** Relative to the bundle; all that is mounted in it is read-only already. */
const cgroupMount = {
  destination: "/sys/fs/cgroup",
  type: "bind",
  source: "cgroup",
  options: ["rbind", "ro", "nosuid", "nodev", "noexec"],
};

function mounts(tmpBytes: number) {
  const tmpfs = (destination: string, options: string[]) => ({
    destination,
    type: "tmpfs",
    source: "tmpfs",
    options: ["nosuid", ...options],
  });
  return [
    { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
    tmpfs("/dev", ["noexec", "strictatime", "mode=755", ...tmpfsSize(DEV_BYTES)]),
    {
      destination: "/dev/pts",
      type: "devpts",
      source: "devpts",
      options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", `max=${TERMINALS_MAX}`],
    },
    tmpfs("/dev/shm", ["noexec", "nodev", "mode=1777", ...tmpfsSize(SHM_BYTES)]),
    { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: ["nosuid", "noexec", "nodev"] },
    tmpfs("/tmp", ["nodev", "mode=1777", ...tmpfsSize(tmpBytes)]),
    { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "noexec", "nodev", "ro"] },
  ];
}
