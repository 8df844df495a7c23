import { CaissonError } from "../contract/error/error.ts";
import type { LimitsRequest } from "../contract/sandbox/sandbox-fields.ts";

/** The error for a requested limit that would not be enforced, with the same wording in every runtime. */
export function limitRefused(refusal: { limit: keyof LimitsRequest; reason: string; hint: string }): CaissonError {
  const { limit, reason, hint } = refusal;
  return new CaissonError("unsupported", `the limit ${limit} cannot be enforced: ${reason}`, { hint, details: { limit } });
}

/** The error for a disk limit with a read-write folder: its writes go to the host's disk, where no limit applies. */
export function sharedFolderRefused(folder: string): CaissonError {
  return limitRefused({
    limit: "diskBytes",
    reason: `${folder} is shared read-write, so its writes go to the host's disk`,
    hint: "Share the folder as an overlay, whose changes stay in the sandbox, or omit the disk limit.",
  });
}
