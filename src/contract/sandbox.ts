import { z } from "zod";
import { ENV_CHARACTERS_MAX, PathText, recordOf, SECRETS_MAX } from "./bounded.ts";
import { defaultLimits } from "./default-limits.ts";
import { HealthLevel } from "./health-level.ts";
import { ChosenName, EnvName, Labels, RuntimeName, SandboxId, SnapshotId } from "./ids.ts";
import { ImageText } from "./image-text.ts";
import { GatewaySpec, NetworkPolicy, SecretSpec } from "./network.ts";
import { Owner } from "./owner.ts";
import { FolderOrigin } from "./upload.ts";

const MIB = 1024 * 1024;

/** A path inside a sandbox: absolute, no NUL, no `..`, at most 4,095 bytes. */
export const SandboxPath = z
  .string()
  .max(4095)
  .refine((path) => path.startsWith("/"), "must be absolute")
  .refine((path) => !path.includes("\0"), "must not contain NUL")
  .refine((path) => !path.split("/").includes(".."), "must not contain ..")
  .refine((path) => Buffer.byteLength(path) <= 4095, "must be at most 4,095 bytes");
export type SandboxPath = z.infer<typeof SandboxPath>;

export const Template = z.discriminatedUnion("kind", [
  /** The machine's own toolchain, read-only. */
  z.strictObject({ kind: z.literal("host") }),
  /** A rootfs folder, an OCI layout, a docker-archive, or a reference (`docker` runtime: the engine's image name). */
  z.strictObject({ kind: z.literal("image"), reference: ImageText }),
  z.strictObject({ kind: z.literal("snapshot"), id: SnapshotId }),
]);
export type Template = z.infer<typeof Template>;

export const WorkspaceAccess = z.enum(["overlay", "rw", "ro"]);
export type WorkspaceAccess = z.infer<typeof WorkspaceAccess>;

export const WorkspaceMount = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("empty") }),
  /** `overlay`: visible, writable inside, never changed outside. */
  z.strictObject({
    kind: z.literal("folder"),
    path: PathText,
    access: WorkspaceAccess.default("overlay"),
    /**
     * With `overlay`: a folder of the host that keeps the changes, and those to the home folder inside, so that they
     * outlive the sandbox. Used by one sandbox at a time.
     */
    layer: PathText.optional(),
    /** Of a folder of another machine, which was sent: where it is at home. */
    origin: FolderOrigin.optional(),
  }),
]);
export type WorkspaceMount = z.infer<typeof WorkspaceMount>;

/** A further folder of the host's, beside the workspace. */
export const FolderMount = z.strictObject({
  path: PathText,
  /** Where it is seen inside. What a sandbox has for itself, the workspace included, is refused with `invalid`. */
  target: SandboxPath,
  /** `overlay`: what is written there goes with the sandbox. */
  access: WorkspaceAccess.default("ro"),
});
export type FolderMount = z.infer<typeof FolderMount>;
export const MOUNTS_MAX = 16;

/**
 * Limits asked for, each by its name: one that is misspelt would be none at all, so it is refused. An absent one takes
 * the default where the runtime can enforce it; one that is present and cannot be enforced is refused with
 * `unsupported`.
 */
export const LimitsRequest = z.strictObject({
  cpus: z.number().positive().max(1024).optional(),
  memoryBytes: z
    .int()
    .min(4 * MIB)
    .optional(),
  pids: z.int().min(1).max(4_000_000).optional(),
  diskBytes: z.int().min(MIB).optional(),
  /** How long one command may run unless its own timeout is shorter. */
  wallClockMs: z.int().positive().optional(),
  /** How many bytes one command may write before it is ended. */
  outputBytes: z.int().positive().optional(),
});
export type LimitsRequest = z.infer<typeof LimitsRequest>;

export const SandboxSpec = z.strictObject({
  template: Template.default({ kind: "host" }),
  workspace: WorkspaceMount.default({ kind: "empty" }),
  mounts: z.array(FolderMount).max(MOUNTS_MAX).default([]),
  limits: LimitsRequest.default({}),
  network: NetworkPolicy.default({ mode: "none" }),
  /** By the name of the variable that holds the placeholder inside. */
  secrets: recordOf(EnvName, SecretSpec, SECRETS_MAX).default({}),
  gateway: GatewaySpec.optional(),
  /**
   * Whether programs inside reach the station with a token of the sandbox's own: to report events, take messages, say
   * that they live, and leave files. Nothing else of it.
   */
  stationAccess: z.boolean().default(false),
  /** Given to every command; a command's own variables win. */
  env: recordOf(
    EnvName,
    z
      .string()
      .max(ENV_CHARACTERS_MAX)
      .refine((value) => !value.includes("\0"), "must not contain NUL"),
    1000,
  ).default({}),
  /** Whether `user: "root"` and `sudo` work inside. */
  allowRoot: z.boolean().default(false),
  /** Paths inside that are made read-only, or hidden. */
  readOnlyPaths: z.array(SandboxPath).max(1024).default([]),
  deniedPaths: z.array(SandboxPath).max(1024).default([]),
  tmpBytes: z.int().min(MIB).default(defaultLimits.tmpBytes),
  /** Lives on after its creator; otherwise it is removed with it. */
  keep: z.boolean().default(false),
  labels: Labels.default({}),
  /** Stands for its id; the station sees to it that only one has it. */
  name: ChosenName.optional(),
  /** Whose it is, set by the station; absent: the user's of this machine. */
  owner: Owner.optional(),
});
export type SandboxSpec = z.infer<typeof SandboxSpec>;
/** What a caller writes: everything optional. */
export type SandboxSpecInput = z.input<typeof SandboxSpec>;

/** The limits in force, after defaults; null means not enforced, and `warnings` of the sandbox says why. */
export const Limits = z.object({
  cpus: z.number().nullable(),
  memoryBytes: z.number().nullable(),
  pids: z.number().nullable(),
  diskBytes: z.number().nullable(),
  wallClockMs: z.number(),
  outputBytes: z.number().nullable(),
});
export type Limits = z.infer<typeof Limits>;

export const SandboxState = z.enum(["pending", "creating", "running", "paused", "completing", "completed", "failed"]);
export type SandboxState = z.infer<typeof SandboxState>;

export const SandboxInfo = z.lazy(() =>
  z.object({
    id: SandboxId,
    runtime: RuntimeName,
    state: SandboxState,
    createdAt: z.iso.datetime(),
    template: Template,
    workspace: WorkspaceMount,
    mounts: z.array(FolderMount).default([]),
    limits: Limits,
    network: NetworkPolicy,
    allowRoot: z.boolean(),
    keep: z.boolean(),
    labels: z.record(z.string(), z.string()),
    name: z.string().optional(),
    /** Whose it is. */
    owner: Owner,
    /** As a station sees it; absent: nothing is known to be wrong. */
    health: HealthLevel.optional(),
    /** What was asked for by default and cannot be enforced here, each as a sentence. */
    warnings: z.array(z.string()),
  }),
);
export type SandboxInfo = z.infer<typeof SandboxInfo>;

export const SandboxStats = z.lazy(() =>
  z.object({
    cpuMs: z.number().nullable(),
    memoryBytes: z.number().nullable(),
    memoryKills: z.number().nullable(),
    processes: z.number(),
    diskBytes: z.number().nullable(),
    /** Where the figures come from: the host's accounting, or the sandbox's own word. */
    source: z.enum(["host", "guest"]),
  }),
);
export type SandboxStats = z.infer<typeof SandboxStats>;

/** What a runtime can enforce and do on this machine. Data, so that nothing has to be tried to be known. */
export const Capabilities = z.lazy(() =>
  z.object({
    /** How strong the wall is: 0 none, 1 shared kernel, 2 user-space kernel, 3 own kernel. */
    isolation: z.int().min(0).max(3),
    sharesHostFilesystem: z.boolean(),
    templates: z.array(z.enum(["host", "image", "snapshot"])),
    workspaceAccess: z.array(WorkspaceAccess),
    /** How further folders can be given. */
    mounts: z.array(WorkspaceAccess),
    /** Whether an overlaid workspace's changes can be kept in a folder of the host's. */
    workspaceLayer: z.boolean(),
    limits: z.object({ cpus: z.boolean(), memoryBytes: z.boolean(), pids: z.boolean(), diskBytes: z.boolean() }),
    network: z.array(z.enum(["none", "allow", "open"])),
    /** Whether programs that know nothing of proxies can be carried. */
    transparentNetwork: z.boolean(),
    rootUser: z.boolean(),
    pause: z.boolean(),
    snapshot: z.boolean(),
    paths: z.boolean(),
    reattach: z.boolean(),
    /** For each false or missing one that people ask about: why, and the fix. */
    reasons: z.record(z.string(), z.string()),
  }),
);
export type Capabilities = z.infer<typeof Capabilities>;
