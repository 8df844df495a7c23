import { join, relative } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { Change, LeftOut } from "../../workspace/change.ts";
import { committable } from "../../workspace/git/committable.ts";
import { sessionMirror } from "../../workspace/git/git-mirror.ts";
import type { GitOptions } from "../../workspace/git/host-git.ts";
import { type KeptRepository, openKeptRepository } from "../../workspace/git/kept-repository.ts";
import { makeCommit } from "../../workspace/git/make-commit.ts";
import { headOf, openRepository } from "../../workspace/git/repository-files.ts";
import { isGitsOwn } from "../../workspace/list-inside.ts";
import { forbidden } from "../../workspace/protected-path.ts";
import type { ChangedWork } from "../sessions/changed-work.ts";
import type { ShipOrder } from "./ship-steps.ts";

export interface ShipPlace {
  stateDir: string;
  git: Pick<GitOptions, "path">;
}

/** The folder for a ship's files, which exists until the ship ends. */
export const shipFolder = (stateDir: string, ship: string) => join(stateDir, "ships", ship);

/** Opens the ship's own repository, which borrows the objects that its commit builds on. */
export async function openShipRepository(
  ship: string,
  { base, borrows }: { base: string; borrows: string },
  { stateDir, git }: ShipPlace,
): Promise<KeptRepository> {
  const hash = base.length === 64 ? "sha256" : "sha1";
  return await openKeptRepository({ folder: shipFolder(stateDir, ship), hash, borrows, git });
}

/** A ship's commit and where its objects are. */
export interface MadeCommit {
  commit: string;
  base: string;
  borrows: string;
  files: number;
  leftOut: number;
}

/**
 * Creates the commit of a session's changes. The same changes always yield the same commit, so a second attempt after a
 * crash changes nothing. Throws `conflict` if there is nothing to commit, or if some of it cannot be committed; also
 * `invalid`, `not_found`, `unsafe`, `unsupported`.
 */
export async function commitWork(order: ShipOrder, work: ChangedWork, place: ShipPlace): Promise<MadeCommit> {
  const { id, createdAt } = order;
  const { author, includeConfiguration, leaveOut } = order.created;
  const { base, borrows, prefix } = await groundOf(work, { ...place, owner: order.owner, ship: id });
  const { changes, leftOut } = await work.changes();
  await using own = await openShipRepository(id, { base, borrows }, place);
  const { usable, skipped } = committable(changes, { includeConfiguration });
  const { kept: shippedChanges, inSubmodules } = await outsideSubmodules(usable, { own, base, prefix });
  // Git's own files are never shipped. Even `git status` changes them, so we do not report them.
  const behind = [...leftOut, ...skipped, ...inSubmodules].filter(({ path }) => !path.split("/").some(isGitsOwn));
  if (behind.length > 0 && !leaveOut) throw notClean(id, behind, { isConfigurationLeft: skipped.some(isConfiguration) });
  if (shippedChanges.length === 0)
    throw new CaissonError("conflict", `there is nothing to ship: ${work.what} made no changes that can be committed`);
  const message = messageOf(order);
  const commit = await makeCommit(shippedChanges, { own, base, prefix, message, author, at: createdAt });
  return { commit, base, borrows, files: shippedChanges.length, leftOut: behind.length };
}

/**
 * Returns the commit message. A pull request quotes the spec as plain text; commit messages have no quoting that forges
 * respect, so here we give only the spec's id.
 */
function messageOf({ id, created: { title, body, spec } }: ShipOrder): string {
  const text = spec === undefined ? body : `Spec: ${spec}`;
  return `${title}\n\n${text === "" ? "" : `${text}\n\n`}Caisson-Ship: ${id}\n`;
}

/** Returns the commit that the work started from, and where its objects are. */
async function groundOf(
  work: ChangedWork,
  { stateDir, owner, ship }: ShipPlace & { owner: string; ship: string },
): Promise<{ base: string; borrows: string; prefix: string }> {
  const { source, commit } = work;
  if (source.kind === "git" && commit !== null)
    return { base: commit, borrows: join(sessionMirror(stateDir, { url: source.url, owner }), "objects"), prefix: "" };
  if (source.kind !== "folder")
    throw new CaissonError("unsupported", `${work.what} did not start from a repository on the station's machine`, {
      hint: "Start the run from a repository: caisson run --repo https://HOST/OWNER/NAME.",
    });
  using repository = await openRepository(source.path);
  const base = await headOf(repository);
  if (base === null) throw new CaissonError("conflict", `the repository at ${repository.root} has no commit yet`);
  // Without the history, we cannot compute the merge base with the remote.
  if ((repository.common.stat("shallow")?.size ?? 0) > 0)
    throw new CaissonError("conflict", `${repository.root} is a shallow clone, which lacks the history that a merge needs`, {
      hint: `Fetch the history, then try again: git -C ${shellWord(repository.root)} fetch --unshallow && caisson ship resume ${ship}`,
    });
  return { base, borrows: join(repository.common.path, "objects"), prefix: relative(repository.root, source.path) };
}

/** Separates changes inside submodules: a submodule is another repository, which this ship does not cover. */
async function outsideSubmodules(
  changes: readonly Change[],
  { own, base, prefix }: { own: KeptRepository; base: string; prefix: string },
): Promise<{ kept: Change[]; inSubmodules: LeftOut[] }> {
  const listing = (await own.git(["ls-tree", "-r", "-z", "--full-tree", base])).toString("utf8").split("\0");
  const submodules = listing.filter((line) => line.startsWith("160000 ")).map((line) => line.slice(line.indexOf("\t") + 1));
  const isInside = (path: string) => submodules.some((each) => join(prefix, path) === each || join(prefix, path).startsWith(`${each}/`));
  const inside = changes.filter(({ path, from }) => isInside(path) || (from !== null && isInside(from)));
  return {
    kept: changes.filter((change) => !inside.includes(change)),
    inSubmodules: inside.map(({ path }) => ({ path, reason: "it is in a submodule" })),
  };
}

/** False for paths that must never be committed. */
const isConfiguration = ({ path }: LeftOut) => forbidden(path) === null;

const shellWord = (text: string) => (/^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

function notClean(ship: string, behind: readonly LeftOut[], { isConfigurationLeft }: { isConfigurationLeft: boolean }): CaissonError {
  const named = behind.slice(0, 3).map(({ path, reason }) => `${JSON.stringify(path.slice(0, 200))} (${reason})`);
  const more = behind.length > 3 ? ` and ${behind.length - 3} more` : "";
  return new CaissonError("conflict", `some changes cannot be committed: ${named.join(", ")}${more}`, {
    hint: [
      `Ship without these changes: caisson ship ${ship} --leave-out`,
      ...(isConfigurationLeft ? [`Or include files that tools execute or obey: caisson ship ${ship} --include-config`] : []),
    ].join("\n"),
    details: { leftOut: behind.slice(0, 100) },
  });
}
