import { CaissonError, type ErrorCode } from "../../contract/error/error.ts";
import { decodeFields, shapes } from "./fields.ts";
import { protocolError } from "./frame.ts";

/** The guest's error codes by number, and the codes that callers see. */
const guestErrors = {
  1: { name: "invalid", code: "invalid" },
  2: { name: "not_found", code: "not_found" },
  3: { name: "exists", code: "exists" },
  4: { name: "denied", code: "denied" },
  5: { name: "not_directory", code: "invalid" },
  6: { name: "is_directory", code: "invalid" },
  7: { name: "not_empty", code: "conflict", hint: "Pass `recursive` to remove its content as well." },
  8: { name: "no_space", code: "no_space", hint: "Remove files inside, or give the sandbox a larger disk limit." },
  9: { name: "busy", code: "busy" },
  10: { name: "unsupported", code: "unsupported" },
  11: { name: "io", code: "internal" },
  12: { name: "gone", code: "gone" },
  13: { name: "too_large", code: "too_large" },
  14: { name: "refused", code: "unavailable", hint: "Nothing listens on that port inside yet; start the server first." },
  15: { name: "not_executable", code: "denied", hint: "Give the file execute permission, or run it with its interpreter." },
  16: { name: "unsafe", code: "unsafe" },
  17: { name: "superseded", code: "superseded" },
} as const satisfies Readonly<Record<number, { name: string; code: ErrorCode; hint?: string }>>;

type GuestError = (typeof guestErrors)[keyof typeof guestErrors];
export type GuestErrorName = GuestError["name"];
const byNumber: Readonly<Record<number, { name: string; code: ErrorCode; hint?: string } | undefined>> = guestErrors;

/** Returns the wire number of an error, for code that plays the guest. */
export function guestErrorNumber(name: GuestErrorName): number {
  return Number(Object.entries(guestErrors).find(([, error]) => error.name === name)?.[0]);
}

const MESSAGE_CHARACTERS_MAX = 1_024;

/** Converts an `ERROR` frame to our error. `what` names the attempted action and its subject. */
export function errorFromGuest(what: string, payload: Buffer): CaissonError {
  const { code, message, errno } = decodeFields("ERROR", shapes.ERROR, payload);
  const known = byNumber[code];
  if (known === undefined) throw protocolError(`error code ${code}`);
  return new CaissonError(known.code, `${what}: ${printable(message) || known.name.replaceAll("_", " ")}`, {
    details: { guest: known.name, ...(errno === 0 ? {} : { errno }) },
    ...(known.hint === undefined ? {} : { hint: known.hint }),
  });
}

/** Makes the guest's text safe for terminals and logs: no control characters, and of limited length. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced.
  return text.slice(0, MESSAGE_CHARACTERS_MAX).replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
