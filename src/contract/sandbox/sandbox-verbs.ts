import { z } from "zod";
import { ChosenName, RuntimeName, SandboxId, SnapshotId, TemplateWord } from "../ids.ts";
import { created, LabelsAsked, next, owned, paged } from "../label/list-filter.ts";
import { SecretName } from "../secret/secret-verbs.ts";
import { Owner } from "../token/owner.ts";
import { WorkspaceGuard } from "../workspace/workspace-guard.ts";
import { SandboxConfig, SandboxInfo, SandboxState } from "./sandbox.ts";
import { MOUNTS_MAX, UploadedMount, UploadedWorkspace } from "./sandbox-fields.ts";

/** Arguments and answers of the station's verbs for sandboxes. */

export const CreateSandbox = z.strictObject({
  /**
   * A runtime's name, or `auto` for the strongest that works here, but never the host. Absent: the station's default.
   */
  runtime: z.string().min(1).max(100).optional(),
  spec: SandboxConfig.omit({ owner: true }),
  /** The snapshot to start from, by id, id prefix or name. Overrides the template in `spec`. */
  snapshot: z.string().min(1).max(200).optional(),
  /** The template to start from, by id, id prefix or name. Overrides the template in `spec`. */
  template: TemplateWord.optional(),
  /** Names of secrets that the station stores or its configuration defines. Their hosts become reachable. */
  secretNames: z.array(SecretName).max(100).default([]),
  /** How to check the folder in `spec` before a sandbox sees it. Absent: nothing is hidden. */
  guard: WorkspaceGuard.optional(),
  /** An uploaded folder as the workspace. Overrides the one in `spec`. */
  uploaded: UploadedWorkspace.optional(),
  /** Uploaded folders, in addition to the mounts in `spec`. */
  uploadedMounts: z.array(UploadedMount).max(MOUNTS_MAX).optional(),
});
export type CreateSandbox = Omit<z.infer<typeof CreateSandbox>, "secretNames"> & { secretNames?: readonly string[] };

/** A sandbox whose record cannot be read; it can only be removed. */
export const DamagedSandbox = z.object({ id: SandboxId, dir: z.string(), reason: z.string() });
export type DamagedSandbox = z.infer<typeof DamagedSandbox>;

/** Filters sandboxes. Absent members do not filter. */
export const ListSandboxes = z.strictObject({
  state: z.array(SandboxState).max(10).optional(),
  runtime: RuntimeName.optional(),
  label: LabelsAsked.optional(),
  name: z.string().max(64).optional(),
  ...owned,
  ...created,
  ...paged,
});
export type ListSandboxes = z.input<typeof ListSandboxes>;

/** Oldest first. Sandboxes with an unreadable record have no owner, and are listed on the first page only. */
export const SandboxList = z.object({ sandboxes: z.array(SandboxInfo), damaged: z.array(DamagedSandbox), ...next });
export type SandboxList = z.infer<typeof SandboxList>;

/** Counted up to a limit; `isMinimum` means that there may be more. */
export const ChangedFiles = z.object({ files: z.int().nonnegative(), isMinimum: z.boolean() });
export type ChangedFiles = z.infer<typeof ChangedFiles>;

export const SnapshotView = z.object({
  id: SnapshotId,
  runtime: RuntimeName,
  name: z.string().nullable(),
  /** The owner, the same as the sandbox's. */
  owner: Owner,
  sandbox: SandboxId,
  createdAt: z.string(),
  bytes: z.number(),
  /** Whether it contains processes. Absent in answers of earlier versions. */
  memory: z.boolean().optional(),
  /** The host folder below the workspace; absent: the snapshot contains the whole workspace. */
  workspaceFolder: z.string().optional(),
});
export type SnapshotView = z.infer<typeof SnapshotView>;

/** Filters snapshots. Absent members do not filter. */
export const ListSnapshots = z.strictObject({
  runtime: RuntimeName.optional(),
  /** The sandbox that they were taken of. */
  sandbox: SandboxId.optional(),
  name: z.string().max(64).optional(),
  ...owned,
  ...created,
  ...paged,
});
export type ListSnapshots = z.input<typeof ListSnapshots>;

/** Oldest first. */
export const SnapshotList = z.object({ snapshots: z.array(SnapshotView), ...next });
export type SnapshotList = z.infer<typeof SnapshotList>;

export const SnapshotSandbox = z.strictObject({
  name: ChosenName.optional(),
  /** Whether to store the processes too. They then continue in every sandbox from this snapshot. */
  memory: z.boolean().optional(),
});
export type SnapshotSandbox = z.infer<typeof SnapshotSandbox>;

export const ForkSandbox = z.strictObject({
  /** Whether the fork continues the processes too. */
  memory: z.boolean().optional(),
});
export type ForkSandbox = z.infer<typeof ForkSandbox>;

export const PauseSandbox = z.strictObject({
  /** Whether to store the processes on the disk and end them, so that the pause survives a reboot. */
  toDisk: z.boolean().optional(),
});
export type PauseSandbox = z.infer<typeof PauseSandbox>;
