import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";

/** The runtime's name, in records and in `Runtime.name`. */
export const runtimeName = "docker";

/** What this runtime remembers of a sandbox in its record. */
export const DockerDetails = z.object({
  engineSocket: z.string(),
  /** An image made for this sandbox alone (by a fork), removed with it. */
  ownImage: z.string().nullable(),
  workUid: z.int(),
  /** The image's variables, given to every command. */
  env: z.record(z.string(), z.string()),
  workspace: z.enum(["none", "staged", "ro", "rw"]),
});
export type DockerDetails = z.infer<typeof DockerDetails>;

/** Throws `internal` for a record that another runtime or version wrote. */
export function detailsOf(record: SandboxRecord): DockerDetails {
  const parsed = DockerDetails.safeParse(record.details);
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `the record of sandbox ${record.id} cannot be understood`, {
    hint: `\`caisson sandbox rm ${record.id}\` removes what is left of it.`,
    cause: parsed.error,
  });
}

/** Tells the sandboxes of one state folder from those of another in the same engine. */
export function stateLabelOf(stateDir: string): string {
  return createHash("sha256").update(realpathSync(stateDir)).digest("hex").slice(0, 16);
}

const UID_MIN = 20_000;
const UID_COUNT = 40_000;

/** Whether a number that came with an image can be one of ours; a user of this machine it must not be. */
export function isWorkUid(uid: number): boolean {
  return Number.isInteger(uid) && uid >= UID_MIN && uid < UID_MIN + UID_COUNT;
}

/**
 * A uid that no other sandbox of ours runs its work as. The kernel counts a user's processes over the whole machine, so
 * that two sandboxes with one uid would share their limit.
 */
export function workUidFor(id: SandboxId, taken: ReadonlySet<number>): number {
  const start = createHash("sha256").update(id).digest().readUInt32LE(0) % UID_COUNT;
  for (let step = 0; step < UID_COUNT; step += 1) {
    const uid = UID_MIN + ((start + step) % UID_COUNT);
    if (!taken.has(uid)) return uid;
  }
  throw new CaissonError("busy", `all ${UID_COUNT} user ids are in use by sandboxes`);
}
