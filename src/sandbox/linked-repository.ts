import { readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { CaissonError } from "../contract/error/error.ts";
import { ifErrnoSync, UNREACHABLE } from "../lib/failures.ts";
import { isWithin, lstatOrNull, realPathOrNull } from "../lib/paths.ts";
import { WORKSPACE } from "./path.ts";
import type { StateView } from "./state-places.ts";

const POINTER_BYTES_MAX = 64 * 1024;

/** Folders that every sandbox uses itself. */
const reserved = ["/.caisson", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var", "/workspace"];

/** The location of a folder's repository, if the folder is a linked work tree of it (`git worktree add`). */
export type LinkedRepository =
  | { kind: "none" }
  /** `source` is a host folder without links; `target` is the path at which Git inside looks for it. */
  | { kind: "linked"; source: string; target: string }
  | { kind: "refused"; why: string };

/**
 * Finds the repository of a linked work tree. A `.git` file is part of the folder and can name any folder on the
 * machine. So we accept the named folder only if it has the form of a repository, belongs to the folder's owner, is not
 * writable by others, and itself names this folder as its work tree. `folder` contains no links.
 */
export function linkedRepository(folder: string): LinkedRepository {
  const named = pointer(join(folder, ".git"), /^gitdir: (.+)$/m);
  if (named === null) return { kind: "none" };
  const refuse = (why: string): LinkedRepository => ({ kind: "refused", why: `${join(folder, ".git")} leads to ${named}, ${why}` });
  const gitDir = realPathOrNull(resolve(folder, named));
  if (gitDir === null) return refuse("which does not exist");
  if (gitDir.startsWith(`${folder}/`)) return { kind: "none" };
  const common = dirname(dirname(gitDir));
  const target = resolve(WORKSPACE, named);
  const worktrees = [gitDir, target].every((path) => basename(dirname(path)) === "worktrees");
  if (!worktrees || !knowsWorkTree(gitDir, folder) || commonOf(gitDir) !== common) return refuse("which does not know this work tree");
  if (!hasForm(common)) return refuse("which is not in a repository");
  const stat = lstatOrNull(common);
  if (stat?.uid !== lstatOrNull(folder)?.uid || stat === null || (stat.mode & 0o002) !== 0) return refuse("which other users can change");
  return { kind: "linked", source: common, target: dirname(dirname(target)) };
}

/**
 * Returns why Git will not work inside, because its repository is not visible there. `others` are paths inside that are
 * already used.
 */
export function repositoryProblem(found: LinkedRepository, others: readonly string[], state: () => StateView): string | null {
  if (found.kind === "none") return null;
  if (found.kind === "refused") return found.why;
  const { source, target } = found;
  const usedPath = [...reserved, ...others].find((path) => isWithin(target, path) || isWithin(path, target));
  if (usedPath !== undefined) return `its repository would be at ${target}, but sandboxes use ${usedPath} themselves`;
  if (/[\n\0:,\\]/.test(source + target)) return `its repository ${source} has characters in its path that cannot be mounted`;
  try {
    state().refuse(source, { access: "ro" });
    return null;
  } catch (error) {
    if (error instanceof CaissonError) return `its repository ${source} is in the folder where Caisson keeps its own state`;
    throw error;
  }
}

/** Whether a git folder names this work tree as its own. Only Git, working there for its owner, writes that entry. */
export function knowsWorkTree(gitDir: string, root: string): boolean {
  const back = pointer(join(gitDir, "gitdir"), /^(.+)$/m);
  return back !== null && realPathOrNull(dirname(resolve(gitDir, back))) === root;
}

function commonOf(gitDir: string): string | null {
  const named = pointer(join(gitDir, "commondir"), /^(.+)$/m);
  return named === null ? null : realPathOrNull(resolve(gitDir, named));
}

function hasForm(common: string): boolean {
  const folders = ["objects", "refs"].every((name) => lstatOrNull(join(common, name))?.isDirectory() === true);
  return folders && lstatOrNull(join(common, "HEAD"))?.isFile() === true;
}

function pointer(file: string, form: RegExp): string | null {
  const stat = lstatOrNull(file);
  if (stat === null || !stat.isFile() || stat.size > POINTER_BYTES_MAX) return null;
  const text = ifErrnoSync(() => readFileSync(file, "utf8"), UNREACHABLE, "");
  return form.exec(text)?.[1]?.trim() ?? null;
}
