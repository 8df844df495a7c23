import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ifErrnoSync, isErrno } from "../lib/failures.ts";

/** The token file in a sandbox's folder, which only its owner can read. */
export const tokenName = "token";
const TOKEN_BYTES = 32;

/**
 * Creates the token that a sandbox's guest requires in its greeting, because its socket alone must not grant access.
 * The token is written before the guest starts and lasts for the guest's life; a second attempt to start the same
 * sandbox reads the existing one.
 */
export function makeGuestToken(sandboxFolder: string): Buffer {
  const token = Buffer.from(randomBytes(TOKEN_BYTES).toString("hex"));
  try {
    writeFileSync(join(sandboxFolder, tokenName), token, { mode: 0o600, flag: "wx" });
    return token;
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    return readFileSync(join(sandboxFolder, tokenName));
  }
}

/** Returns undefined for a sandbox from before guests required tokens; newer guests reject clients without one. */
export function readGuestToken(sandboxFolder: string): Buffer | undefined {
  return ifErrnoSync(() => readFileSync(join(sandboxFolder, tokenName)), ["ENOENT"], undefined);
}
