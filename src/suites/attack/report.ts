import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { type AttackReport, SignedReport } from "../../contract/machine/attack-report.ts";
import { ABSENT, ifErrno, ignoring, isErrno } from "../../lib/failures.ts";

/**
 * Signs a report with the installation's own key, which is created on first use and stays in the state folder, readable
 * only by its owner.
 */
export async function signReport(report: AttackReport, options: { stateDir: string }): Promise<SignedReport> {
  const key = await ownKey(options.stateDir);
  const value = sign(null, canonicalBytes(report), key).toString("base64");
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" }).toString("base64");
  return { report, signature: { algorithm: "ed25519", publicKey, value } };
}

/**
 * Whether a signed report is unchanged and, if a public key is given, signed with that key. Throws `invalid` for
 * anything that is not a signed report.
 */
export function verifyReport(signed: unknown, options: { publicKey?: string } = {}): boolean {
  const parsed = checkValue(SignedReport, signed);
  if (!parsed.success) throw new CaissonError("invalid", `not a signed attack report: ${tellProblems(parsed.problems)}`);
  const { report, signature } = parsed.data;
  if (options.publicKey !== undefined && options.publicKey !== signature.publicKey) return false;
  const key = publicKeyOf(signature.publicKey);
  return key !== null && verify(null, canonicalBytes(report), key, Buffer.from(signature.value, "base64"));
}

/** Serializes to JSON with sorted keys, so equal facts give equal bytes. */
function canonicalBytes(value: unknown): Buffer {
  const sortKeys = (_key: string, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each;
  return Buffer.from(JSON.stringify(value, sortKeys));
}

async function ownKey(stateDir: string): Promise<KeyObject> {
  const path = join(stateDir, "keys", "attack-report.pem");
  const existing = await ifErrno(readFile(path, "utf8"), ABSENT, null);
  if (existing !== null) return createPrivateKey(existing);
  await mkdir(join(stateDir, "keys"), { recursive: true, mode: 0o700 });
  const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
  try {
    // Exclusive: if two first reports run at the same time, one creates the key and the other reads it.
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(pem);
    await file.sync();
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    return createPrivateKey(await readFile(path, "utf8"));
  }
  return createPrivateKey(pem);
}

function publicKeyOf(base64: string): KeyObject | null {
  const key = Buffer.from(base64, "base64");
  return ignoring("a malformed key verifies nothing", () => createPublicKey({ key, type: "spki", format: "der" })) ?? null;
}
