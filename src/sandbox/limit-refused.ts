import { CaissonError } from "../contract/error.ts";
import type { LimitsRequest } from "../contract/sandbox.ts";

/** For a limit that was asked for and would not hold: every runtime says so in the same words. */
export function limitRefused(refusal: { limit: keyof LimitsRequest; reason: string; hint: string }): CaissonError {
  const { limit, reason, hint } = refusal;
  return new CaissonError("unsupported", `the limit ${limit} cannot be enforced: ${reason}`, { hint, details: { limit } });
}

/** A folder of the host's that is written to directly has the host's own disk behind it, all of it. */
export function sharedFolderRefused(folder: string): CaissonError {
  return limitRefused({
    limit: "diskBytes",
    reason: `${folder} is given read-write, and what is written there goes to the host's own disk`,
    hint: "Give the folder as overlay, whose changes stay in the sandbox, or leave the disk limit out.",
  });
}
