import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxId } from "../contract/ids.ts";
import { ABSENT, ifErrnoSync, isErrno } from "../lib/failures.ts";

/** The prefix of a sandbox's own token. */
export const SANDBOX_TOKEN_PREFIX = "sbt_";
const KEY_NAME = "station-key";
const KEY_BYTES = 32;
const HOUR_MS = 3_600_000;
const LIFE_HOURS = 24;
const pattern = /^sbt_([a-z2-7]{12})_([0-9]{1,9})_([0-9a-f]{64})$/;

/**
 * Returns the token with which programs in a sandbox reach the station: only for this sandbox, for at most a day.
 * Tokens are not stored but derived from a key in the sandbox's folder. So every process that starts a command can
 * issue one, and all of them become invalid when the folder is removed with the sandbox.
 */
export function sandboxToken(sandbox: SandboxId, { folder, nowMs }: { folder: string; nowMs: number }): string {
  const expiresHour = Math.floor(nowMs / HOUR_MS) + LIFE_HOURS;
  const letters = sandbox.slice("sb_".length);
  return `${SANDBOX_TOKEN_PREFIX}${letters}_${expiresHour}_${signature(sandbox, { expiresHour, key: keyOf(folder) }).toString("hex")}`;
}

/** Returns the sandbox of a token, or null if the token is invalid or expired, or the sandbox no longer exists. */
export function sandboxOfToken(
  token: string,
  { folderOf, nowMs }: { folderOf: (sandbox: SandboxId) => string; nowMs: number },
): SandboxId | null {
  const [, letters, hour, signatureHex] = pattern.exec(token) ?? [];
  const sandbox = SandboxId.safeParse(`sb_${letters}`);
  if (!sandbox.success || signatureHex === undefined) return null;
  const expiresHour = Number(hour);
  const nowHour = Math.floor(nowMs / HOUR_MS);
  if (expiresHour <= nowHour || expiresHour > nowHour + LIFE_HOURS) return null;
  const key = readKey(folderOf(sandbox.data));
  if (key === null) return null;
  return timingSafeEqual(signature(sandbox.data, { expiresHour, key }), Buffer.from(signatureHex, "hex")) ? sandbox.data : null;
}

function signature(sandbox: SandboxId, { expiresHour, key }: { expiresHour: number; key: string }): Buffer {
  return createHmac("sha256", key).update(`${sandbox} ${expiresHour}`).digest();
}

/** Returns the key, creating it if needed. If two processes create it concurrently, the first one wins. */
function keyOf(folder: string): string {
  const known = readKey(folder);
  if (known !== null) return known;
  try {
    writeFileSync(join(folder, KEY_NAME), randomBytes(KEY_BYTES).toString("hex"), { mode: 0o600, flag: "wx" });
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  }
  return readFileSync(join(folder, KEY_NAME), "utf8");
}

/** Returns null if there is no key or it is still being written. */
function readKey(folder: string): string | null {
  const key = ifErrnoSync(() => readFileSync(join(folder, KEY_NAME), "utf8"), ABSENT, null);
  return key?.length === 2 * KEY_BYTES ? key : null;
}
