import { CaissonError } from "../../contract/error/error.ts";
import { type GuestErrorName, guestErrorNumber } from "../../sandbox/guest/guest-error.ts";

/** Creates an error that the guest would answer with; `serve-guest` encodes it. */
export function failure(name: GuestErrorName, message: string): CaissonError {
  return new CaissonError("internal", message, { details: { guest: name } });
}

export function failureNumber(error: unknown): { code: number; message: string } {
  const name = error instanceof CaissonError ? (error.details?.guest ?? error.code) : "io";
  const number = guestErrorNumber(name as GuestErrorName);
  return { code: Number.isNaN(number) ? guestErrorNumber("io") : number, message: error instanceof Error ? error.message : String(error) };
}
