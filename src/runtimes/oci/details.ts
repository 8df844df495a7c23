import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { SnapshotId } from "../../contract/ids.ts";
import { ProcessIdentity } from "../../contract/process-identity.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { CgroupFolder } from "./cgroups/cgroup.ts";
import { MountedLayer } from "./layers/mounted-layer.ts";
import { MemoryImage } from "./memory/memory-image-record.ts";

const RootPlan = z.object({
  layers: z.array(z.object({ dir: z.string(), mapped: z.boolean() })),
  binds: z.array(
    z.object({
      source: z.string(),
      target: z.string(),
      kind: z.enum(["folder", "file"]),
      writable: z.boolean(),
      layers: z.array(z.string()),
      /**
       * How file owners appear inside. `sandbox`: with the same ids as outside. `repository` (for the workspace's
       * repository) and `mount` (for other folders): the folder owner's files belong to the sandbox's user.
       */
      ids: z.enum(["sandbox", "repository", "mount"]).default("sandbox"),
    }),
  ),
});

/** What a sandbox starts from after its template is on disk. */
export const Basis = z.object({
  root: RootPlan,
  /** Frozen layers over the workspace folder, topmost first. */
  workspaceLayers: z.array(z.string()),
  /** Frozen layers over the root's home folder, topmost first. */
  homeLayers: z.array(z.string()).default([]),
  hidden: z.array(z.string()),
  env: z.record(z.string(), z.string()),
});
export type Basis = z.infer<typeof Basis>;

/** What this runtime stores about a sandbox, beyond what every runtime stores. */
export const OciDetails = z.object({
  ociRuntime: z.string(),
  rootless: z.boolean(),
  basis: Basis,
  /** Frozen layers between the basis and the sandbox's own layers, topmost first. */
  base: z.array(MountedLayer).default([]),
  /** Frozen layers of the snapshot from which it started; the basis contains their folders. */
  templateLayers: z.array(MountedLayer).default([]),
  /** Distinguishes the roots of a session whose agents have different images. Null in records of earlier versions. */
  rootKey: z.string().nullable().default(null),
  cgroups: z.array(CgroupFolder),
  /**
   * Process 1 of the sandbox, by its host pid. The start time distinguishes it from a later process with the same pid.
   */
  guest: z.object({ pid: z.int().positive(), startTicks: z.int().nonnegative() }).nullable(),
  disk: z.enum(["none", "image", "memory"]),
  /** The snapshot that a fork created for this sandbox. It is removed with the sandbox. */
  ownSnapshot: SnapshotId.nullable(),
  /**
   * The process that froze the sandbox to copy its files, recorded before it does so. If that process dies, the next
   * one thaws the sandbox.
   */
  frozenBy: ProcessIdentity.nullable().default(null),
  /** The start of the sandbox's own id range. Null for the shared range, which earlier versions always used. */
  firstId: z.int().positive().nullable().default(null),
  /** Whether process 1 is separate from the guest, so that the memory can be stored. */
  hasReaper: z.boolean().default(false),
  /** The processes of a sandbox that is paused on the disk. */
  onDisk: MemoryImage.nullable().default(null),
  /** Whether the sandbox was started in advance and has no user yet. */
  waiting: z.boolean(),
});
export type OciDetails = z.infer<typeof OciDetails>;

/** Parses the details. Throws `internal` for details that this version does not understand. */
export function detailsOf(record: SandboxRecord): OciDetails {
  const parsed = checkValue(OciDetails, record.details);
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `the record of sandbox ${record.id} is invalid: ${tellProblems(parsed.problems)}`, {
    hint: `Run \`caisson sandbox rm ${record.id}\` to remove what is left of it.`,
  });
}
