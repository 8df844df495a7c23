import { realpathSync } from "node:fs";
import { posix, relative } from "node:path";
import { CaissonError } from "../contract/error.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import { currentProcess, isProcessAlive } from "../sandbox/process-identity.ts";
import { openStaging, perform, type Staging, takeBack } from "./apply-journal.ts";
import { recordsIn, takenBackStamp } from "./apply-record.ts";
import { stage } from "./apply-stage.ts";
import { type Change, isWithin, type LeftOut, sameSide } from "./change.ts";
import { FolderTree } from "./folder-tree.ts";
import { hookFolders } from "./hook-folders.ts";
import { whyHeldBack, whyTold } from "./protected-files.ts";
import { forbidden } from "./protected-path.ts";
import { readLower } from "./read-side.ts";
import { dangerousLinks, parentsOf, repositoriesWith } from "./resulting-tree.ts";

export interface ApplyOptions {
  folder: string;
  /** Where what is being applied is written down, outside the folder. */
  stateDir: string;
  /** Files or folders; absent: everything. */
  paths?: readonly string[];
  /** Files or folders that are not applied. */
  leaveOut?: readonly string[];
  /** Also what tools outside act on, without its being named. */
  includeConfiguration?: boolean;
  /** Also over files that the user changed since the agent's copy was made. */
  force?: boolean;
  /**
   * Whether another one that applies still lives: one at a time, and what a dead one left is taken back. Default: as
   * seen on this machine.
   */
  alive?: (applier: ProcessIdentity) => boolean;
  /** The stamp of the folder before the changes were computed, see `settleFolder`. */
  seen?: string;
  /** Called with what will be applied once everything is checked, before the first effect. */
  beforeEffects?: (paths: readonly string[]) => Promise<void>;
  /** For tests: called before each effect. */
  crashpoint?: (name: string) => void;
}

export interface ApplyResult {
  applied: string[];
  /** Each with its reason. */
  skipped: LeftOut[];
  /** Applied, and worth a second look: text that agents outside take for the user's own. */
  told: LeftOut[];
}

/**
 * Brings changes to the user's folder: all of the chosen ones or none, also when it is killed in the middle (the next
 * one takes it back). Nothing the agent wrote is run or followed. A change to a file that tools act on is taken only
 * when it is named. Throws `unsafe` (leaves the folder, is git's own, goes through a link or leads out), `conflict`
 * (the user changed the file meanwhile), `invalid` (a path nothing changed at), `denied`, `no_space`.
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
    // What the changes were computed against is not what the folder has by now.
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
    const told = applied.flatMap((path) => ({ path, reason: whyTold(path) ?? "" })).filter(({ reason }) => reason !== "");
    return { applied, skipped, told };
  } finally {
    // Of an apply that came to its end this removes what is left over; of any other it puts everything back.
    await takeBack(staging);
  }
}

const takenBackMeanwhile = ({ folder }: ApplyOptions) =>
  new CaissonError("conflict", `an interrupted apply was taken back while the changes for ${folder} were read; nothing was applied`, {
    hint: "Apply again.",
    details: { takenBack: true },
  });

/** Whether changes were not applied because they have to be computed again. */
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
  const candidates = keptPaths(changes, (path) => (wanted === null || isWithin(path, wanted)) && !isWithin(path, unwanted));
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
      (path) => forbidden(path) ?? (ownFiles !== null && isWithin(path, [ownFiles]) ? "it is Caisson's own state" : null),
    );
    const held = first(
      ends,
      (path) => whyHeldBack(path) ?? (isWithin(path, options.hookFolders) ? "git runs what is there as hooks" : null),
    );
    if (never !== null) leaveOut(change, never);
    else if (held !== null && !isNamed(change) && !options.includeConfiguration)
      skipped.push({ path: change.path, reason: `${held}; name it, or give --include-config` });
    else chosen.push(change);
  }
  return { chosen: withoutRepositories(chosen, tree, leaveOut), skipped };
}

const normalPath = (path: string): string => posix.normalize(path).replace(/\/$/, "");

const first = (paths: readonly string[], why: (path: string) => string | null) => paths.map(why).find((reason) => reason !== null) ?? null;

/** Where the state folder is, when it lies in the folder; null otherwise. */
function stateWithin({ folder, stateDir }: ApplyOptions): string | null {
  const path = relative(realpathSync(folder), realpathSync(stateDir));
  return path === "" || path.startsWith("..") ? null : path;
}

/** What is left out changes what results, so it is judged again until nothing more is left out. */
function withoutRepositories(changes: Change[], tree: FolderTree, leaveOut: (change: Change, reason: string) => void): Change[] {
  for (let chosen = changes; ; ) {
    const repositories = repositoriesWith(tree, chosen);
    const inside = (path: string | null) => path !== null && repositories.some((folder) => folder === "" || isWithin(path, [folder]));
    const left = chosen.filter(({ path, from }) => !inside(path) && !inside(from));
    if (left.length === chosen.length) return chosen;
    for (const change of chosen)
      if (!left.includes(change))
        leaveOut(change, "it belongs to a git repository that is not called .git: whoever uses git there would run what its settings name");
    chosen = left;
  }
}

function refuseUnchanged(changes: readonly Change[], named: readonly string[]): void {
  const nothing = named.filter(
    (each) => each !== "." && !changes.some(({ path, from }) => isWithin(path, [each]) || (from !== null && isWithin(from, [each]))),
  );
  if (nothing.length > 0)
    throw new CaissonError("invalid", `nothing changed at ${nothing.join(", ")}`, { hint: "`caisson diff --stat` lists what did." });
}

/** A move of which only one end is kept is a file that came, or one that went. */
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
    `you changed ${outside.join(", ")} in ${options.folder} since the agent began from it; nothing was applied`,
    {
      hint: "Look at the diff: it undoes your change. Apply the rest with --leave-out PATH, or give --force.",
      details: { paths: outside },
    },
  );
}

async function check(change: Change, { tree, going }: { tree: FolderTree; going: ReadonlySet<string> }): Promise<void> {
  const { path, from, before } = change;
  for (const each of from === null ? [path] : [path, from]) refuseLinkOnTheWay(tree, each, going);
  const now = await readLower(tree, from ?? path);
  if (!sameSide(now, before)) {
    throw new CaissonError("conflict", `${from ?? path} in ${tree.path} is not what the diff begins from; nothing was applied`, {
      hint: "Look at the diff again, then apply.",
    });
  }
  // Also a FIFO or a device, which a diff knows nothing of.
  const found = from !== null || before === null ? tree.stat(path) : null;
  if (found !== null && !found.isDirectory() && !going.has(path))
    throw new CaissonError("conflict", `${path} exists in ${tree.path} already; nothing was applied`);
}

function refuseDangerousLinks(tree: FolderTree, chosen: readonly Change[]): void {
  const [link] = dangerousLinks(tree, chosen);
  if (link === undefined) return;
  const brought = chosen.some(({ path }) => path === link.path);
  throw new CaissonError(
    "unsafe",
    `${link.path} ${brought ? "is" : "would become"} a link to ${JSON.stringify(link.target)}, ${link.leads}; nothing was applied`,
    { hint: brought ? "Apply the rest with --leave-out and its path." : "Leave out the links among the changes with --leave-out PATH." },
  );
}

/** A folder on the way that is a link would lead the write somewhere else, unless it makes way itself. */
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
    return new CaissonError("not_found", `the folder ${folder} is not there, or changed meanwhile; nothing was applied`, { cause: error });
  if (code === "EISDIR" || code === "ENOTDIR" || code === "ENOTEMPTY" || code === "EEXIST" || code === "EXDEV")
    return new CaissonError(
      "conflict",
      `something in ${folder} is in the way of the changes, or lies on another disk; nothing was applied`,
      {
        hint: "Look at the diff again, and apply the other paths by name.",
        cause: error,
      },
    );
  if (code === "ENOSPC" || code === "EDQUOT")
    return new CaissonError("no_space", `the disk of ${folder} is full; nothing was applied`, {
      hint: "Make room, then apply again.",
      cause: error,
    });
  if (code === "EACCES" || code === "EPERM" || code === "EROFS")
    return new CaissonError("denied", `${folder} cannot be written to; nothing was applied`, {
      hint: "Apply as the folder's owner, or to another folder with --to.",
      cause: error,
    });
  return new CaissonError("internal", `applying to ${folder} failed and was taken back: ${(error as Error).message}`, { cause: error });
}
