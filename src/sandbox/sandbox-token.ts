import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxId } from "../contract/ids.ts";
import { isErrno } from "../lib/is-errno.ts";

/** What begins so is a sandbox's own token. */
export const SANDBOX_TOKEN_PREFIX = "sbt_";
const KEY_NAME = "station-key";
const KEY_BYTES = 32;
const HOUR_MS = 3_600_000;
const LIFE_HOURS = 24;
const pattern = /^sbt_([a-z2-7]{12})_([0-9]{1,9})_([0-9a-f]{64})$/;

/**
 * The token with which programs in a sandbox reach the station: of this sandbox, for at most a day. None is kept: it is
 * made of a key in the sandbox's folder, so that every process that starts a command has one to give, and all of them
 * are worth nothing once the folder is gone with the sandbox.
 */
export function sandboxToken(sandbox: SandboxId, { folder, nowMs }: { folder: string; nowMs: number }): string {
  const expiresHour = Math.floor(nowMs / HOUR_MS) + LIFE_HOURS;
  const letters = sandbox.slice("sb_".length);
  return `${SANDBOX_TOKEN_PREFIX}${letters}_${expiresHour}_${signature(sandbox, { expiresHour, key: keyOf(folder) }).toString("hex")}`;
}

/** Whose token this is; null for one that is none, has expired, or whose sandbox is gone. */
export function sandboxOfToken(
  token: string,
  { folderOf, nowMs }: { folderOf: (sandbox: SandboxId) => string; nowMs: number },
): SandboxId | null {
  const [, letters, hour, given] = pattern.exec(token) ?? [];
  const sandbox = SandboxId.safeParse(`sb_${letters}`);
  if (!sandbox.success || given === undefined) return null;
  const expiresHour = Number(hour);
  const nowHour = Math.floor(nowMs / HOUR_MS);
  if (expiresHour <= nowHour || expiresHour > nowHour + LIFE_HOURS) return null;
  const key = readKey(folderOf(sandbox.data));
  if (key === null) return null;
  return timingSafeEqual(signature(sandbox.data, { expiresHour, key }), Buffer.from(given, "hex")) ? sandbox.data : null;
}

function signature(sandbox: SandboxId, { expiresHour, key }: { expiresHour: number; key: string }): Buffer {
  return createHmac("sha256", key).update(`${sandbox} ${expiresHour}`).digest();
}

/** Of two who make it at once, one is first. */
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

/** One that is being written is not there yet. */
function readKey(folder: string): string | null {
  try {
    const key = readFileSync(join(folder, KEY_NAME), "utf8");
    return key.length === 2 * KEY_BYTES ? key : null;
  } catch (error) {
    if (isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR")) return null;
    throw error;
  }
}
