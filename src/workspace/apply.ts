import { realpathSync } from "node:fs";
import { posix, relative } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import { currentProcess, isProcessAlive } from "../sandbox/process-identity.ts";
import { openStaging, perform, type Staging, takeBack } from "./apply-journal.ts";
import { recordsIn, takenBackStamp } from "./apply-record.ts";
import { stage } from "./apply-stage.ts";
import { type Change, isBelowAny, type LeftOut, sameSide } from "./change.ts";
import { FolderTree } from "./folder-tree.ts";
import { hookFolders } from "./hook-folders.ts";
import { whyHeldBack, whyNoticed } from "./protected-files.ts";
import { forbidden } from "./protected-path.ts";
import { readLower } from "./read-side.ts";
import { dangerousLinks, parentsOf, repositoriesWith } from "./resulting-tree.ts";

export interface ApplyOptions {
  folder: string;
  /** The folder for apply records, outside the user's folder. */
  stateDir: string;
  /** Files or folders to apply; absent for all. */
  paths?: readonly string[];
  /** Files or folders to leave out. */
  leaveOut?: readonly string[];
  /** Also apply files that tools outside act on, even if they are not named. */
  includeConfiguration?: boolean;
  /** Overwrite files that the user changed after the agent's copy was made. */
  force?: boolean;
  /**
   * Returns whether another applier is alive. Only one applier works at a time, and the apply of a dead applier is
   * rolled back. Defaults to the view of this machine.
   */
  alive?: (applier: ProcessIdentity) => boolean;
  /** The folder's stamp from before the changes were computed; see `settleFolder`. */
  seen?: string;
  /** Called with the paths to apply after all checks, before the first operation. */
  beforeEffects?: (paths: readonly string[]) => Promise<void>;
  /** For tests: called before each operation. */
  crashpoint?: (name: string) => void;
}

export interface ApplyResult {
  applied: string[];
  /** The paths that were not applied, each with a reason. */
  skipped: LeftOut[];
  /** Applied paths that deserve a second look: text that agents outside read as the user's own. */
  told: LeftOut[];
}

/**
 * Applies changes to the user's folder: all of the chosen ones or none, even if this process is killed (then the next
 * apply rolls back). Nothing the agent wrote is run or followed. A change to a file that tools act on is applied only
 * if it is named. Throws `unsafe` (leaves the folder, belongs to git, goes through a link or leads outside), `conflict`
 * (the user changed the file), `invalid` (a path without changes), `denied`, `no_space`.
 */
export async function applyChanges(changes: readonly Change[], options: ApplyOptions): Promise<ApplyResult> {
  try {
    using tree = new FolderTree(options.folder);
    const staging = await openStaging(tree, { stateDir: options.stateDir, self: currentProcess(), alive: options.alive ?? isProcessAlive });
    return await applyTo(staging, changes, options);
  } catch (error) {
    throw translate(error, options.folder);
  }
}

async function applyTo(staging: Staging, changes: readonly Change[], options: ApplyOptions): Promise<ApplyResult> {
  try {
    // A rollback since then means that the changes were computed against other content.
    if (options.seen !== undefined && options.seen !== (await takenBackStamp(recordsIn(options.stateDir))))
      throw takenBackMeanwhile(options);
    const { chosen, skipped } = choose(changes, staging.tree, { ...options, hookFolders: await hookFolders(staging.tree) });
    refuseChangedOutside(chosen, options);
    const going = new Set(chosen.flatMap(({ path, from, after }) => (from !== null ? [from] : after === null ? [path] : [])));
    for (const change of chosen) await check(change, { tree: staging.tree, going });
    refuseDangerousLinks(staging.tree, chosen);
    const operations = await stage(chosen, staging);
    const applied = chosen.map((change) => change.path);
    await options.beforeEffects?.(applied);
    await perform(staging, operations, options.crashpoint ?? (() => undefined));
    const notices = applied.flatMap((path) => ({ path, reason: whyNoticed(path) ?? "" })).filter(({ reason }) => reason !== "");
    return { applied, skipped, told: notices };
  } finally {
    // After a finished apply this removes the leftovers; after any other it rolls back.
    await takeBack(staging);
  }
}

const takenBackMeanwhile = ({ folder }: ApplyOptions) =>
  new CaissonError("conflict", `an interrupted apply was rolled back while the changes for ${folder} were read; nothing was applied`, {
    hint: "Apply again.",
    details: { takenBack: true },
  });

/** Returns whether the changes must be computed again before they can be applied. */
export const isOutdated = (error: unknown) =>
  error instanceof CaissonError && error.code === "conflict" && error.details?.takenBack === true;

function choose(
  changes: readonly Change[],
  tree: FolderTree,
  options: ApplyOptions & { hookFolders: readonly string[] },
): { chosen: Change[]; skipped: LeftOut[] } {
  const wanted = options.paths?.map(normalPath) ?? null;
  const unwanted = (options.leaveOut ?? []).map(normalPath);
  refuseUnchanged(changes, [...(wanted ?? []), ...unwanted]);
  const candidates = keptPaths(changes, (path) => (wanted === null || isBelowAny(path, wanted)) && !isBelowAny(path, unwanted));
  const isNamed = (change: Change) => wanted?.includes(change.path) === true;
  const ownFiles = stateWithin(options);
  const chosen: Change[] = [];
  const skipped: LeftOut[] = [];
  const leaveOut = (change: Change, reason: string) => {
    if (isNamed(change)) throw new CaissonError("unsafe", `${change.path} is not applied: ${reason}`);
    skipped.push({ path: change.path, reason });
  };
  for (const change of candidates) {
    const ends = change.from === null ? [change.path] : [change.path, change.from];
    const never = first(
      ends,
      (path) => forbidden(path) ?? (ownFiles !== null && isBelowAny(path, [ownFiles]) ? "it is Caisson's own state" : null),
    );
    const held = first(
      ends,
      (path) => whyHeldBack(path) ?? (isBelowAny(path, options.hookFolders) ? "git runs files there as hooks" : null),
    );
    if (never !== null) leaveOut(change, never);
    else if (held !== null && !isNamed(change) && !options.includeConfiguration)
      skipped.push({ path: change.path, reason: `${held}; name it, or pass --include-config` });
    else chosen.push(change);
  }
  return { chosen: withoutRepositories(chosen, tree, leaveOut), skipped };
}

const normalPath = (path: string): string => posix.normalize(path).replace(/\/$/, "");

const first = (paths: readonly string[], why: (path: string) => string | null) => paths.map(why).find((reason) => reason !== null) ?? null;

/** Returns the path of the state folder relative to the user's folder, or null if it is not inside. */
function stateWithin({ folder, stateDir }: ApplyOptions): string | null {
  const path = relative(realpathSync(folder), realpathSync(stateDir));
  return path === "" || path.startsWith("..") ? null : path;
}

/**
 * Leaves out changes to hidden repositories. Each removal changes the resulting tree, so it is checked again until
 * nothing more is left out.
 */
function withoutRepositories(changes: Change[], tree: FolderTree, leaveOut: (change: Change, reason: string) => void): Change[] {
  for (let chosen = changes; ; ) {
    const repositories = repositoriesWith(tree, chosen);
    const inside = (path: string | null) => path !== null && repositories.some((folder) => folder === "" || isBelowAny(path, [folder]));
    const left = chosen.filter(({ path, from }) => !inside(path) && !inside(from));
    if (left.length === chosen.length) return chosen;
    for (const change of chosen)
      if (!left.includes(change))
        leaveOut(change, "it belongs to a git repository not named .git: using git there would run the commands in its settings");
    chosen = left;
  }
}

function refuseUnchanged(changes: readonly Change[], named: readonly string[]): void {
  const nothing = named.filter(
    (each) => each !== "." && !changes.some(({ path, from }) => isBelowAny(path, [each]) || (from !== null && isBelowAny(from, [each]))),
  );
  if (nothing.length > 0)
    throw new CaissonError("invalid", `there are no changes at ${nothing.join(", ")}`, {
      hint: "List the changes with `caisson diff --stat`.",
    });
}

/** Filters changes by path. If only one end of a move is kept, it becomes an addition or a removal. */
function keptPaths(changes: readonly Change[], isKept: (path: string) => boolean): Change[] {
  return changes.flatMap((change) => {
    const here = isKept(change.path);
    const there = change.from !== null && isKept(change.from);
    if (change.from === null || here === there) return here ? [change] : [];
    return here ? [{ ...change, from: null, before: null }] : [{ ...change, path: change.from, from: null, after: null }];
  });
}

function refuseChangedOutside(chosen: readonly Change[], options: ApplyOptions): void {
  const outside = options.force ? [] : chosen.filter((change) => change.changedOutside).map((change) => change.from ?? change.path);
  if (outside.length === 0) return;
  throw new CaissonError(
    "conflict",
    `you changed ${outside.join(", ")} in ${options.folder} after the agent started from it; nothing was applied`,
    {
      hint: "Check the diff: it undoes your change. Apply the rest with --leave-out PATH, or overwrite your change with --force.",
      details: { paths: outside },
    },
  );
}

async function check(change: Change, { tree, going }: { tree: FolderTree; going: ReadonlySet<string> }): Promise<void> {
  const { path, from, before } = change;
  for (const each of from === null ? [path] : [path, from]) refuseLinkOnTheWay(tree, each, going);
  const now = await readLower(tree, from ?? path);
  if (!sameSide(now, before)) {
    throw new CaissonError("conflict", `${from ?? path} in ${tree.path} differs from the base of the diff; nothing was applied`, {
      hint: "Check the diff again, then apply.",
    });
  }
  // This finds FIFOs and devices as well, which a diff does not contain.
  const found = from !== null || before === null ? tree.stat(path) : null;
  if (found !== null && !found.isDirectory() && !going.has(path))
    throw new CaissonError("conflict", `${path} already exists in ${tree.path}; nothing was applied`);
}

function refuseDangerousLinks(tree: FolderTree, chosen: readonly Change[]): void {
  const [link] = dangerousLinks(tree, chosen);
  if (link === undefined) return;
  const isChosen = chosen.some(({ path }) => path === link.path);
  throw new CaissonError(
    "unsafe",
    `${link.path} ${isChosen ? "is" : "would become"} a link to ${JSON.stringify(link.target)} that leads ${link.leads}; nothing was applied`,
    { hint: isChosen ? "Apply the rest with --leave-out and its path." : "Leave out the links among the changes with --leave-out PATH." },
  );
}

/** Throws if a parent folder is a link, because writing would follow it. A link that these changes remove is fine. */
function refuseLinkOnTheWay(tree: FolderTree, path: string, going: ReadonlySet<string>): void {
  for (const parent of parentsOf(path).reverse()) {
    const found = tree.stat(parent);
    if (!found || going.has(parent)) return;
    if (found.isSymbolicLink()) throw new CaissonError("unsafe", `${path} is not applied: ${tree.path}/${parent} is a link`);
  }
}

function translate(error: unknown, folder: string): unknown {
  if (error instanceof CaissonError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOENT")
    return new CaissonError("not_found", `the folder ${folder} does not exist, or changed during the apply; nothing was applied`, {
      cause: error,
    });
  if (code === "EISDIR" || code === "ENOTDIR" || code === "ENOTEMPTY" || code === "EEXIST" || code === "EXDEV")
    return new CaissonError("conflict", `something in ${folder} blocks the changes, or is on another disk; nothing was applied`, {
      hint: "Check the diff again, and apply the other paths by name.",
      cause: error,
    });
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CaissonError("no_space", `the disk of ${folder} is full; nothing was applied`, {
      hint: "Free some space, then apply again.",
      cause: error,
    });
  if (code === "EACCES" || code === "EPERM" || code === "EROFS")
    return new CaissonError("denied", `${folder} is not writable; nothing was applied`, {
      hint: "Apply as the folder's owner, or to another folder with --to.",
      cause: error,
    });
  return new CaissonError("internal", `applying to ${folder} failed and was rolled back: ${(error as Error).message}`, { cause: error });
}
