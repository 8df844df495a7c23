import { constants } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import type { FileInfo, Sandbox } from "../sandbox/sandbox.ts";
import { type Change, type FileSide, isText, sameSide } from "./change.ts";
import { similarityOf } from "./render-diff.ts";

/** Bounds of a diff: beyond them it says so instead of filling the memory. */
export const CHANGED_FILES_MAX = 20_000;
const FILE_BYTES_MAX = 64 * 1024 * 1024;
const TOTAL_BYTES_MAX = 1024 * 1024 * 1024;
const DEPTH_MAX = 200;
const ENTRIES_MAX = 100_000;
/** Files of a rename share at least this part of their lines. */
const RENAME_SIMILARITY = 0.5;
const RENAME_PAIRS_MAX = 10_000;
const READS_AT_ONCE = 16;

const WORKSPACE = "/workspace";

/**
 * What differs between the user's folder and the workspace inside. The old side is read on the host from the user's own folder, without following any link; the new
 * side is read by the guest, inside. `layer` is the host folder that collects the changes: its names (nothing else is believed of it) tell where to look, which
 * makes a diff cost what was changed, not what is there.
 */
export async function findChanges(options: { sandbox: Sandbox; lower: string; layer: string | null }): Promise<Change[]> {
  const candidates = await candidatesOf(options);
  if (candidates.length > CHANGED_FILES_MAX) {
    throw new CaissonError("too_large", `${candidates.length} files changed; a diff shows at most ${CHANGED_FILES_MAX}.`, {
      hint: "Did the agent leave a dependency folder behind? Remove it, or give paths.",
    });
  }
  const budget = { left: TOTAL_BYTES_MAX };
  const changes: Change[] = [];
  for (let at = 0; at < candidates.length; at += READS_AT_ONCE) {
    const part = candidates.slice(at, at + READS_AT_ONCE);
    changes.push(
      ...(await Promise.all(part.map((path) => readBoth(path, options, budget)))).filter(
        (change) => !sameSide(change.before, change.after),
      ),
    );
  }
  changes.sort((a, b) => (a.path < b.path ? -1 : 1));
  return pairRenames(changes);
}

async function candidatesOf(options: { sandbox: Sandbox; lower: string; layer: string | null }): Promise<string[]> {
  if (options.layer === null) return await compareAll(options);
  try {
    return await compareTouched(options, options.layer);
  } catch (error) {
    // Without root, the layer may hold folders of users we cannot be: then everything is compared, from inside.
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "EACCES" || code === "EPERM" || code === "ENOENT") return await compareAll(options);
    throw error;
  }
}

async function readBoth(path: string, options: { sandbox: Sandbox; lower: string }, budget: { left: number }): Promise<Change> {
  const before = await readLower(join(options.lower, path));
  const after = await readInside(options.sandbox, `${WORKSPACE}/${path}`);
  budget.left -= (before?.content.length ?? 0) + (after?.content.length ?? 0);
  if (budget.left < 0) throw new CaissonError("too_large", `The changed files are larger than ${TOTAL_BYTES_MAX} bytes together.`);
  return { path, from: null, before, after };
}

async function compareAll(options: { sandbox: Sandbox; lower: string }): Promise<string[]> {
  const entries = [...(await listFolder(options.sandbox, "", DEPTH_MAX)).values()];
  const inside = new Map(entries.filter((entry) => entry.kind !== "directory").map((entry) => [entry.name, entry]));
  const candidates: string[] = [];
  for (const path of await walkLower(options.lower, "")) {
    const entry = inside.get(path);
    inside.delete(path);
    if (!entry || (await mayDiffer(join(options.lower, path), entry))) candidates.push(path);
  }
  return [...candidates, ...inside.keys()];
}

async function mayDiffer(path: string, entry: FileInfo): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  if (!found) return true;
  return (
    found.size !== entry.sizeBytes ||
    Math.trunc(found.mtimeMs) !== Math.trunc(entry.modifiedMs) ||
    (found.mode & 0o111) !== (entry.mode & 0o111)
  );
}

/** Looks only into folders the layer has: a folder it does not have, below one that is where it was, is as it was. */
async function compareTouched(options: { sandbox: Sandbox; lower: string }, layer: string): Promise<string[]> {
  const candidates: string[] = [];
  const visit = async (folder: string, depth: number): Promise<void> => {
    if (depth > DEPTH_MAX) throw new CaissonError("too_large", `${folder} lies deeper than ${DEPTH_MAX} folders.`);
    const touched = new Set(await readdir(join(layer, folder)));
    const merged = await listFolder(options.sandbox, folder, 1);
    const below = await lowerNames(join(options.lower, folder));
    const pathOf = (name: string) => (folder === "" ? name : `${folder}/${name}`);
    for (const [name, kind] of below) {
      const now = merged.get(name);
      if (!now || (now.kind === "directory") !== (kind === "directory"))
        candidates.push(...(await lowerFiles(options.lower, pathOf(name), kind === "directory")));
    }
    for (const [name, entry] of merged) {
      const path = pathOf(name);
      const before = below.get(name);
      if (entry.kind !== "directory") {
        if (before !== "other" || touched.has(name) || (await mayDiffer(join(options.lower, path), entry))) candidates.push(path);
      } else if (touched.has(name)) await visit(path, depth + 1);
      // A folder that was moved here has its files where it was before: the layer does not show them.
      else if (before !== "directory") candidates.push(...(await filesInside(options.sandbox, path)));
    }
  };
  await visit("", 0);
  return [...new Set(candidates)];
}

async function listFolder(sandbox: Sandbox, folder: string, depth: number): Promise<Map<string, FileInfo>> {
  const { entries, truncated } = await sandbox.list(folder === "" ? WORKSPACE : `${WORKSPACE}/${folder}`, {
    depth,
    entriesMax: ENTRIES_MAX,
  });
  if (truncated) throw new CaissonError("too_large", `The folder ${folder} has more than ${ENTRIES_MAX} entries.`);
  return new Map(entries.map((entry) => [entry.name, entry]));
}

async function filesInside(sandbox: Sandbox, folder: string): Promise<string[]> {
  const entries = await listFolder(sandbox, folder, DEPTH_MAX);
  return [...entries.values()].filter((entry) => entry.kind !== "directory").map((entry) => `${folder}/${entry.name}`);
}

async function lowerNames(folder: string): Promise<Map<string, "directory" | "other">> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return new Map(entries.map((entry) => [entry.name, entry.isDirectory() ? "directory" : "other"]));
}

async function lowerFiles(lower: string, path: string, isDirectory: boolean): Promise<string[]> {
  return isDirectory ? await walkLower(lower, path) : [path];
}

/** Every file and link below a folder of the user's, links not followed. */
async function walkLower(lower: string, start: string): Promise<string[]> {
  const files: string[] = [];
  const folders = [start];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await readdir(join(lower, folder), { withFileTypes: true }).catch(() => [])) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) folders.push(path);
      else files.push(path);
    }
    if (files.length > ENTRIES_MAX) throw new CaissonError("too_large", `${lower} has more than ${ENTRIES_MAX} files.`);
  }
  return files;
}

export async function readLower(path: string): Promise<FileSide | null> {
  const found = await lstat(path).catch(() => null);
  if (!found) return null;
  if (found.isSymbolicLink()) return { kind: "link", mode: 0o777, content: Buffer.from(await readlink(path)) };
  if (!found.isFile()) return null;
  checkSize(path, found.size);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
  if (!file) return null;
  try {
    return { kind: "file", mode: found.mode & 0o111 ? 0o755 : 0o644, content: await file.readFile() };
  } finally {
    await file.close();
  }
}

async function readInside(sandbox: Sandbox, path: string): Promise<FileSide | null> {
  const found = await sandbox.stat(path, { follow: false }).catch(absent);
  if (!found) return null;
  if (found.kind === "link") return { kind: "link", mode: 0o777, content: Buffer.from(found.linkTarget ?? "") };
  if (found.kind !== "file") return null;
  checkSize(path, found.sizeBytes);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of await sandbox.readFile(path)) {
    bytes += piece.length;
    checkSize(path, bytes);
    pieces.push(piece);
  }
  return { kind: "file", mode: found.mode & 0o111 ? 0o755 : 0o644, content: Buffer.concat(pieces) };
}

function absent(error: unknown): null {
  if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return null;
  throw error;
}

function checkSize(path: string, bytes: number): void {
  if (bytes > FILE_BYTES_MAX)
    throw new CaissonError("too_large", `${path} is larger than ${FILE_BYTES_MAX} bytes, which is more than a diff takes.`);
}

/** A file that went and a like one that came are one file that moved. */
function pairRenames(changes: Change[]): Change[] {
  const removed = changes.filter((change) => change.after === null && change.before?.kind === "file" && change.before.content.length > 0);
  const added = changes.filter((change) => change.before === null && change.after?.kind === "file" && change.after.content.length > 0);
  if (removed.length * added.length > RENAME_PAIRS_MAX) return changes;
  const gone = new Set<Change>();
  for (const target of added) {
    const best = bestSource(
      target,
      removed.filter((change) => !gone.has(change)),
    );
    if (!best) continue;
    gone.add(best);
    target.from = best.path;
    target.before = best.before;
  }
  return changes.filter((change) => !gone.has(change));
}

function bestSource(target: Change, sources: readonly Change[]): Change | null {
  let best: Change | null = null;
  let bestScore = RENAME_SIMILARITY;
  for (const source of sources) {
    if (!source.before || !target.after) continue;
    const same = source.before.content.equals(target.after.content);
    const score = same
      ? 1
      : isText(source.before.content) && isText(target.after.content)
        ? similarityOf(source.before.content, target.after.content)
        : 0;
    if (score > bestScore || (score === 1 && bestScore < 1)) {
      best = source;
      bestScore = score;
    }
  }
  return best;
}
