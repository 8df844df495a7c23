import { createHash } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull, UNREACHABLE } from "../../lib/failures.ts";
import { realPathOrNull } from "../../lib/paths.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import { replaceFile } from "../../lib/replace-file.ts";

/** The user's consent to the rights that one version of a file requests. */
export const TrustRecord = z.strictObject({
  version: z.literal(1),
  /** The real path, with links resolved: a link to elsewhere is another file. */
  path: z.string().min(1),
  /** The SHA-256 digest of the whole content. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  at: z.iso.datetime(),
  /** The rights as they were shown to the user. */
  rights: z.array(z.string()),
});
export type TrustRecord = z.infer<typeof TrustRecord>;

/** The user's trust records, stored in the state folder: no file in a project folder can declare itself trusted. */
export interface TrustStore {
  /** Returns the record for this path, or null if it does not exist or cannot be read. */
  get(path: string): Promise<TrustRecord | null>;
  record(agreed: { path: string; source: string; rights: readonly string[] }): Promise<TrustRecord>;
  list(): Promise<TrustRecord[]>;
  /** Returns false if there was nothing to revoke. The file need not exist. */
  revoke(path: string): Promise<boolean>;
}

const RECORD_BYTES_MAX = 4 * 1024 * 1024;

export function createTrustStore(options: { stateDir: string }): TrustStore {
  const folder = join(options.stateDir, "trust");
  const fileFor = async (path: string) => join(folder, `${digestOfText(await realPath(path))}.json`);
  return {
    async get(path) {
      const record = await readRecord(await fileFor(path));
      return record?.path === (await realPath(path)) ? record : null;
    },
    async record({ path, source, rights }) {
      const at = new Date().toISOString();
      const record: TrustRecord = { version: 1, path: await realPath(path), digest: digestOfText(source), at, rights: [...rights] };
      await mkdir(folder, { recursive: true, mode: 0o700 });
      try {
        await replaceFile(folder, basename(await fileFor(path)), `${JSON.stringify(record, null, 1)}\n`);
      } catch (error) {
        throw new CaissonError("unavailable", `cannot store the trust record in ${folder}`, { cause: error });
      }
      return record;
    },
    async list() {
      const names = (await ifErrno(readdir(folder), ABSENT, [])).filter((name) => name.endsWith(".json")).sort();
      const records = await Promise.all(names.map((name) => readRecord(join(folder, name))));
      return records.filter((record) => record !== null).sort((a, b) => a.path.localeCompare(b.path));
    },
    async revoke(path) {
      const file = await fileFor(path);
      try {
        await rm(file);
        return true;
      } catch (error) {
        if (isErrno(error, "ENOENT")) return false;
        throw error;
      }
    },
  };
}

export function trusts(record: TrustRecord | null, source: string): boolean {
  return record?.digest === digestOfText(source);
}

export function digestOfText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Resolves links as far as the path exists, since the file may have been removed. */
async function realPath(path: string): Promise<string> {
  const absolute = resolve(path);
  const real = realPathOrNull(absolute);
  if (real !== null) return real;
  const parent = dirname(absolute);
  return parent === absolute ? absolute : join(await realPath(parent), basename(absolute));
}

/** Returns null for a record that is damaged or that another user could have written: it counts as no consent. */
async function readRecord(file: string): Promise<TrustRecord | null> {
  const found = await ifErrno(readRegularFile(file, { bytesMax: RECORD_BYTES_MAX }), UNREACHABLE, null);
  if (found === null || typeof found === "string") return null;
  if ((found.mode & 0o022) !== 0 || (process.getuid !== undefined && found.uid !== process.getuid())) return null;
  return TrustRecord.safeParse(jsonOrNull(found.bytes.toString("utf8"))).data ?? null;
}
