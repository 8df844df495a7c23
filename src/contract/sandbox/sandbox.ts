import { z } from "zod";
import { PathText } from "../bounded.ts";
import { HealthLevel } from "../health/health-level.ts";
import { ChosenName, Labels, RuntimeName, SandboxId, SnapshotId } from "../ids.ts";
import { ImageText } from "../image/image-text.ts";
import { NetworkPolicy } from "../network/network.ts";
import { Owner } from "../token/owner.ts";
import { FolderOrigin } from "../upload/upload.ts";
import { configShape, FolderMount, WorkspaceAccess } from "./sandbox-fields.ts";

export const Template = z.discriminatedUnion("kind", [
  /** The machine's own toolchain, read-only. */
  z.strictObject({ kind: z.literal("host") }),
  /**
   * A root file system folder, an OCI layout, a docker-archive, or a reference (in the `docker` runtime: the engine's
   * image name).
   */
  z.strictObject({ kind: z.literal("image"), reference: ImageText }),
  z.strictObject({ kind: z.literal("snapshot"), id: SnapshotId }),
]);
export type Template = z.infer<typeof Template>;

export const WorkspaceMount = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("empty") }),
  /** `overlay`: visible and writable inside, but never changed outside. */
  z.strictObject({
    kind: z.literal("folder"),
    path: PathText,
    access: WorkspaceAccess.default("overlay"),
    /**
     * With `overlay`: a host folder that stores everything that the sandbox changes, in the whole machine, so that it
     * outlives the sandbox. Only one sandbox may use it at a time.
     */
    layer: PathText.optional(),
    /**
     * Shows the workspace as it is in the layer (`now`) or was at one of its points, and removes the sandbox's own
     * changes with it. Any number of such sandboxes may exist.
     */
    view: z.string().min(1).max(64).optional(),
    /** The origin of a folder that was sent from another machine. */
    origin: FolderOrigin.optional(),
  }),
]);
export type WorkspaceMount = z.infer<typeof WorkspaceMount>;

export const SandboxConfig = z.strictObject({
  template: Template.default({ kind: "host" }),
  workspace: WorkspaceMount.default({ kind: "empty" }),
  ...configShape(),
  /** Whether the sandbox outlives its creator; otherwise it is removed with it. */
  keep: z.boolean().default(false),
  labels: Labels.default({}),
  /** Works like the id; the station keeps it unique. */
  name: ChosenName.optional(),
  /** The owner, set by the station; absent: this machine's user. */
  owner: Owner.optional(),
});
export type SandboxConfig = z.infer<typeof SandboxConfig>;
/** The caller's input, with everything optional. */
export type SandboxConfigInput = z.input<typeof SandboxConfig>;

/** The limits in effect, after defaults. Null means not enforced; the sandbox's `warnings` say why. */
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
    /** The sandbox's owner. */
    owner: Owner,
    /** The health that a station observes; absent: no problem is known. */
    health: HealthLevel.optional(),
    /** Default settings that cannot be enforced here, each as a sentence. */
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
    /** The source of the figures: the host's accounting, or the sandbox's own report. */
    source: z.enum(["host", "guest"]),
  }),
);
export type SandboxStats = z.infer<typeof SandboxStats>;

/** What a runtime can enforce and do on this machine, as data, so that nothing needs to be tried out. */
export const Capabilities = z.lazy(() =>
  z.object({
    /** The strength of the isolation: 0 none, 1 shared kernel, 2 user-space kernel, 3 separate kernel. */
    isolation: z.int().min(0).max(3),
    sharesHostFilesystem: z.boolean(),
    templates: z.array(z.enum(["host", "image", "snapshot"])),
    workspaceAccess: z.array(WorkspaceAccess),
    /** The supported access modes of mounts. */
    mounts: z.array(WorkspaceAccess),
    /** Whether the changes to an overlaid workspace can be stored in a host folder. */
    workspaceLayer: z.boolean(),
    limits: z.object({ cpus: z.boolean(), memoryBytes: z.boolean(), pids: z.boolean(), diskBytes: z.boolean() }),
    network: z.array(z.enum(["none", "allow", "open"])),
    /** Whether programs without proxy support can use the network. */
    transparentNetwork: z.boolean(),
    rootUser: z.boolean(),
    pause: z.boolean(),
    snapshot: z.boolean(),
    paths: z.boolean(),
    reattach: z.boolean(),
    /** For common capabilities that are false or missing: why, and how to fix it. */
    reasons: z.record(z.string(), z.string()),
  }),
);
export type Capabilities = z.infer<typeof Capabilities>;
