import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { type Duplex, Readable } from "node:stream";
import { createGunzip, createGzip } from "node:zlib";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { RestoredBackup } from "../../contract/machine/machine-verbs.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import { isProcessRunning } from "../../lib/process-stat.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import type { DiskShares } from "../../sandbox/disk-shares.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import { unpackFolder } from "../../sandbox/tar/unpack-folder.ts";
import { type PackedState, packState } from "./pack-state.ts";

const databases = ["log.db", "webhooks.db"];
const PREFIX = ".backup-";
/** If this marker exists but the log does not, the files are from an interrupted restore and may be overwritten. */
const RESTORING = ".restoring";
/** Entries that show that the folder is in use. A backup must not be mixed with them. */
const stateEntries = [...databases, "tokens", "secrets", "sessions", "incidents", "uploads"];
const GZIP_MAGIC = 0x1f8b;
const MANIFEST = "manifest.json";

const Manifest = z.object({
  caisson: z.literal("backup"),
  format: z.literal(1),
  version: z.string(),
  createdAt: z.iso.datetime(),
  host: z.string(),
  stateDir: z.string(),
  /** The SHA-256 of each part, by name. Absent in backups of older versions. */
  digests: z.record(z.string(), z.string().regex(/^[0-9a-f]{64}$/)).optional(),
});
type Manifest = z.infer<typeof Manifest>;

export interface BackupOptions extends Omit<PackedState, "databases" | "signal"> {
  version: string;
  /** The disk whose reserve the draft must not use. */
  disk: Pick<DiskShares, "check" | "write">;
}

/** See `MachineVerbs.backup`. */
export async function* backUp(options: BackupOptions & { compressed: boolean }): AsyncGenerator<Uint8Array> {
  const { stateDir } = options;
  await removeDrafts(stateDir);
  await options.disk.check("the backup");
  // An empty chunk starts the HTTP response now, because the draft takes a while.
  yield new Uint8Array(0);
  const draft = join(stateDir, `${PREFIX}${process.pid}-${newId("new")}`);
  try {
    await mkdir(draft, { mode: 0o700 });
    // Copies the log first, so the files may be newer than the log. A crash leaves the same state, and every run can
    // continue from it.
    await options.disk.write({ what: "the backup" }, async ({ signal }) => {
      await copyDatabases(stateDir, draft);
      await packState(draft, { ...options, databases, signal });
    });
    const createdAt = new Date().toISOString();
    const about = { version: options.version, createdAt, host: hostname(), stateDir };
    const manifest: Manifest = { caisson: "backup", format: 1, ...about, digests: await digestsIn(draft) };
    await writeFile(join(draft, MANIFEST), `${JSON.stringify(manifest, null, 1)}\n`);
    if (options.compressed) yield* Readable.from(packFolder(draft)).compose<Duplex>(createGzip({ level: 1 }));
    else yield* packFolder(draft);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** See `MachineVerbs.restore`. */
export async function restore(file: string, { stateDir, runtime }: Pick<BackupOptions, "stateDir" | "runtime">): Promise<RestoredBackup> {
  if (await isInUse(stateDir)) {
    throw new CaissonError("exists", `the state folder ${stateDir} is in use`, {
      hint: "Move this folder away first, or set CAISSON_HOME: a backup is restored into an empty folder.",
    });
  }
  await removeDrafts(stateDir);
  const draft = join(stateDir, `${PREFIX}${process.pid}-${newId("old")}`);
  await mkdir(draft, { mode: 0o700 });
  try {
    const zipped = await isZipped(file);
    const plain = zipped ? createReadStream(file).compose<Duplex>(createGunzip()) : createReadStream(file);
    await unpackFolder(draft, plain, { bytesMax: Number.MAX_SAFE_INTEGER });
    const manifest = await readManifest(draft, { file, stateDir });
    await checkParts(draft, manifest, file);
    await checkLog(join(draft, "log.db"));
    const archives = (await readdir(draft)).filter((name) => name.endsWith(".tar")).sort();
    await writeFile(join(stateDir, RESTORING), "");
    for (const name of archives) await unpackState(join(draft, name), { stateDir, runtime });
    // The databases make a folder a state folder, so they come last: a restore that dies earlier has restored nothing,
    // and can be repeated.
    for (const name of databases.toReversed()) if (existsSync(join(draft, name))) await rename(join(draft, name), join(stateDir, name));
    await rm(join(stateDir, RESTORING));
    const { createdAt, host, version, digests } = manifest;
    return { createdAt, host, version, isVerified: digests !== undefined };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Returns whether the folder has a log, or something that was created before there was a log. Empty folders do not
 * count.
 */
async function isInUse(stateDir: string): Promise<boolean> {
  if (existsSync(join(stateDir, "log.db"))) return true;
  if (existsSync(join(stateDir, RESTORING))) return false;
  for (const name of stateEntries) {
    const inside = await ifErrno(readdir(join(stateDir, name)), ABSENT, null);
    if (inside === null ? existsSync(join(stateDir, name)) : inside.length > 0) return true;
  }
  return false;
}

/** Copies each database as it is at one moment, even with concurrent writers. */
async function copyDatabases(stateDir: string, draft: string): Promise<void> {
  for (const name of databases) {
    if (!existsSync(join(stateDir, name))) continue;
    const database = new DatabaseSync(join(stateDir, name), { readOnly: true });
    try {
      await backup(database, join(draft, name), { rate: 1_000_000 });
    } finally {
      database.close();
    }
  }
}

async function unpackState(archive: string, { stateDir, runtime }: { stateDir: string; runtime: Runtime | null }): Promise<void> {
  if (runtime?.unpackFiles !== undefined) await runtime.unpackFiles({ file: archive, folder: stateDir });
  else await unpackFolder(stateDir, createReadStream(archive), { bytesMax: Number.MAX_SAFE_INTEGER });
}

async function readManifest(draft: string, { file, stateDir }: { file: string; stateDir: string }): Promise<Manifest> {
  const parsed = Manifest.safeParse(jsonOrNull(await ifErrno(readFile(join(draft, MANIFEST), "utf8"), ABSENT, "")));
  if (!parsed.success) {
    throw new CaissonError("invalid", `${file} is not a backup that this version of Caisson can read`, {
      hint: "Create one with `caisson backup FILE`.",
    });
  }
  if (parsed.data.stateDir === stateDir) return parsed.data;
  throw new CaissonError("conflict", `the backup belongs to the state folder ${parsed.data.stateDir}, not to ${stateDir}`, {
    hint: `Restore it with CAISSON_HOME=${parsed.data.stateDir}: snapshots depend on this path.`,
  });
}

/** Returns the digest of every part: each file of the draft except the manifest. */
async function digestsIn(draft: string): Promise<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const name of (await readdir(draft)).sort()) if (name !== MANIFEST) digests[name] = await digestOf(join(draft, name));
  return digests;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return hash.digest("hex");
}

/** Throws `invalid`, before anything is written, for a part that differs from the manifest. */
async function checkParts(draft: string, { digests }: Manifest, file: string): Promise<void> {
  if (digests === undefined) return;
  const found = await digestsIn(draft);
  const wrong = [...new Set([...Object.keys(digests), ...Object.keys(found)])].filter((name) => digests[name] !== found[name]);
  if (wrong.length === 0) return;
  throw new CaissonError("invalid", `${file} is damaged, and nothing was restored: wrong digest of ${wrong.join(", ")}`, {
    hint: "Copy the backup again from its source, or restore an older one.",
  });
}

async function checkLog(path: string): Promise<void> {
  await using log = createSqliteLog({ path });
  const [damage] = await log.check();
  if (damage !== undefined) throw new CaissonError("invalid", `the log in the backup is damaged: ${damage.text}`);
}

/** Removes the drafts of backups and restores whose process died. */
async function removeDrafts(stateDir: string): Promise<void> {
  const drafts = (await readdir(stateDir)).filter(
    (name) => name.startsWith(PREFIX) && !isProcessRunning(Number(name.slice(PREFIX.length).split("-")[0])),
  );
  for (const name of drafts) await rm(join(stateDir, name), { recursive: true, force: true });
}

async function isZipped(file: string): Promise<boolean> {
  const handle = await open(file).catch((cause: unknown) => {
    throw new CaissonError("not_found", `${file} cannot be read`, { cause });
  });
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer.readUInt16BE() === GZIP_MAGIC;
  } finally {
    await handle.close();
  }
}
