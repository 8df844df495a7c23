import { z } from "zod";
import { ChosenName, RuntimeName, SandboxId, SnapshotId } from "./ids.ts";
import { created, LabelsAsked, next, owned, paged } from "./list-filter.ts";
import { Owner } from "./owner.ts";
import { MOUNTS_MAX, SandboxInfo, SandboxSpec, SandboxState } from "./sandbox.ts";
import { SecretName } from "./secret-verbs.ts";
import { UploadedMount, UploadedWorkspace } from "./upload-verbs.ts";
import { WorkspaceGuard } from "./workspace-guard.ts";

/** Arguments and answers of the station's verbs about sandboxes. */

export const CreateSandbox = z.strictObject({
  /** A runtime's name, or `auto`: the strongest that works here, never the host. Absent: the station's default. */
  runtime: z.string().min(1).max(100).optional(),
  spec: SandboxSpec.omit({ owner: true }),
  /** The snapshot to start from, by id, the beginning of it, or name; wins over the spec's template. */
  snapshot: z.string().min(1).max(200).optional(),
  /** Secrets that the station keeps or its configuration defines, by name; their hosts can be reached. */
  secretNames: z.array(SecretName).max(100).default([]),
  /** How the folder of the spec is looked at before a sandbox sees it. Absent: it is shown as it is. */
  guard: WorkspaceGuard.optional(),
  /** A folder that was sent here as the workspace; wins over the spec's. */
  uploaded: UploadedWorkspace.optional(),
  /** Folders that were sent here, added to the spec's mounts. */
  uploadedMounts: z.array(UploadedMount).max(MOUNTS_MAX).optional(),
});
export type CreateSandbox = Omit<z.infer<typeof CreateSandbox>, "secretNames"> & { secretNames?: readonly string[] };

/** A sandbox whose record cannot be read; it can only be removed. */
export const DamagedSandbox = z.object({ id: SandboxId, dir: z.string(), reason: z.string() });
export type DamagedSandbox = z.infer<typeof DamagedSandbox>;

/** Which sandboxes; what is absent is not asked about. */
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

/** Oldest first. Those whose record cannot be read are nobody's, and on the first page only. */
export const SandboxList = z.object({ sandboxes: z.array(SandboxInfo), damaged: z.array(DamagedSandbox), ...next });
export type SandboxList = z.infer<typeof SandboxList>;

/** Counted up to a bound: then there may be more. */
export const ChangedFiles = z.object({ files: z.int().nonnegative(), isMinimum: z.boolean() });
export type ChangedFiles = z.infer<typeof ChangedFiles>;

export const SnapshotView = z.object({
  id: SnapshotId,
  runtime: RuntimeName,
  name: z.string().nullable(),
  /** Whose it is: the same as its sandbox. */
  owner: Owner,
  sandbox: SandboxId,
  createdAt: z.string(),
  bytes: z.number(),
  /** A folder of the host's over which its workspace is; absent: all of that is in the snapshot. */
  workspaceFolder: z.string().optional(),
});
export type SnapshotView = z.infer<typeof SnapshotView>;

/** Which snapshots; what is absent is not asked about. */
export const ListSnapshots = z.strictObject({
  runtime: RuntimeName.optional(),
  /** The id of the sandbox that they are of. */
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

export const SnapshotSandbox = z.strictObject({ name: ChosenName.optional() });
export type SnapshotSandbox = z.infer<typeof SnapshotSandbox>;
