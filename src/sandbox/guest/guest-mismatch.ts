import { CaissonError } from "../../contract/error/error.ts";

const HINT = "The sandbox was started by another version of Caisson: use that version, or remove the sandbox with `caisson sandbox rm`.";

/** Reports that a guest of another version lacks what this version needs. A restarted guest has this version. */
export function guestMismatch(message: string, { hint = HINT, cause }: { hint?: string; cause?: unknown } = {}): CaissonError {
  return new CaissonError("unsupported", message, { hint, details: { guest: "mismatch" }, cause });
}

export function isGuestMismatch(error: unknown): boolean {
  return error instanceof CaissonError && error.code === "unsupported" && error.details?.guest === "mismatch";
}
