import { z } from "zod";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";

/** The fields of `GET /info` that we use. Engines may leave out any of them. */
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

/** What an engine is and can enforce, where that affects our requests. */
export interface EngineFacts {
  kind: "docker" | "podman";
  version: string;
  /** Node's name for the processor, or the engine's if Node has none. */
  architecture: string;
  cpus: number;
  cgroupVersion: string;
  cgroupDriver: string;
  rootless: boolean;
  /** The host ids of root inside if the engine maps them with a user namespace, otherwise null. */
  remappedRoot: { uid: number; gid: number } | null;
  seccomp: boolean;
  limits: Capabilities["limits"];
  storage: string;
  ociRuntime: string;
}

export interface EngineSigns {
  info: EngineInfo;
  version: EngineVersion;
  /** The text of /proc/self/mountinfo. The mount options of a disk decide whether a folder's size can be limited. */
  mountinfo: string;
  /**
   * The cgroup controllers delegated to the engine's user, as the kernel lists them. Only used for a rootless engine.
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
 * A rootless engine reports what the kernel supports, and ignores limits that it cannot set: it needs cgroup v2,
 * systemd, and each controller delegated to its user.
 */
function limitsOf({ info, mountinfo, delegated }: EngineSigns, rootless: boolean): Capabilities["limits"] {
  const controllers = new Set(delegated.split(/\s+/));
  const can = (controller: string) =>
    !rootless || (info.CgroupVersion === "2" && info.CgroupDriver === "systemd" && controllers.has(controller));
  return {
    cpus: info.CpuCfsQuota && can("cpu"),
    // Without a swap limit, memory is paged out and the limit has no effect.
    memoryBytes: info.MemoryLimit && info.SwapLimit && can("memory"),
    pids: info.PidsLimit && can("pids"),
    diskBytes: canLimitDisk(info, mountinfo),
  };
}

const nodeArchitectures: Readonly<Record<string, string>> = { x86_64: "x64", amd64: "x64", aarch64: "arm64", arm64: "arm64" };

/** Docker names its data folder `<uid>.<gid>` after the ids that root maps to. */
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

/** Returns the mountinfo line of the mount that contains a folder: the one with the longest matching mount point. */
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
  if (!facts.rootless) return `The engine reports no ${name} limit: the kernel lacks its cgroup controller.`;
  return `A rootless engine limits ${name} only on cgroup v2 with systemd, and only if the controller is delegated to its user (Delegate=cpu memory pids in user@.service).`;
}

export function capabilitiesOf(facts: EngineFacts, options: { defaultImage: string | null }): Capabilities {
  const reasons: Record<string, string> = {};
  if (options.defaultImage === null) reasons.host = "A sandbox here starts from an engine image: name one, or set a default image.";
  if (!facts.limits.diskBytes) {
    reasons.diskBytes = `The engine's storage (${facts.storage}) cannot limit a sandbox's size; overlay2 on xfs mounted with pquota, btrfs and zfs can.`;
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
      "The engine maps user ids, so files written inside would not belong to the folder's owner; use overlay or ro, or the oci runtime.";
  // On cgroup v1, a rootless engine has no freezer.
  const pause = !(facts.rootless && facts.cgroupVersion === "1");
  if (!pause) reasons.pause = "A rootless engine on cgroup v1 cannot freeze processes.";
  const paths = facts.kind === "docker";
  if (!paths) reasons.paths = "Podman's Docker-compatible interface cannot make paths read-only; use Docker or the oci runtime.";
  reasons.transparentNetwork =
    "The engine creates the network namespace and does not let us route every address in it to the guest; use the oci runtime.";
  reasons.terminals = "The engine mounts /dev/pts itself and offers no limit: all sandboxes share the machine's terminals.";
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
