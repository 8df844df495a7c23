import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxId } from "../../contract/ids.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";

/** The runtime's name, in records and in `Runtime.name`. */
export const runtimeName = "docker";

/** What this runtime stores about a sandbox in its record. */
export const DockerDetails = z.object({
  engineSocket: z.string(),
  /** The image that a fork created for this sandbox alone. It is removed with the sandbox. */
  ownImage: z.string().nullable(),
  workUid: z.int(),
  /** The image's environment variables, passed to every command. */
  env: z.record(z.string(), z.string()),
  workspace: z.enum(["none", "staged", "ro", "rw"]),
  /** When its container had started for the first time. Null until then, and in records of earlier versions. */
  startedMs: z.int().nullable().default(null),
});
export type DockerDetails = z.infer<typeof DockerDetails>;

/** Throws `internal` for a record that another runtime or version wrote. */
export function detailsOf(record: SandboxRecord): DockerDetails {
  const parsed = DockerDetails.safeParse(record.details);
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `the record of sandbox ${record.id} was written by another runtime or version`, {
    hint: `Run \`caisson sandbox rm ${record.id}\` to remove what is left of it.`,
    cause: parsed.error,
  });
}

/** Returns the label that tells this state folder's sandboxes from others in the same engine. */
export function stateLabelOf(stateDir: string): string {
  return createHash("sha256").update(realpathSync(stateDir)).digest("hex").slice(0, 16);
}

const UID_MIN = 20_000;
const UID_COUNT = 40_000;

/** Whether a uid that came with an image is in our range. Such a uid must never belong to a user of this machine. */
export function isWorkUid(uid: number): boolean {
  return Number.isInteger(uid) && uid >= UID_MIN && uid < UID_MIN + UID_COUNT;
}

/**
 * Returns a uid that none of our other sandboxes uses. The kernel counts a user's processes machine-wide, so two
 * sandboxes with one uid would share their limit.
 */
export function workUidFor(id: SandboxId, usedUids: ReadonlySet<number>): number {
  const start = createHash("sha256").update(id).digest().readUInt32LE(0) % UID_COUNT;
  for (let step = 0; step < UID_COUNT; step += 1) {
    const uid = UID_MIN + ((start + step) % UID_COUNT);
    if (!usedUids.has(uid)) return uid;
  }
  throw new CaissonError("busy", `all ${UID_COUNT} user ids are in use by sandboxes`);
}
