import type { ContainerCreateOptions } from "dockerode";
import type { SandboxId } from "../../contract/ids.ts";
import type { Limits, SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { tokenName } from "../../sandbox/guest-token.ts";
import { insideTarget } from "../../sandbox/inside-folder.ts";
import { tmpfsSize } from "../../sandbox/tmpfs-size.ts";
import { maskedPaths, readonlyPaths } from "../hardening/seccomp.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** The guest's path inside. Any user may run it; if root is allowed, `sudo` is a link to it. */
export const guestInside = "/.caisson/guest";
/**
 * A folder of root's that sandboxed programs cannot enter. It holds the socket's folder, which belongs to a host user
 * whose uid those programs may run as.
 */
export const privateInside = "/.caisson/private";
export const socketFolderInside = `${privateInside}/socket`;
export const socketName = "guest.sock";

export const homeInside = "/home/user";
export const workspaceInside = "/workspace";

export const labels = {
  sandbox: "caisson.sandbox",
  /**
   * The state folder that the sandbox belongs to. Two state folders may share an engine; neither sweeps the other's
   * sandboxes.
   */
  state: "caisson.state",
  snapshot: "caisson.snapshot",
  name: "caisson.name",
  owner: "caisson.owner",
  /** The uid of the sandbox's user, who owns the files in a snapshot. */
  workUid: "caisson.uid",
  /** Marks an image that exists only for the named sandbox. */
  onlyFor: "caisson.only-for",
  /** Marks a snapshot that is a point of a session: when it was taken, and a digest of what its sandbox contained. */
  point: "caisson.point",
} as const;

/** Extra processes for the guest and its file workers. A limit on their uid holds sandboxed programs to `pids`. */
const GUEST_PIDS = 64;
const OPEN_FILES_MAX = 16_384;
/** Podman's default exceeds what some machines allow. */
const PODMAN_NPROC = 32_768;
/**
 * What the guest itself needs: to become the sandbox's user, drop capabilities, end that user's processes and give it a
 * terminal.
 */
const guestCapabilities = ["SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN"];
/** What package managers need in addition. Only commands that run as `root` get them. */
const rootCapabilities = ["DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SYS_CHROOT", "NET_BIND_SERVICE"];

/**
 * Files that the kernel shows only to the machine's root. If the engine uses no user namespace, root inside is that
 * root.
 */
const rootsPaths = ["kpagecgroup", "kpagecount", "kpageflags", "pagetypeinfo", "slabinfo", "vmallocinfo"].map((name) => `/proc/${name}`);
const hiddenPaths = [...maskedPaths, ...rootsPaths];

export interface ContainerRequest {
  id: SandboxId;
  config: SandboxConfig;
  limits: Limits;
  facts: EngineFacts;
  /** The image's id: unlike a name, it cannot be moved to another image. */
  image: string;
  workUid: number;
  /** Whether RLIMIT_NPROC may limit sandboxed programs: only if the uid is not used elsewhere on this machine. */
  ownUid: boolean;
  guestPath: string;
  socketFolder: string;
  /** Mounted read-only at /run/caisson. */
  insideFolder: string;
  stateLabel: string;
  /** The profile's text for Docker, or the path of a file with it for Podman. */
  seccomp: string;
  /** Host folders bound inside. `covered` lists the paths in the folder that appear empty. */
  binds: readonly FolderBind[];
  /** The host group that the guest joins to reach its socket's folder. */
  socketGroup: number | null;
  cgroupParent: string | null;
}

export interface FolderBind {
  source: string;
  target: string;
  readOnly: boolean;
  covered: readonly string[];
}

/** Builds the engine's request for one sandbox. Pure, so that tests can inspect it. */
export function containerConfig(request: ContainerRequest): ContainerCreateOptions {
  const { id, facts } = request;
  return {
    name: containerName(id),
    Image: request.image,
    Entrypoint: [guestInside],
    Cmd: guestArguments(request),
    // The guest starts as root inside, regardless of the image's user, and drops the privileges that it does not need.
    User: "0:0",
    WorkingDir: "/",
    Env: [],
    Hostname: "caisson",
    Labels: { ...withoutReserved(request.config.labels), [labels.sandbox]: id, [labels.state]: request.stateLabel },
    Tty: false,
    OpenStdin: false,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    NetworkDisabled: true,
    StopSignal: "SIGKILL",
    // The engine would run the image's health check as root, bypassing the guest.
    Healthcheck: { Test: ["NONE"] },
    HostConfig: hostConfig(request, facts),
  };
}

export function containerName(id: SandboxId): string {
  return `caisson-${id}`;
}

/** Drops user labels with our reserved prefix. */
function withoutReserved(userLabels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(userLabels).filter(([name]) => !name.startsWith("caisson.")));
}

function guestArguments(request: ContainerRequest): string[] {
  const { config, limits, workUid, ownUid } = request;
  const uid = String(workUid);
  return [
    "init",
    ...["--listen-path", `${socketFolderInside}/${socketName}`],
    ...["--token-file", `${socketFolderInside}/${tokenName}`],
    ...["--uid", uid, "--gid", uid, "--home", homeInside],
    ...(config.allowRoot ? ["--allow-root"] : []),
    ...(limits.diskBytes === null ? ["--disk-guard"] : []),
    // Here the guest shares its cgroup with sandboxed programs, so their uid limits them instead.
    ...(ownUid && limits.pids !== null ? ["--nproc", String(limits.pids)] : []),
  ];
}

type HostConfig = NonNullable<ContainerCreateOptions["HostConfig"]> & { CgroupnsMode?: string };

function hostConfig(request: ContainerRequest, facts: EngineFacts): HostConfig {
  const { config, limits, cgroupParent, socketGroup } = request;
  // Podman has no option for the number of files; there only the memory limit bounds them.
  const sizeOf = (bytes: number) => (facts.kind === "podman" ? [`size=${bytes}`] : tmpfsSize(bytes));
  return {
    NetworkMode: "none",
    IpcMode: "private",
    PidMode: "",
    UTSMode: "",
    CgroupnsMode: "private",
    Privileged: false,
    Init: false,
    AutoRemove: false,
    RestartPolicy: { Name: "no" },
    LogConfig: { Type: "none", Config: {} },
    ReadonlyRootfs: false,
    CapDrop: ["ALL"],
    CapAdd: config.allowRoot ? [...guestCapabilities, ...rootCapabilities] : guestCapabilities,
    ...security(request),
    Mounts: mounts(request),
    Tmpfs: {
      "/tmp": ["rw,exec,nosuid,nodev,mode=1777", ...sizeOf(config.tmpBytes)].join(","),
      "/dev/shm": ["rw,noexec,nosuid,nodev,mode=1777", ...sizeOf(config.shmBytes)].join(","),
    },
    OomScoreAdj: 0,
    ...(socketGroup === null ? {} : { GroupAdd: [String(socketGroup)] }),
    Ulimits: [
      { Name: "nofile", Soft: OPEN_FILES_MAX, Hard: OPEN_FILES_MAX },
      // Not 0: the kernel would still start a handler that receives core dumps through a pipe.
      { Name: "core", Soft: 1, Hard: 1 },
      ...(facts.kind === "podman" ? [{ Name: "nproc", Soft: PODMAN_NPROC, Hard: PODMAN_NPROC }] : []),
    ],
    // Engines reject more processors than the machine has, which would limit nothing anyway.
    ...(limits.cpus === null ? {} : { NanoCpus: Math.round(Math.min(limits.cpus, facts.cpus) * 1e9) }),
    ...(limits.memoryBytes === null ? {} : { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
    // Only this limit counts the processes of the machine's root, so if root is allowed there is no extra room.
    ...(limits.pids === null ? {} : { PidsLimit: limits.pids + (config.allowRoot ? 0 : GUEST_PIDS) }),
    ...(limits.diskBytes === null ? {} : { StorageOpt: { size: String(limits.diskBytes) } }),
    ...(cgroupParent === null ? {} : { CgroupParent: cgroupParent }),
  };
}

/**
 * Podman ignores Docker's fields for hidden and read-only paths. It hides paths through an option, and makes the usual
 * ones read-only by default.
 */
function security(request: ContainerRequest): HostConfig {
  const { config, facts, seccomp } = request;
  const options = ["no-new-privileges:true", `seccomp=${seccomp}`];
  if (facts.kind === "podman") return { SecurityOpt: [...options, `mask=${hiddenPaths.join(":")}`] };
  return {
    SecurityOpt: options,
    MaskedPaths: [...hiddenPaths, ...config.deniedPaths],
    ReadonlyPaths: [...readonlyPaths, ...config.readOnlyPaths],
  };
}

function mounts(request: ContainerRequest): NonNullable<HostConfig["Mounts"]> {
  const { guestPath, socketFolder, insideFolder, binds } = request;
  const bind = (Source: string, Target: string, ReadOnly: boolean) => ({
    Type: "bind" as const,
    Source,
    Target,
    ReadOnly,
    // Leaves out nested mounts: engines make only the top mount read-only.
    BindOptions: { Propagation: "rprivate" as const, NonRecursive: true },
  });
  return [
    bind(guestPath, guestInside, true),
    bind(socketFolder, socketFolderInside, false),
    bind(insideFolder, insideTarget, true),
    ...binds.flatMap((each) => folderMounts(each, bind)),
  ];
}

type Mount = NonNullable<HostConfig["Mounts"]>[number];

/** A mount point cannot be moved or removed, so each folder on the way to a covered path becomes one. */
function folderMounts(
  { source, target, readOnly, covered }: FolderBind,
  bind: (source: string, target: string, readOnly: boolean) => Mount,
): Mount[] {
  const above = covered.flatMap((path) => path.split("/").map((_, depth, parts) => parts.slice(0, depth).join("/")));
  return [
    bind(source, target, readOnly),
    ...[...new Set(above)].filter((path) => path !== "").map((path) => bind(`${source}/${path}`, `${target}/${path}`, readOnly)),
    ...covered.map((path) => ({
      Type: "tmpfs" as const,
      Source: "",
      Target: `${target}/${path}`,
      ReadOnly: true,
      TmpfsOptions: { SizeBytes: 4096, Mode: 0o555 },
    })),
  ];
}
