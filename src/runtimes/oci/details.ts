import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { SnapshotId } from "../../contract/ids.ts";
import { checkValue, tellProblems } from "../../contract/plain-problems.ts";
import { ProcessIdentity } from "../../contract/process-identity.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { CgroupFolder } from "./cgroups/cgroup.ts";

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
       * Whose the files are inside: of the same ids as outside, or, of the workspace's repository, the user's for those
       * of the folder's owner; likewise of a further folder.
       */
      ids: z.enum(["sandbox", "repository", "mount"]).default("sandbox"),
    }),
  ),
});

/** What a sandbox starts from, once its template is on disk. */
export const Basis = z.object({
  root: RootPlan,
  /** Frozen layers over the workspace's folder, upmost first. */
  workspaceLayers: z.array(z.string()),
  /** The same over the root's home folder. */
  homeLayers: z.array(z.string()).default([]),
  hidden: z.array(z.string()),
  env: z.record(z.string(), z.string()),
});
export type Basis = z.infer<typeof Basis>;

/** What this runtime remembers of a sandbox, beyond what every runtime does. */
export const OciDetails = z.object({
  ociRuntime: z.string(),
  rootless: z.boolean(),
  basis: Basis,
  cgroups: z.array(CgroupFolder),
  /**
   * Process 1 of the sandbox as the host numbers it; its start time tells it from a later process with the same number.
   */
  guest: z.object({ pid: z.int().positive(), startTicks: z.int().nonnegative() }).nullable(),
  disk: z.enum(["none", "image", "memory"]),
  /** A snapshot that goes with this sandbox, made for a fork. */
  ownSnapshot: SnapshotId.nullable(),
  /**
   * Who froze it to copy its files, written down before it does: should that process die, whoever comes next thaws the
   * sandbox.
   */
  frozenBy: ProcessIdentity.nullable().default(null),
  /** Where the sandbox's own range of ids begins; null: the range that all had before there were more. */
  firstId: z.int().positive().nullable().default(null),
  /** Started before anybody asked for it, and not yet given to anybody. */
  waiting: z.boolean(),
});
export type OciDetails = z.infer<typeof OciDetails>;

/** Throws `internal` for details that this version does not understand. */
export function detailsOf(record: SandboxRecord): OciDetails {
  const parsed = checkValue(OciDetails, record.details);
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `the record of sandbox ${record.id} is not understood: ${tellProblems(parsed.problems)}`, {
    hint: `\`caisson sandbox rm ${record.id}\` removes what is left of it.`,
  });
}
