import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isErrno } from "../lib/is-errno.ts";

/** The token's file in a sandbox's folder; its owner alone may read it. */
export const tokenName = "token";
const TOKEN_BYTES = 32;

/**
 * Makes the token that a sandbox's guest asks of whoever greets it: to find its socket is not enough. Written before
 * the guest starts, and for the guest's life; a second attempt to start the same sandbox finds the first one's.
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

/** Undefined for a sandbox made before guests asked for one; a guest that asks refuses whoever has none. */
export function readGuestToken(sandboxFolder: string): Buffer | undefined {
  try {
    return readFileSync(join(sandboxFolder, tokenName));
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}
