import { dirname, join, relative } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { succeeds } from "../../lib/failures.ts";
import { lstatOrNull } from "../../lib/paths.ts";
import type { Change, LeftOut } from "../change.ts";
import { committable } from "./committable.ts";
import type { GitOptions } from "./host-git.ts";
import { makeCommit } from "./make-commit.ts";
import { checkCommit, makePrivateRepository, type PrivateRepository } from "./private-repository.ts";
import { type LockRecords, lockFile } from "./ref-locks.ts";
import { addObjects, headOf, makeFolders, type NewFiles, openRepository, type RepositoryFiles, refuseTaken } from "./repository-files.ts";

export interface BranchOptions {
  /** The user's folder: a git work tree or a folder inside one. */
  folder: string;
  name: string;
  message: string;
  author: { name: string; email: string };
  git: Pick<GitOptions, "path">;
  locks: LockRecords;
  /** Also commits files that tools outside act on. */
  includeConfiguration?: boolean;
  /** The commit that the changes are based on, which the repository must have. Defaults to its HEAD. */
  base?: string;
}

export interface Branched {
  commit: string;
  branch: string;
  repository: string;
  skipped: LeftOut[];
  /** The number of new files that were left out because the repository ignores them. */
  ignored: number;
}

/**
 * Commits the changes to a new branch of the user's repository by writing objects and a ref. The work tree and the
 * index are not touched. Git works in a separate repository, so it never runs anything that the user's repository or
 * the agent names. Leaves out new files that the repository ignores and, unless requested, files that tools act on.
 * Throws `not_found` (no repository, no such base), `exists` (the branch), `invalid` (its name), `conflict` (nothing to
 * commit), `unsafe`, `unsupported`.
 */
export async function commitToBranch(changes: readonly Change[], options: BranchOptions): Promise<Branched> {
  using repository = await openRepository(options.folder);
  await using own = await makePrivateRepository(repository, options.git);
  await checkName(options.name, own);
  await refuseTaken(repository, options.name);
  const base = options.base ?? (await headOf(repository));
  if (base !== null) await checkCommit(own, base, repository.root);
  const prefix = relative(repository.root, options.folder);
  const { usable, skipped, ignored } = await choose(changes, { own, root: repository.root, prefix, options });
  if (usable.length === 0) throw new CaissonError("conflict", "there is nothing to commit", { details: { skipped } });
  const { message, author } = options;
  const commit = await makeCommit(usable, { own, base, prefix, message, author });
  const { uid, gid } = repository.common.identity;
  const owner = process.getuid?.() === 0 ? { uid, gid } : null;
  await addObjects(repository, own.objects, { owner });
  await addBranch(repository, { name: options.name, commit }, { owner, locks: options.locks });
  return { commit, branch: options.name, repository: repository.root, skipped, ignored };
}

/**
 * Adds a branch as git does: the holder of the lock file decides. Throws `exists` if another process was faster, `busy`
 * while another process holds the lock.
 */
async function addBranch(
  repository: RepositoryFiles,
  { name, commit }: { name: string; commit: string },
  options: NewFiles & { locks: LockRecords },
): Promise<void> {
  const ref = `refs/heads/${name}`;
  makeFolders(repository.common, dirname(ref), options);
  await using lock = await lockFile(repository.common, { path: `${ref}.lock`, content: `${commit}\n`, ...options });
  await refuseTaken(repository, name);
  lock.becomes(ref);
  repository.common.syncFolder(dirname(ref));
}

async function checkName(name: string, own: PrivateRepository): Promise<void> {
  const isValid = () => succeeds(own.git(["check-ref-format", `refs/heads/${name}`]), "git fails for a malformed name");
  if (name.startsWith("-") || name === "HEAD" || !(await isValid()))
    throw new CaissonError("invalid", `${JSON.stringify(name)} is not a valid branch name`, { hint: "Choose another name with --name." });
}

/**
 * Selects the changes to commit. Leaves out git's own files, files that tools act on, and new files that the repository
 * ignores.
 */
async function choose(
  changes: readonly Change[],
  where: { own: PrivateRepository; root: string; prefix: string; options: BranchOptions },
): Promise<{ usable: Change[]; skipped: LeftOut[]; ignored: number }> {
  const { usable: allowed, skipped } = committable(changes, where.options);
  const created = allowed.filter((change) => change.before === null).map((change) => join(where.prefix, change.path));
  const fresh = withoutLinked(created, where.root);
  const ignored = fresh.length === 0 ? new Set<string>() : await ignoredOf(fresh, where);
  const usable = allowed.filter((change) => !ignored.has(join(where.prefix, change.path)) || change.before !== null);
  return { usable, skipped, ignored: allowed.length - usable.length };
}

/**
 * Leaves out paths below a link in the work tree, as when a change replaces the link with a folder: git refuses to
 * check them, and no ignore rule applies to them.
 */
function withoutLinked(paths: readonly string[], root: string): string[] {
  const known = new Map<string, boolean>([[".", false]]);
  const isLinked = (folder: string): boolean => {
    const found = known.get(folder) ?? (isLinked(dirname(folder)) || lstatOrNull(join(root, folder))?.isSymbolicLink() === true);
    known.set(folder, found);
    return found;
  };
  return paths.filter((path) => !isLinked(dirname(path)));
}

/** Returns the paths that the rules in the user's work tree ignore. Git only reads these rules as text. */
async function ignoredOf(paths: readonly string[], where: { own: PrivateRepository; root: string }): Promise<Set<string>> {
  const input = `${paths.join("\0")}\0`;
  const output = await where.own
    .git([`--work-tree=${where.root}`, "check-ignore", "-z", "--stdin", "--no-index"], { input, cwd: where.root })
    .catch((error: unknown) => {
      // Exit code 1 means that no path is ignored.
      if (error instanceof CaissonError && error.details?.exitCode === 1) return Buffer.alloc(0);
      throw error;
    });
  return new Set(output.toString("utf8").split("\0").filter(Boolean));
}
