import { randomBytes } from "node:crypto";
import { lstat, mkdir, open, readdir, readFile, rename, rm, rmdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { CaissonError } from "../contract/error.ts";
import type { Change, FileSide } from "./change.ts";
import { sameSide } from "./change.ts";
import { readLower } from "./changes.ts";
import { forbidden, needsNaming } from "./protected-path.ts";

const STAGING_PREFIX = ".caisson-apply-";

export interface ApplyResult {
  applied: string[];
  /** Left out, each with its reason. */
  skipped: { path: string; reason: string }[];
}

interface Operation {
  path: string;
  /** The staged new content, or null to remove. */
  fresh: string | null;
  /** Where the old one is kept until all is done, or null when there is none. */
  saved: string | null;
}

/**
 * Brings changes to the user's folder: all of the chosen ones or none. Nothing the agent wrote is run or followed. `paths` chooses files or folders; a change to a file
 * that tools act on is taken only when it is named there. Throws `unsafe` (leaves the folder, is git's own, goes through a link), `conflict` (the user changed the file meanwhile),
 * `invalid` (a path nothing changed at).
 */
export async function applyChanges(
  changes: readonly Change[],
  options: { folder: string; paths?: readonly string[]; includeConfiguration?: boolean },
): Promise<ApplyResult> {
  await recoverApply(options.folder);
  const { chosen, skipped } = choose(changes, options);
  for (const change of chosen) await check(change, options.folder);
  if (chosen.length === 0) return { applied: [], skipped };
  const staging = join(options.folder, `${STAGING_PREFIX}${randomBytes(6).toString("hex")}`);
  await mkdir(staging, { mode: 0o700 });
  try {
    const operations = await stage(chosen, staging);
    await writeDurably(join(staging, "journal.json"), JSON.stringify(operations));
    await perform(operations, options.folder, staging);
  } catch (error) {
    await rollBack(options.folder, staging);
    throw translate(error);
  }
  await rm(staging, { recursive: true, force: true });
  return { applied: chosen.map((change) => change.path), skipped };
}

function choose(
  changes: readonly Change[],
  options: { paths?: readonly string[]; includeConfiguration?: boolean },
): { chosen: Change[]; skipped: ApplyResult["skipped"] } {
  const wanted = options.paths?.map((path) => posix.normalize(path).replace(/\/$/, "")) ?? null;
  const named = (path: string) => wanted?.includes(path) === true;
  const within = (path: string) => wanted === null || wanted.some((each) => each === "." || path === each || path.startsWith(`${each}/`));
  const nothing = wanted?.filter(
    (each) => each !== "." && !changes.some((change) => change.path === each || change.path.startsWith(`${each}/`) || change.from === each),
  );
  if (nothing && nothing.length > 0)
    throw new CaissonError("invalid", `Nothing changed at ${nothing.join(", ")}.`, { hint: "`caisson diff --stat` lists what did." });
  const chosen: Change[] = [];
  const skipped: ApplyResult["skipped"] = [];
  for (const change of changes) {
    if (!within(change.path)) continue;
    const never = forbidden(change.path) ?? (change.from === null ? null : forbidden(change.from));
    if (never !== null) {
      if (named(change.path)) throw new CaissonError("unsafe", `${change.path} is not applied: ${never}.`);
      skipped.push({ path: change.path, reason: never });
      continue;
    }
    const configuration = needsNaming(change.path);
    if (configuration !== null && !named(change.path) && !options.includeConfiguration) {
      skipped.push({ path: change.path, reason: `${configuration}; name it to apply it` });
      continue;
    }
    chosen.push(change);
  }
  return { chosen, skipped };
}

async function check(change: Change, folder: string): Promise<void> {
  for (const path of change.from === null ? [change.path] : [change.path, change.from]) await refuseLinkOnTheWay(folder, path);
  if (change.after?.kind === "link") {
    const target = change.after.content.toString("utf8");
    const landed = posix.normalize(posix.join(posix.dirname(change.path), target));
    if (target.startsWith("/") || landed === ".." || landed.startsWith("../")) {
      throw new CaissonError("unsafe", `${change.path} is a link to ${JSON.stringify(target)}, outside the folder; it is not applied.`, {
        hint: "Leave it out by naming the other paths.",
      });
    }
  }
  const now = await readLower(join(folder, change.from ?? change.path));
  if (!sameSide(now, change.before)) {
    throw new CaissonError("conflict", `${change.from ?? change.path} changed in ${folder} since the diff was made.`, {
      hint: "Look at the diff again, then apply.",
    });
  }
  if (change.from !== null && (await readLower(join(folder, change.path))) !== null) {
    throw new CaissonError("conflict", `${change.path} exists in ${folder} already.`);
  }
}

/** A folder on the way that is a link would lead the write somewhere else. */
async function refuseLinkOnTheWay(folder: string, path: string): Promise<void> {
  const parts = dirname(path) === "." ? [] : dirname(path).split("/");
  let at = folder;
  for (const part of parts) {
    at = join(at, part);
    const found = await lstat(at).catch(() => null);
    if (found === null) return;
    if (found.isSymbolicLink()) throw new CaissonError("unsafe", `${path} is not applied: ${at} is a link.`);
    if (!found.isDirectory()) throw new CaissonError("conflict", `${path} cannot be applied: ${at} is a file.`);
  }
}

async function stage(changes: readonly Change[], staging: string): Promise<Operation[]> {
  const operations: Operation[] = [];
  const add = async (path: string, side: FileSide | null, before: FileSide | null) => {
    const number = operations.length;
    const fresh = side === null ? null : `new-${number}`;
    if (side && fresh) await putSide(join(staging, fresh), side);
    operations.push({ path, fresh, saved: before === null ? null : `old-${number}` });
  };
  // What goes away goes first, so that a file may take a folder's place.
  for (const change of changes) {
    if (change.from !== null) await add(change.from, null, change.before);
    else if (change.after === null) await add(change.path, null, change.before);
  }
  for (const change of changes)
    if (change.after !== null) await add(change.path, change.after, change.from === null ? change.before : null);
  return operations;
}

async function putSide(path: string, side: FileSide): Promise<void> {
  if (side.kind === "link") {
    await symlink(side.content.toString("utf8"), path);
    return;
  }
  const file = await open(path, "wx", side.mode & 0o777);
  try {
    await file.writeFile(side.content);
    await file.chmod(side.mode & 0o777);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function perform(operations: readonly Operation[], folder: string, staging: string): Promise<void> {
  for (const operation of operations) {
    const target = join(folder, operation.path);
    if (operation.saved !== null) await rename(target, join(staging, operation.saved));
    if (operation.fresh !== null) {
      await mkdir(dirname(target), { recursive: true });
      await rename(join(staging, operation.fresh), target);
    } else await removeEmptyFolders(folder, dirname(operation.path));
  }
  await writeDurably(join(staging, "done"), "");
}

async function removeEmptyFolders(folder: string, path: string): Promise<void> {
  for (let at = path; at !== "." && at !== ""; at = dirname(at)) {
    try {
      await rmdir(join(folder, at));
    } catch {
      return;
    }
  }
}

/** Puts back what an apply that did not finish had taken; a crash in the middle is found by the next apply. */
async function recoverApply(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    throw new CaissonError("not_found", `The folder ${folder} cannot be read.`, { cause: error });
  });
  for (const name of names.filter((each) => each.startsWith(STAGING_PREFIX))) {
    const staging = join(folder, name);
    const done = await lstat(join(staging, "done")).catch(() => null);
    if (done === null) await rollBack(folder, staging);
    else await rm(staging, { recursive: true, force: true });
  }
}

async function rollBack(folder: string, staging: string): Promise<void> {
  const text = await readFile(join(staging, "journal.json"), "utf8").catch(() => "[]");
  for (const operation of (JSON.parse(text) as Operation[]).reverse()) {
    const target = join(folder, operation.path);
    const saved = operation.saved === null ? null : await lstat(join(staging, operation.saved)).catch(() => null);
    const placed = operation.fresh !== null && (await lstat(join(staging, operation.fresh)).catch(() => null)) === null;
    if (placed) await rm(target, { force: true });
    if (saved !== null && operation.saved !== null) {
      await mkdir(dirname(target), { recursive: true });
      await rename(join(staging, operation.saved), target);
    } else if (placed) await removeEmptyFolders(folder, dirname(operation.path));
  }
  await rm(staging, { recursive: true, force: true });
}

async function writeDurably(path: string, text: string): Promise<void> {
  await writeFile(path, text, { flush: true });
}

function translate(error: unknown): unknown {
  if (error instanceof CaissonError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CaissonError("no_space", "The disk is full; nothing was applied.", { cause: error });
  if (code === "EACCES" || code === "EPERM" || code === "EROFS")
    return new CaissonError("denied", "The folder cannot be written to; nothing was applied.", { cause: error });
  return new CaissonError("internal", `Applying failed and was taken back: ${(error as Error).message}`, { cause: error });
}
