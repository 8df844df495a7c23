import { lchown, lstat, symlink } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { currentOwner, type Owner, ownerAlive } from "../sandbox/store.ts";
import { type Operation, openStaging, perform, type Staging, takeBack, writeDurably } from "./apply-journal.ts";
import { type Change, type FileSide, isWithin, type LeftOut, sameSide } from "./change.ts";
import { lookAt } from "./look-at.ts";
import { forbidden, needsNaming, plantedRepositories } from "./protected-path.ts";
import { readLower } from "./read-side.ts";

export interface ApplyOptions {
  folder: string;
  /** Files or folders; absent: everything. */
  paths?: readonly string[];
  /** Also what tools outside act on, without its being named. */
  includeConfiguration?: boolean;
  /** Also over files that the user changed since the agent's copy was made. */
  force?: boolean;
  /** Whether another one that applies still lives: one at a time, and what a dead one left is taken back. Default: as seen on this machine. */
  alive?: (applier: Owner) => boolean;
  /** For tests: called before each effect. */
  crashpoint?: (name: string) => void;
}

export interface ApplyResult {
  applied: string[];
  /** Each with its reason. */
  skipped: LeftOut[];
}

/**
 * Brings changes to the user's folder: all of the chosen ones or none, also when it is killed in the middle (the next one takes it back). Nothing the agent wrote is run or
 * followed. A change to a file that tools act on is taken only when it is named. Throws `unsafe` (leaves the folder, is git's own, goes through a
 * link or leads out), `conflict` (the user changed the file meanwhile), `invalid` (a path nothing changed at), `denied`, `no_space`.
 */
export async function applyChanges(changes: readonly Change[], options: ApplyOptions): Promise<ApplyResult> {
  const { chosen, skipped } = choose(changes, options);
  let staging: Staging;
  try {
    staging = await openStaging(options.folder, { self: currentOwner(), alive: options.alive ?? ownerAlive });
  } catch (error) {
    throw translate(error, options.folder);
  }
  try {
    refuseChangedOutside(chosen, options);
    const going = new Set(chosen.flatMap(({ path, from, after }) => (from !== null ? [from] : after === null ? [path] : [])));
    for (const change of chosen) await check(change, { folder: options.folder, going });
    const operations = await stage(chosen, staging);
    await perform(staging, operations, options.crashpoint ?? (() => undefined));
  } catch (error) {
    await takeBack(staging);
    throw translate(error, options.folder);
  }
  await takeBack(staging);
  return { applied: chosen.map((change) => change.path), skipped };
}

function choose(changes: readonly Change[], options: ApplyOptions): { chosen: Change[]; skipped: LeftOut[] } {
  const wanted = options.paths?.map((path) => posix.normalize(path).replace(/\/$/, "")) ?? null;
  const candidates = wanted === null ? changes : onlyWithin(changes, wanted);
  const exists = (path: string) => lookAt(join(options.folder, path)) !== null;
  const planted = plantedRepositories(
    candidates.filter((change) => change.after !== null).map((change) => change.path),
    exists,
  );
  const chosen: Change[] = [];
  const skipped: LeftOut[] = [];
  for (const change of candidates) {
    const named = wanted?.includes(change.path) === true;
    const ends = change.from === null ? [change.path] : [change.path, change.from];
    const never = ends.map(forbidden).find((reason) => reason !== null) ?? inRepository(change, planted);
    const configuration = ends.map(needsNaming).find((reason) => reason !== null) ?? null;
    if (never !== null) {
      if (named) throw new CaissonError("unsafe", `${change.path} is not applied: ${never}.`);
      skipped.push({ path: change.path, reason: never });
    } else if (configuration !== null && !named && !options.includeConfiguration) {
      skipped.push({ path: change.path, reason: `${configuration}; name it, or give --include-config` });
    } else chosen.push(change);
  }
  return { chosen, skipped };
}

const inRepository = (change: Change, planted: readonly string[]) =>
  change.after !== null && planted.some((folder) => folder === "" || change.path.startsWith(`${folder}/`))
    ? "it makes a git repository by itself: whoever uses git there would run what its settings name"
    : null;

/** A move of which only one end was named is a file that came, or one that went. */
function onlyWithin(changes: readonly Change[], wanted: readonly string[]): Change[] {
  const nothing = wanted.filter(
    (each) => each !== "." && !changes.some(({ path, from }) => isWithin(path, [each]) || (from !== null && isWithin(from, [each]))),
  );
  if (nothing.length > 0)
    throw new CaissonError("invalid", `Nothing changed at ${nothing.join(", ")}.`, { hint: "`caisson diff --stat` lists what did." });
  return changes.flatMap((change) => {
    const here = isWithin(change.path, wanted);
    const there = change.from !== null && isWithin(change.from, wanted);
    if (change.from === null || here === there) return here ? [change] : [];
    return here ? [{ ...change, from: null, before: null }] : [{ ...change, path: change.from, from: null, after: null }];
  });
}

function refuseChangedOutside(chosen: readonly Change[], options: ApplyOptions): void {
  const outside = options.force ? [] : chosen.filter((change) => change.changedOutside).map((change) => change.from ?? change.path);
  if (outside.length === 0) return;
  throw new CaissonError(
    "conflict",
    `You changed ${outside.join(", ")} in ${options.folder} since the agent began from it; nothing was applied.`,
    {
      hint: "Look at the diff: it undoes your change. Apply the other paths by name, or give --force.",
      details: { paths: outside },
    },
  );
}

async function check(change: Change, { folder, going }: { folder: string; going: ReadonlySet<string> }): Promise<void> {
  const { path, from, before, after } = change;
  for (const each of from === null ? [path] : [path, from]) await refuseLinkOnTheWay(folder, each, going);
  if (after?.kind === "link") refuseLinkOut(path, after.content.toString("utf8"));
  const now = await readLower(join(folder, from ?? path));
  if (!sameSide(now, before)) {
    throw new CaissonError("conflict", `${from ?? path} in ${folder} is not what the diff begins from; nothing was applied.`, {
      hint: "Look at the diff again, then apply.",
    });
  }
  if (from !== null && (await readLower(join(folder, path))) !== null)
    throw new CaissonError("conflict", `${path} exists in ${folder} already; nothing was applied.`);
}

function refuseLinkOut(path: string, target: string): void {
  const landed = posix.normalize(posix.join(posix.dirname(path), target));
  const gits = landed.split("/").some((part) => part.toLowerCase() === ".git");
  if (!target.startsWith("/") && landed !== ".." && !landed.startsWith("../") && !gits) return;
  throw new CaissonError(
    "unsafe",
    `${path} is a link to ${JSON.stringify(target)}, ${gits ? "into git's own files" : "outside the folder"}; nothing was applied.`,
    {
      hint: "Leave it out by naming the other paths.",
    },
  );
}

/** A folder on the way that is a link would lead the write somewhere else, unless it makes way itself. */
async function refuseLinkOnTheWay(folder: string, path: string, going: ReadonlySet<string>): Promise<void> {
  for (const parent of parentsOf(path).reverse()) {
    const found = await lstat(join(folder, parent)).catch(() => null);
    if (!found || going.has(parent)) return;
    if (found.isSymbolicLink()) throw new CaissonError("unsafe", `${path} is not applied: ${join(folder, parent)} is a link.`);
  }
}

/** Writes the new files beside the old ones, and says what is to be done with them, in an order in which a file may take a folder's place and the other way round. */
async function stage(changes: readonly Change[], staging: Staging): Promise<Operation[]> {
  const keeps: Operation[] = [];
  const puts: Operation[] = [];
  const gone: string[] = [];
  for (const [index, { path, from, before, after }] of changes.entries()) {
    const old = from ?? path;
    const replaced = from === null && before !== null && after !== null;
    if (before !== null) keeps.push({ kind: "keep", path: old, kept: `old-${index}`, replaced });
    if (before !== null && !replaced) gone.push(old);
    if (after === null) continue;
    await writeFresh(join(staging.dir, `new-${index}`), after, { path: join(staging.folder, old), staging, isNew: before === null });
    puts.push({ kind: "put", path, fresh: `new-${index}`, replaces: replaced });
  }
  const needed = new Set(puts.flatMap(({ path }) => parentsOf(path)));
  const emptied = [...new Set(gone.flatMap(parentsOf))].filter((path) => !needed.has(path)).sort(deepestFirst);
  const removals = await Promise.all(emptied.map((path) => folderToRemove(staging.folder, path)));
  const made = [...needed].filter((path) => !isFolder(join(staging.folder, path))).sort((a, b) => deepestFirst(b, a));
  return [...keeps, ...removals, ...made.map((path): Operation => ({ kind: "mkdir", path })), ...puts];
}

const deepestFirst = (a: string, b: string) => b.split("/").length - a.split("/").length;
const isFolder = (path: string) => lookAt(path)?.isDirectory() === true;

function parentsOf(path: string): string[] {
  const parents: string[] = [];
  for (let at = dirname(path); at !== "."; at = dirname(at)) parents.push(at);
  return parents;
}

async function folderToRemove(folder: string, path: string): Promise<Operation> {
  const { mode, uid, gid } = await lstat(join(folder, path));
  return { kind: "rmdir", path, mode: mode & 0o7777, uid, gid };
}

/** With the old file's permissions but for the right to execute, and its owner; a new file gets the folder's. No bit that changes who runs it. */
async function writeFresh(target: string, side: FileSide, about: { path: string; staging: Staging; isNew: boolean }): Promise<void> {
  const old = about.isNew ? null : await lstat(about.path);
  if (side.kind === "link") await symlink(side.content, target);
  else await writeDurably(target, side.content, permissions(side, old === null || old.isSymbolicLink() ? null : old.mode));
  const { owner } = about.staging;
  if (owner) await lchown(target, old?.uid ?? owner.uid, old?.gid ?? owner.gid);
}

function permissions(side: FileSide, old: number | null): number {
  if (old === null) return side.mode & 0o777 & ~process.umask();
  const plain = old & 0o666;
  if (!(side.mode & 0o111)) return plain;
  return old & 0o111 ? old & 0o777 : plain | ((plain & 0o444) >> 2);
}

function translate(error: unknown, folder: string): unknown {
  if (error instanceof CaissonError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOENT")
    return new CaissonError("not_found", `The folder ${folder} is not there, or changed meanwhile; nothing was applied.`, { cause: error });
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CaissonError("no_space", `The disk of ${folder} is full; nothing was applied.`, {
      hint: "Make room, then apply again.",
      cause: error,
    });
  if (code === "EACCES" || code === "EPERM" || code === "EROFS")
    return new CaissonError("denied", `${folder} cannot be written to; nothing was applied.`, {
      hint: "Apply as the folder's owner, or to another folder with --to.",
      cause: error,
    });
  return new CaissonError("internal", `Applying to ${folder} failed and was taken back: ${(error as Error).message}`, { cause: error });
}
