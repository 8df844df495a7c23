import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { BackupView } from "../../contract/machine-verbs.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { newId } from "../../lib/new-id.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import { unpackFolder } from "../../sandbox/tar/unpack-folder.ts";
import type { SandboxVerbs } from "../sandboxes/verbs.ts";

/** What is made again when it is needed, belongs to what lives right now, or is copied in its own way. */
const leftOut = new Set([
  ...["sandboxes", "station", "station.log", "probes.json", "told.json", "empty"],
  ...["templates", "mirror", "mirrors", "git"],
]);
const databases = ["log.db", "webhooks.db"];
const FILES = "files.tar";
const PREFIX = ".backup-";

const Manifest = z.object({
  caisson: z.literal("backup"),
  format: z.literal(1),
  version: z.string(),
  createdAt: z.iso.datetime(),
  host: z.string(),
  stateDir: z.string(),
});
type Manifest = z.infer<typeof Manifest>;

export interface BackupOptions {
  stateDir: string;
  version: string;
  /** The one that knows whose files sandboxes own; null where none does. */
  runtime: Runtime | null;
  sandboxes: Pick<SandboxVerbs, "list">;
}

/** See `MachineVerbs.backup`. */
export async function backUp(file: string, options: BackupOptions): Promise<BackupView> {
  if (existsSync(file)) throw new CaissonError("exists", `${file} is there already`, { hint: "Choose another name, or remove it." });
  const { stateDir } = options;
  await removeDrafts(stateDir);
  const draft = join(stateDir, `${PREFIX}${newId("new")}`);
  const part = `${file}.part`;
  await mkdir(draft, { mode: 0o700 });
  try {
    // The log first: files that are newer than it are what a crash leaves, too, and every run can go on from there.
    await copyDatabases(stateDir, draft);
    await packState(draft, options);
    const createdAt = new Date().toISOString();
    const manifest: Manifest = { caisson: "backup", format: 1, version: options.version, createdAt, host: hostname(), stateDir };
    await writeFile(join(draft, "manifest.json"), `${JSON.stringify(manifest, null, 1)}\n`);
    const whole = Readable.from(packFolder(draft));
    const out = createWriteStream(part, { mode: 0o600, flags: "wx", flush: true });
    await (isZipped(file) ? pipeline(whole, createGzip({ level: 1 }), out) : pipeline(whole, out));
    await rename(part, file);
    return { file, bytes: (await stat(file)).size, createdAt };
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** See `MachineVerbs.restore`. */
export async function restore(file: string, { stateDir, runtime }: Pick<BackupOptions, "stateDir" | "runtime">): Promise<BackupView> {
  if (existsSync(join(stateDir, "log.db"))) {
    throw new CaissonError("exists", `the state folder ${stateDir} is in use`, {
      hint: "A backup is restored into an empty one: move this one away first, or set CAISSON_HOME.",
    });
  }
  await removeDrafts(stateDir);
  const draft = join(stateDir, `${PREFIX}${newId("old")}`);
  await mkdir(draft, { mode: 0o700 });
  try {
    const stream = createReadStream(file);
    await unpackFolder(draft, isZipped(file) ? stream.pipe(createGunzip()) : stream, { bytesMax: Number.MAX_SAFE_INTEGER });
    const manifest = await readManifest(draft, { file, stateDir });
    await checkLog(join(draft, "log.db"));
    const archives = (await readdir(draft)).filter((name) => name.endsWith(".tar")).sort();
    for (const name of archives) await unpackState(join(draft, name), { stateDir, runtime });
    // What makes a folder a state folder comes last: whoever dies before it has restored nothing, and can do it again.
    for (const name of databases.toReversed()) if (existsSync(join(draft, name))) await rename(join(draft, name), join(stateDir, name));
    return { file, bytes: (await stat(file)).size, createdAt: manifest.createdAt };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Each as it is at one moment, whoever writes to it meanwhile. */
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

/** Sessions in which somebody works are packed one by one, while nothing moves in their sandboxes. */
async function packState(draft: string, { stateDir, runtime, sandboxes }: BackupOptions): Promise<void> {
  const isKept = (name: string) => !leftOut.has(name) && !name.startsWith(".") && !databases.some((each) => name.startsWith(each));
  const names = (await readdir(stateDir)).filter(isKept);
  if (runtime?.packFiles === undefined) {
    const excludePaths = (await readdir(stateDir)).filter((name) => !names.includes(name));
    await pipeline(Readable.from(packFolder(stateDir, { excludePaths })), createWriteStream(join(draft, FILES), { mode: 0o600 }));
    return;
  }
  const inUse = new Map<string, string[]>();
  for (const { id, labels, state } of (await sandboxes.list({ sweep: false })).sandboxes) {
    const { session } = labels;
    if (session !== undefined && state === "running") inUse.set(session, [...(inUse.get(session) ?? []), id]);
  }
  const sessions = names.includes("sessions") ? await readdir(join(stateDir, "sessions")) : [];
  const others = sessions.filter((session) => !inUse.has(session)).map((session) => join("sessions", session));
  const plain = [...names.filter((name) => name !== "sessions"), ...others];
  await runtime.packFiles({ folder: stateDir, names: plain, file: join(draft, FILES), still: [] });
  for (const [session, still] of inUse) {
    await runtime.packFiles({ folder: stateDir, names: [join("sessions", session)], file: join(draft, `session-${session}.tar`), still });
  }
}

async function unpackState(archive: string, { stateDir, runtime }: { stateDir: string; runtime: Runtime | null }): Promise<void> {
  if (runtime?.unpackFiles !== undefined) await runtime.unpackFiles({ file: archive, folder: stateDir });
  else await unpackFolder(stateDir, createReadStream(archive), { bytesMax: Number.MAX_SAFE_INTEGER });
}

async function readManifest(draft: string, { file, stateDir }: { file: string; stateDir: string }): Promise<Manifest> {
  const parsed = Manifest.safeParse(jsonOrNull(await readFile(join(draft, "manifest.json"), "utf8").catch(() => "")));
  if (!parsed.success) {
    throw new CaissonError("invalid", `${file} is not a backup that this Caisson understands`, {
      hint: "`caisson backup FILE` makes one.",
    });
  }
  if (parsed.data.stateDir === stateDir) return parsed.data;
  throw new CaissonError("conflict", `the backup is of the state folder ${parsed.data.stateDir}, not of ${stateDir}`, {
    hint: `Snapshots know their place by its path: restore with CAISSON_HOME=${parsed.data.stateDir}.`,
  });
}

async function checkLog(path: string): Promise<void> {
  await using log = createSqliteLog({ path });
  const [damage] = await log.check();
  if (damage !== undefined) throw new CaissonError("invalid", `the log in the backup is damaged: ${damage.text}`);
}

/** What a backup or a restore left whose process died. */
async function removeDrafts(stateDir: string): Promise<void> {
  const drafts = (await readdir(stateDir)).filter((name) => name.startsWith(PREFIX));
  for (const name of drafts) await rm(join(stateDir, name), { recursive: true, force: true });
}

function isZipped(file: string): boolean {
  return /\.t?gz$/.test(file);
}
