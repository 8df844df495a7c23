import { CaissonError } from "../../contract/error.ts";

const HINT = "Another version of Caisson started the sandbox: use that version, or remove the sandbox with `caisson sandbox rm`.";

/** A guest of another version lacks what this version needs. A guest that is started again is of this version. */
export function guestMismatch(message: string, { hint = HINT, cause }: { hint?: string; cause?: unknown } = {}): CaissonError {
  return new CaissonError("unsupported", message, { hint, details: { guest: "mismatch" }, cause });
}

export function isGuestMismatch(error: unknown): boolean {
  return error instanceof CaissonError && error.code === "unsupported" && error.details?.guest === "mismatch";
}
