import type { ContainerCreateOptions } from "dockerode";
import type { SandboxId } from "../../contract/ids.ts";
import type { Limits, SandboxSpec } from "../../contract/sandbox.ts";
import { tokenName } from "../../sandbox/guest-token.ts";
import { insideTarget } from "../../sandbox/inside-folder.ts";
import { tmpfsSize } from "../../sandbox/tmpfs-size.ts";
import { maskedPaths, readonlyPaths } from "../hardening/seccomp.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** Where the guest is inside; anybody may run it, `sudo` is a name for it. */
export const guestInside = "/.caisson/guest";
/**
 * A folder of root's that no work may enter. The socket's own is below: it has an owner of the host's, whose uid work
 * may run as.
 */
export const privateInside = "/.caisson/private";
export const socketFolderInside = `${privateInside}/socket`;
export const socketName = "guest.sock";

export const homeInside = "/home/user";
export const workspaceInside = "/workspace";

export const labels = {
  sandbox: "caisson.sandbox",
  /** Which state folder it belongs to: two of them may share an engine, and neither sweeps the other's. */
  state: "caisson.state",
  snapshot: "caisson.snapshot",
  name: "caisson.name",
  owner: "caisson.owner",
  /** The work's uid, which owns the files in a snapshot. */
  workUid: "caisson.uid",
  /** An image that exists only for the sandbox it names. */
  onlyFor: "caisson.only-for",
} as const;

/**
 * Room for the guest and its file workers beside the work, which has `pids` for itself and is held to that by its uid.
 */
const GUEST_PIDS = 64;
const OPEN_FILES_MAX = 16_384;
/** Podman asks for more than some machines allow unless it is told. */
const PODMAN_NPROC = 32_768;
const SHM_BYTES = 64 * 1024 * 1024;
/**
 * The guest's own work: becoming the sandbox's user, giving up capabilities, ending processes of that user, giving it a
 * terminal.
 */
const guestCapabilities = ["SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN"];
/** What package managers need besides, given to commands of `root` alone. */
const rootCapabilities = ["DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SYS_CHROOT", "NET_BIND_SERVICE"];

/**
 * What the kernel shows to its own root alone, who may be the root inside: an engine without a user namespace has no
 * other.
 */
const rootsPaths = ["kpagecgroup", "kpagecount", "kpageflags", "pagetypeinfo", "slabinfo", "vmallocinfo"].map((name) => `/proc/${name}`);
const hiddenPaths = [...maskedPaths, ...rootsPaths];

export interface ContainerRequest {
  id: SandboxId;
  spec: SandboxSpec;
  limits: Limits;
  facts: EngineFacts;
  /** Id of the image, which cannot be moved to another as a name can. */
  image: string;
  workUid: number;
  /** Whether RLIMIT_NPROC may hold the work back: only where the uid is nobody else's on this machine. */
  ownUid: boolean;
  guestPath: string;
  socketFolder: string;
  /** Seen at /run/caisson, read-only. */
  insideFolder: string;
  stateLabel: string;
  /** The profile's text for Docker, a file with it for Podman. */
  seccomp: string;
  /** Host folders bound inside; `covered` are paths in one that are seen empty. */
  binds: readonly FolderBind[];
  /** A group of the host's that the guest joins to reach its socket's folder. */
  socketGroup: number | null;
  cgroupParent: string | null;
}

export interface FolderBind {
  source: string;
  target: string;
  readOnly: boolean;
  covered: readonly string[];
}

/** Everything asked of the engine for one sandbox. Pure, so that a test can read it. */
export function containerConfig(request: ContainerRequest): ContainerCreateOptions {
  const { id, facts } = request;
  return {
    name: containerName(id),
    Image: request.image,
    Entrypoint: [guestInside],
    Cmd: guestArguments(request),
    // The guest starts as root inside, whatever the image says, and gives away what it does not need.
    User: "0:0",
    WorkingDir: "/",
    Env: [],
    Hostname: "caisson",
    Labels: { ...emptied(request.spec.labels), [labels.sandbox]: id, [labels.state]: request.stateLabel },
    Tty: false,
    OpenStdin: false,
    AttachStdin: false,
    AttachStdout: false,
    AttachStderr: false,
    NetworkDisabled: true,
    StopSignal: "SIGKILL",
    // A health check of the image would be a command that the engine runs as root, past the guest.
    Healthcheck: { Test: ["NONE"] },
    HostConfig: hostConfig(request, facts),
  };
}

export function containerName(id: SandboxId): string {
  return `caisson-${id}`;
}

/** Our labels are ours: a user's one of the same name is not passed on. */
function emptied(given: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => !name.startsWith("caisson.")));
}

function guestArguments(request: ContainerRequest): string[] {
  const { spec, limits, workUid, ownUid } = request;
  const uid = String(workUid);
  return [
    "init",
    ...["--listen-path", `${socketFolderInside}/${socketName}`],
    ...["--token-file", `${socketFolderInside}/${tokenName}`],
    ...["--uid", uid, "--gid", uid, "--home", homeInside],
    ...(spec.allowRoot ? ["--allow-root"] : []),
    ...(limits.diskBytes === null ? ["--disk-guard"] : []),
    // The guest shares its cgroup with the work here, so the work is held back by its uid instead.
    ...(ownUid && limits.pids !== null ? ["--nproc", String(limits.pids)] : []),
  ];
}

type HostConfig = NonNullable<ContainerCreateOptions["HostConfig"]> & { CgroupnsMode?: string };

function hostConfig(request: ContainerRequest, facts: EngineFacts): HostConfig {
  const { spec, limits, cgroupParent, socketGroup } = request;
  // Podman takes no bound on the number of files; there the memory limit alone counts them.
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
    CapAdd: spec.allowRoot ? [...guestCapabilities, ...rootCapabilities] : guestCapabilities,
    ...security(request),
    Mounts: mounts(request),
    Tmpfs: {
      "/tmp": ["rw,exec,nosuid,nodev,mode=1777", ...sizeOf(spec.tmpBytes)].join(","),
      "/dev/shm": ["rw,noexec,nosuid,nodev,mode=1777", ...sizeOf(SHM_BYTES)].join(","),
    },
    OomScoreAdj: 0,
    ...(socketGroup === null ? {} : { GroupAdd: [String(socketGroup)] }),
    Ulimits: [
      { Name: "nofile", Soft: OPEN_FILES_MAX, Hard: OPEN_FILES_MAX },
      // Not 0: the kernel then still starts a handler that takes cores by a pipe.
      { Name: "core", Soft: 1, Hard: 1 },
      ...(facts.kind === "podman" ? [{ Name: "nproc", Soft: PODMAN_NPROC, Hard: PODMAN_NPROC }] : []),
    ],
    // More processors than there are is no limit, and engines refuse the number.
    ...(limits.cpus === null ? {} : { NanoCpus: Math.round(Math.min(limits.cpus, facts.cpus) * 1e9) }),
    ...(limits.memoryBytes === null ? {} : { Memory: limits.memoryBytes, MemorySwap: limits.memoryBytes }),
    // Nothing but this counts the processes of the machine's root, so that with root inside there is no room on top.
    ...(limits.pids === null ? {} : { PidsLimit: limits.pids + (spec.allowRoot ? 0 : GUEST_PIDS) }),
    ...(limits.diskBytes === null ? {} : { StorageOpt: { size: String(limits.diskBytes) } }),
    ...(cgroupParent === null ? {} : { CgroupParent: cgroupParent }),
  };
}

/**
 * Podman passes over Docker's fields for hidden and fixed paths; it hides by an option, and fixes the usual ones by
 * itself.
 */
function security(request: ContainerRequest): HostConfig {
  const { spec, facts, seccomp } = request;
  const options = ["no-new-privileges:true", `seccomp=${seccomp}`];
  if (facts.kind === "podman") return { SecurityOpt: [...options, `mask=${hiddenPaths.join(":")}`] };
  return {
    SecurityOpt: options,
    MaskedPaths: [...hiddenPaths, ...spec.deniedPaths],
    ReadonlyPaths: [...readonlyPaths, ...spec.readOnlyPaths],
  };
}

function mounts(request: ContainerRequest): NonNullable<HostConfig["Mounts"]> {
  const { guestPath, socketFolder, insideFolder, binds } = request;
  const bind = (Source: string, Target: string, ReadOnly: boolean) => ({
    Type: "bind" as const,
    Source,
    Target,
    ReadOnly,
    // Without what is mounted below: engines make only the top of it read-only.
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

/** What is a mount point cannot be moved or removed, so each folder on the way to a covered one is made one. */
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
