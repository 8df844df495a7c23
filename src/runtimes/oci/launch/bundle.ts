import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { tmpfsSize } from "../../../sandbox/tmpfs-size.ts";
import { maskedPaths, readonlyPaths } from "../../hardening/seccomp.ts";
import { sandboxHostname, sandboxUser } from "../template/etc-files.ts";
import { isTransparent } from "./transparent.ts";

export interface BundleOptions {
  config: Pick<SandboxConfig, "allowRoot" | "readOnlyPaths" | "deniedPaths" | "tmpBytes" | "shmBytes" | "network">;
  /** The paths that the template covers. */
  hidden: readonly string[];
  /**
   * The number of work group descriptors that the guest receives (6 and up), and whether a descriptor that counts
   * memory kills follows them.
   */
  workDescriptors: number;
  memoryKillsDescriptor: boolean;
  /** Whether the sandbox's files are on a separate disk. Otherwise the guest keeps space free on the host's. */
  ownDisk: boolean;
  /** Whether the launcher prepares a view of the control groups in the bundle. */
  cgroupView: boolean;
  /** The maximum number of processes of the sandbox's user, or null if a control group limits them. */
  processesMax: number | null;
  /** Whether process 1 is separate from the guest, and whether that comes from a memory image. */
  reaper: "none" | "starts" | "restores";
  /** The hard limits of this process. It cannot set higher ones. */
  hardLimits: HardLimits;
}

export const GUEST_PATH = "/.caisson/guest";
/** The descriptors of the listening socket, the token file and the system-call filter. The others follow. */
const LISTEN_FD = 3;
const TOKEN_FD = 4;
const FILTER_FD = 5;
/** The machine has about three thousand in total. */
const TERMINALS_MAX = 64;
const DEV_BYTES = 1024 * 1024;
/** Out of memory, the kernel kills sandboxes before host processes. */
const OOM_SCORE = 500;

/** What the guest needs: to become the sandbox's user, drop capabilities, end its processes and give it terminals. */
const guestCapabilities = ["CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"];
/** What package managers need as root. These capabilities only have an effect inside the user namespace. */
const rootCapabilities = ["CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_NET_BIND_SERVICE", "CAP_SETFCAP", "CAP_SYS_CHROOT"];

/** Lets the guest listen on ports below 1024, for programs without proxy support. */
const transparentCapability = "CAP_NET_BIND_SERVICE";

/**
 * Returns the OCI bundle's config.json. The launcher creates the user and network namespaces, and the OCI runtime
 * itself runs inside them. The system-call filter is not included: the guest installs it before anything else, so the
 * OCI runtime need not compile it for each sandbox.
 */
export function bundleConfig(options: BundleOptions) {
  const { config } = options;
  const capabilities = [
    ...guestCapabilities,
    ...(config.allowRoot ? rootCapabilities : isTransparent(config.network) ? [transparentCapability] : []),
  ];
  return {
    ociVersion: "1.0.2",
    root: { path: "rootfs", readonly: false },
    hostname: sandboxHostname,
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: guestArguments(options),
      // Without HOME, crun would read it from the sandbox's /etc/passwd, and wait forever if that is a FIFO.
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"],
      cwd: "/",
      noNewPrivileges: true,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities, inheritable: [], ambient: [] },
      oomScoreAdj: OOM_SCORE,
      rlimits: resourceLimits(options.hardLimits),
    },
    mounts: [...mounts(config), ...(options.cgroupView ? [cgroupMount] : [])],
    linux: {
      // If there are control groups, the launcher has created the cgroup namespace: its root is the work, not the guest
      // that starts here.
      namespaces: ["pid", "mount", "ipc", "uts", ...(options.workDescriptors === 0 ? ["cgroup"] : [])].map((type) => ({ type })),
      maskedPaths: [...maskedPaths, ...options.hidden, ...config.deniedPaths],
      readonlyPaths: [...readonlyPaths, ...config.readOnlyPaths],
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
    ...{ none: [], starts: ["--reaper"], restores: ["--restored"] }[options.reaper],
    ...["--listen-fd", String(LISTEN_FD), "--token-fd", String(TOKEN_FD), "--filter-fd", String(FILTER_FD)],
    ...["--uid", String(sandboxUser.uid), "--gid", String(sandboxUser.gid), "--home", sandboxUser.home],
    ...(options.config.allowRoot ? ["--allow-root"] : []),
    ...(isTransparent(options.config.network) ? ["--transparent"] : []),
    ...(work.length === 0 ? [] : ["--work-procs-fds", work.join(",")]),
    ...(options.memoryKillsDescriptor ? ["--oom-fd", String(first + work.length)] : []),
    ...(options.ownDisk ? [] : ["--disk-guard"]),
    ...(options.processesMax === null ? [] : ["--nproc", String(options.processesMax)]),
    // The launcher's last descriptor. The launcher holds the other end until it has recorded the guest's pid.
    ...["--leash-fd", String(first + work.length + (options.memoryKillsDescriptor ? 1 : 0))],
  ];
}

/** This process's own hard limits, by the kernel's names. Absent ones are unlimited. */
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

/** Parses the text of /proc/self/limits. */
export function parseHardLimits(text: string): HardLimits {
  const limits: Record<string, number> = {};
  for (const line of text.split("\n")) {
    const [, label, hard] = /^(Max [a-z ]{1,40}?)\s{2,}\S+\s+(\d+)\s/.exec(line) ?? [];
    if (label !== undefined) limits[label] = Number(hard);
  }
  return limits;
}

/** The source is relative to the bundle. Everything mounted in it is already read-only. */
const cgroupMount = {
  destination: "/sys/fs/cgroup",
  type: "bind",
  source: "cgroup",
  options: ["rbind", "ro", "nosuid", "nodev", "noexec"],
};

function mounts({ tmpBytes, shmBytes }: BundleOptions["config"]) {
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
    tmpfs("/dev/shm", ["noexec", "nodev", "mode=1777", ...tmpfsSize(shmBytes)]),
    { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: ["nosuid", "noexec", "nodev"] },
    tmpfs("/tmp", ["nodev", "mode=1777", ...tmpfsSize(tmpBytes)]),
    { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "noexec", "nodev", "ro"] },
  ];
}
