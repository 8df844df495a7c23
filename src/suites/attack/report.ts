import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type AttackReport, SignedReport } from "../../contract/attack-report.ts";
import { CaissonError } from "../../contract/error.ts";
import { checkValue, tellProblems } from "../../contract/plain-problems.ts";
import { isErrno } from "../../lib/is-errno.ts";

/**
 * Signs with the installation's own key, which is made on first use and stays in the state folder, readable by its
 * owner alone.
 */
export async function signReport(report: AttackReport, options: { stateDir: string }): Promise<SignedReport> {
  const key = await ownKey(options.stateDir);
  const value = sign(null, canonicalBytes(report), key).toString("base64");
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" }).toString("base64");
  return { report, signature: { algorithm: "ed25519", publicKey, value } };
}

/**
 * Whether a signed report is unchanged, and, where a public key is given, made with it. Throws `invalid` for what is
 * not a signed report.
 */
export function verifyReport(signed: unknown, options: { publicKey?: string } = {}): boolean {
  const parsed = checkValue(SignedReport, signed);
  if (!parsed.success) throw new CaissonError("invalid", `this is not a signed attack report: ${tellProblems(parsed.problems)}`);
  const { report, signature } = parsed.data;
  if (options.publicKey !== undefined && options.publicKey !== signature.publicKey) return false;
  const key = publicKeyOf(signature.publicKey);
  return key !== null && verify(null, canonicalBytes(report), key, Buffer.from(signature.value, "base64"));
}

/** JSON with the keys of every object in order, so that the same facts are the same bytes. */
function canonicalBytes(value: unknown): Buffer {
  const ordered = (_key: string, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each;
  return Buffer.from(JSON.stringify(value, ordered));
}

async function ownKey(stateDir: string): Promise<KeyObject> {
  const path = join(stateDir, "keys", "attack-report.pem");
  const existing = await readFile(path, "utf8").catch(() => null);
  if (existing !== null) return createPrivateKey(existing);
  await mkdir(join(stateDir, "keys"), { recursive: true, mode: 0o700 });
  const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
  try {
    // Exclusive: of two first reports at the same time, one makes the key and the other takes it.
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
  try {
    return createPublicKey({ key: Buffer.from(base64, "base64"), type: "spki", format: "der" });
  } catch {
    return null;
  }
}
