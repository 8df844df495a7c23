import { createHash } from "node:crypto";
import { mkdir, readdir, realpath, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import { replaceFile } from "../../lib/replace-file.ts";

/** That the user agreed to what one file asked for, with one content. */
export const TrustRecord = z.strictObject({
  version: z.literal(1),
  /** As it really lies: a link in its place is another file. */
  path: z.string().min(1),
  /** Of the whole content. */
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  at: z.iso.datetime(),
  /** What it asked for, as it was shown. */
  rights: z.array(z.string()),
});
export type TrustRecord = z.infer<typeof TrustRecord>;

/** What the user trusted, kept in the state folder: nothing in a folder can say of itself that it is trusted. */
export interface TrustStore {
  /** Null when nothing was ever agreed to for this path, or when that cannot be read. */
  get(path: string): Promise<TrustRecord | null>;
  record(agreed: { path: string; source: string; rights: readonly string[] }): Promise<TrustRecord>;
  list(): Promise<TrustRecord[]>;
  /** False when there was nothing to revoke. The file need not be there any more. */
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
        throw new CaissonError("unavailable", `what was agreed to cannot be kept in ${folder}`, { cause: error });
      }
      return record;
    },
    async list() {
      const names = (await readdir(folder).catch(() => [] as string[])).filter((name) => name.endsWith(".json")).sort();
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

/** Also of a file that is gone: then as far as its folders are there. */
async function realPath(path: string): Promise<string> {
  const absolute = resolve(path);
  const real = await realpath(absolute).catch(() => null);
  if (real !== null) return real;
  const parent = dirname(absolute);
  return parent === absolute ? absolute : join(await realPath(parent), basename(absolute));
}

/** Null for what is damaged, or could have been written by somebody else: nothing was agreed to then. */
async function readRecord(file: string): Promise<TrustRecord | null> {
  const found = await readRegularFile(file, { bytesMax: RECORD_BYTES_MAX }).catch(() => null);
  if (found === null || typeof found === "string") return null;
  if ((found.mode & 0o022) !== 0 || (process.getuid !== undefined && found.uid !== process.getuid())) return null;
  try {
    return TrustRecord.parse(JSON.parse(found.bytes.toString("utf8")));
  } catch {
    return null;
  }
}
