import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { lstatOrNull } from "../lib/lstat-or-null.ts";
import { WORKSPACE } from "./path.ts";
import { isWithin } from "./shared-folders.ts";
import type { StateView } from "./state-places.ts";

const POINTER_BYTES_MAX = 64 * 1024;

/** Folders that a sandbox has for itself. */
const reserved = ["/.caisson", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/var", "/workspace"];

/** Where the repository of a folder lies when the folder is a linked work tree of it (`git worktree add`). */
export type LinkedRepository =
  | { kind: "none" }
  /** `source` is a folder of the host's without links, `target` where git inside looks for it. */
  | { kind: "linked"; source: string; target: string }
  | { kind: "refused"; why: string };

/**
 * A `.git` file is part of the folder and may name any folder of the machine. So the one it names is believed only when
 * it has the form of a repository, has the folder's own owner, nobody else may write to it, and it says itself that
 * this folder is a work tree of its own. `folder` is free of links.
 */
export function linkedRepository(folder: string): LinkedRepository {
  const named = pointer(join(folder, ".git"), /^gitdir: (.+)$/m);
  if (named === null) return { kind: "none" };
  const refused = (why: string): LinkedRepository => ({ kind: "refused", why: `${join(folder, ".git")} leads to ${named}, ${why}` });
  const gitDir = realOrNull(resolve(folder, named));
  if (gitDir === null) return refused("which is not there");
  if (gitDir.startsWith(`${folder}/`)) return { kind: "none" };
  const common = dirname(dirname(gitDir));
  const target = resolve(WORKSPACE, named);
  const worktrees = [gitDir, target].every((path) => basename(dirname(path)) === "worktrees");
  if (!worktrees || !knowsWorkTree(gitDir, folder) || commonOf(gitDir) !== common) return refused("which does not know this work tree");
  if (!hasForm(common)) return refused("which is not in a repository");
  const stat = lstatOrNull(common);
  if (stat?.uid !== lstatOrNull(folder)?.uid || stat === null || (stat.mode & 0o002) !== 0)
    return refused("which somebody else may change");
  return { kind: "linked", source: common, target: dirname(dirname(target)) };
}

/** Why git will not work inside: what it needs is not shown there. `others` are places inside that are taken. */
export function repositoryProblem(found: LinkedRepository, others: readonly string[], state: () => StateView): string | null {
  if (found.kind === "none") return null;
  if (found.kind === "refused") return found.why;
  const { source, target } = found;
  const taken = [...reserved, ...others].find((path) => isWithin(target, path) || isWithin(path, target));
  if (taken !== undefined) return `its repository would be at ${target}, and sandboxes have ${taken} for themselves`;
  if (/[\n\0:,\\]/.test(source + target)) return `its repository ${source} has characters in its name that cannot be mounted`;
  try {
    state().refuse(source, { access: "ro" });
    return null;
  } catch {
    return `its repository ${source} is in the folder where Caisson keeps its own state`;
  }
}

/** Whether a git folder names this work tree as its own: only git, working there for its owner, writes that down. */
export function knowsWorkTree(gitDir: string, root: string): boolean {
  const back = pointer(join(gitDir, "gitdir"), /^(.+)$/m);
  return back !== null && realOrNull(dirname(resolve(gitDir, back))) === root;
}

function commonOf(gitDir: string): string | null {
  const named = pointer(join(gitDir, "commondir"), /^(.+)$/m);
  return named === null ? null : realOrNull(resolve(gitDir, named));
}

function hasForm(common: string): boolean {
  const folders = ["objects", "refs"].every((name) => lstatOrNull(join(common, name))?.isDirectory() === true);
  return folders && lstatOrNull(join(common, "HEAD"))?.isFile() === true;
}

function pointer(file: string, form: RegExp): string | null {
  const stat = lstatOrNull(file);
  if (stat === null || !stat.isFile() || stat.size > POINTER_BYTES_MAX) return null;
  try {
    return form.exec(readFileSync(file, "utf8"))?.[1]?.trim() ?? null;
  } catch {
    return null;
  }
}

function realOrNull(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
