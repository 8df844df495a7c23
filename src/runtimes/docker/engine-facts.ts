import { z } from "zod";
import type { Capabilities } from "../../contract/sandbox.ts";

/** What of `GET /info` matters here; engines leave fields out as they like. */
export const EngineInfo = z.object({
  Architecture: z.string().default(""),
  NCPU: z.number().default(1),
  Driver: z.string().default(""),
  DriverStatus: z.array(z.array(z.string())).nullish(),
  MemoryLimit: z.boolean().default(false),
  SwapLimit: z.boolean().default(false),
  CpuCfsQuota: z.boolean().default(false),
  PidsLimit: z.boolean().default(false),
  CgroupDriver: z.string().default(""),
  CgroupVersion: z.string().default("1"),
  DockerRootDir: z.string().default(""),
  DefaultRuntime: z.string().default(""),
  ServerVersion: z.string().default(""),
  SecurityOptions: z.array(z.string()).nullish(),
  Rootless: z.boolean().optional(),
});
export type EngineInfo = z.infer<typeof EngineInfo>;

export const EngineVersion = z.object({
  ApiVersion: z.string().default(""),
  Components: z.array(z.object({ Name: z.string() })).nullish(),
});
export type EngineVersion = z.infer<typeof EngineVersion>;

/** What an engine is and can enforce, as far as it decides what we ask of it. */
export interface EngineFacts {
  kind: "docker" | "podman";
  version: string;
  /** Node's name of the processor, or the engine's own when there is none. */
  architecture: string;
  cpus: number;
  cgroupVersion: string;
  cgroupDriver: string;
  rootless: boolean;
  /**
   * The host's ids of root inside, where the engine maps them by a user namespace of its own; null when it does not.
   */
  remappedRoot: { uid: number; gid: number } | null;
  seccomp: boolean;
  limits: Capabilities["limits"];
  storage: string;
  ociRuntime: string;
}

export interface EngineSigns {
  info: EngineInfo;
  version: EngineVersion;
  /**
   * The text of /proc/self/mountinfo: whether a folder's size can be limited is a matter of how its disk is mounted.
   */
  mountinfo: string;
  /**
   * The cgroup controllers that the engine's user was given, as the kernel lists them; matters for a rootless engine
   * only.
   */
  delegated: string;
}

export function engineFacts(options: EngineSigns): EngineFacts {
  const { info, version } = options;
  const security = info.SecurityOptions ?? [];
  const rootless = info.Rootless ?? security.some((option) => option.startsWith("name=rootless"));
  const podman = (version.Components ?? []).some(({ Name }) => Name.startsWith("Podman"));
  return {
    kind: podman ? "podman" : "docker",
    version: info.ServerVersion,
    architecture: nodeArchitectures[info.Architecture] ?? info.Architecture,
    cpus: info.NCPU,
    cgroupVersion: info.CgroupVersion,
    cgroupDriver: info.CgroupDriver,
    rootless,
    remappedRoot: security.some((option) => option.startsWith("name=userns")) ? remappedRoot(info.DockerRootDir) : null,
    seccomp: security.some((option) => option.startsWith("name=seccomp")),
    limits: limitsOf(options, rootless),
    storage: info.Driver,
    ociRuntime: info.DefaultRuntime,
  };
}

/**
 * A rootless engine says what the kernel could do, and passes over limits that it has no means to set: it needs cgroup
 * v2, systemd, and each controller delegated to its user.
 */
function limitsOf({ info, mountinfo, delegated }: EngineSigns, rootless: boolean): Capabilities["limits"] {
  const given = new Set(delegated.split(/\s+/));
  const can = (controller: string) => !rootless || (info.CgroupVersion === "2" && info.CgroupDriver === "systemd" && given.has(controller));
  return {
    cpus: info.CpuCfsQuota && can("cpu"),
    // Without a limit on swap, memory pages out and the limit is none.
    memoryBytes: info.MemoryLimit && info.SwapLimit && can("memory"),
    pids: info.PidsLimit && can("pids"),
    diskBytes: canLimitDisk(info, mountinfo),
  };
}

const nodeArchitectures: Readonly<Record<string, string>> = { x86_64: "x64", amd64: "x64", aarch64: "arm64", arm64: "arm64" };

/** Docker names its data folder `<uid>.<gid>` after the ids that root is mapped to. */
function remappedRoot(rootDir: string): { uid: number; gid: number } | null {
  const [, uid, gid] = /\/(\d+)\.(\d+)$/.exec(rootDir) ?? [];
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

function canLimitDisk(info: EngineInfo, mountinfo: string): boolean {
  if (info.Driver === "btrfs" || info.Driver === "zfs") return true;
  const backing = (info.DriverStatus ?? []).find(([name]) => name === "Backing Filesystem")?.[1];
  if (!info.Driver.startsWith("overlay") || backing !== "xfs") return false;
  return /\b(pquota|prjquota)\b/.test(mountOf(info.DockerRootDir, mountinfo));
}

/** The line of the mount that a folder lies on: the one with the longest mount point that leads to it. */
function mountOf(folder: string, mountinfo: string): string {
  let best = { point: "", line: "" };
  for (const line of mountinfo.split("\n")) {
    const point = line.split(" ")[4] ?? "";
    const leads = folder === point || folder.startsWith(point.endsWith("/") ? point : `${point}/`);
    if (point !== "" && leads && point.length >= best.point.length) best = { point, line };
  }
  return best.line;
}

function noLimit(facts: EngineFacts, name: string): string {
  if (!facts.rootless) return `The engine reports no ${name} limit: its cgroup controller is not in the kernel.`;
  return `A rootless engine limits ${name} only on cgroup v2 with systemd, and with the controller delegated to its user (Delegate=cpu memory pids in user@.service).`;
}

export function capabilitiesOf(facts: EngineFacts, options: { defaultImage: string | null }): Capabilities {
  const reasons: Record<string, string> = {};
  if (options.defaultImage === null) reasons.host = "A sandbox here starts from one of the engine's images: name one, or a default image.";
  if (!facts.limits.diskBytes) {
    reasons.diskBytes = `The engine's storage (${facts.storage}) cannot limit a sandbox's size; overlay2 on xfs mounted with pquota can, btrfs and zfs too.`;
  }
  for (const [limit, name] of [
    ["cpus", "cpu"],
    ["memoryBytes", "memory (with swap)"],
    ["pids", "pids"],
  ] as const) {
    if (!facts.limits[limit]) reasons[limit] = noLimit(facts, name);
  }
  const mapped = facts.rootless || facts.remappedRoot !== null;
  if (mapped)
    reasons.rw =
      "The engine maps user ids, so that files written inside would not belong to the folder's owner; use overlay or ro, or the oci runtime.";
  // Without the freezer of cgroup v2, a rootless engine has nothing to freeze with.
  const pause = !(facts.rootless && facts.cgroupVersion === "1");
  if (!pause) reasons.pause = "A rootless engine on cgroup v1 cannot freeze processes.";
  const paths = facts.kind === "docker";
  if (!paths) reasons.paths = "Podman's Docker-compatible interface cannot make paths read-only; use Docker or the oci runtime.";
  reasons.transparentNetwork =
    "The engine makes the network namespace, and gives nobody the right to route every address in it to the guest; use the oci runtime.";
  reasons.terminals =
    "The engine mounts /dev/pts itself and cannot be asked for a limit: the machine's terminals are shared by all sandboxes.";
  return {
    isolation: 1,
    sharesHostFilesystem: false,
    templates: options.defaultImage === null ? ["image", "snapshot"] : ["host", "image", "snapshot"],
    workspaceAccess: mapped ? ["overlay", "ro"] : ["overlay", "rw", "ro"],
    mounts: mapped ? ["overlay", "ro"] : ["overlay", "rw", "ro"],
    workspaceLayer: false,
    limits: facts.limits,
    network: ["none", "allow", "open"],
    transparentNetwork: false,
    rootUser: true,
    pause,
    snapshot: true,
    paths,
    reattach: true,
    reasons,
  };
}
