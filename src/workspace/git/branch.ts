import { randomBytes } from "node:crypto";
import { lstat, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { Change } from "../change.ts";
import { forbidden } from "../protected-path.ts";
import { type GitOptions, hostGit } from "./host-git.ts";

export interface BranchOptions {
  /** The user's folder, a git work tree. */
  folder: string;
  name: string;
  message: string;
  author: { name: string; email: string };
  git: Pick<GitOptions, "path" | "home">;
}

/**
 * Makes a commit of the changes on a new branch of the user's repository, by writing objects and a ref: the work tree and the index are not touched, no hook, filter or
 * setting of the agent's is ever looked at. Throws `not_found` (no repository), `exists` (the branch), `invalid` (its name), `conflict` (nothing to commit).
 */
export async function commitToBranch(
  changes: readonly Change[],
  options: BranchOptions,
): Promise<{ commit: string; branch: string; skipped: string[] }> {
  const gitDir = await findGitDir(options.folder);
  const git = (args: readonly string[], more: Partial<GitOptions> = {}) => hostGit(args, { ...options.git, gitDir, ...more });
  const text = async (args: readonly string[], more: Partial<GitOptions> = {}) => (await git(args, more)).toString("utf8").trim();
  await text(["check-ref-format", "--branch", options.name]).catch((error: unknown) => {
    throw new CaissonError("invalid", `${JSON.stringify(options.name)} cannot be a branch's name.`, { cause: error });
  });
  const ref = `refs/heads/${options.name}`;
  const taken = await text(["rev-parse", "--verify", "--quiet", ref]).catch(() => null);
  if (taken) throw new CaissonError("exists", `There is a branch ${options.name} already.`, { hint: "Choose another name with --name." });
  const head = await text(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).catch(() => null);
  const usable = changes.filter((change) => forbidden(change.path) === null);
  if (usable.length === 0) throw new CaissonError("conflict", "There is nothing to commit.");
  const index = join(tmpdir(), `caisson-index-${randomBytes(8).toString("hex")}`);
  const env = { GIT_INDEX_FILE: index };
  try {
    if (head) await git(["read-tree", head], { env });
    const entries = await Promise.all(usable.map((change) => indexEntries(change, git)));
    await git(["update-index", "-z", "--index-info"], { env, input: Buffer.from(entries.flat().join("\0").concat("\0")) });
    const tree = await text(["write-tree"], { env });
    const who = {
      GIT_AUTHOR_NAME: options.author.name,
      GIT_AUTHOR_EMAIL: options.author.email,
      GIT_COMMITTER_NAME: options.author.name,
      GIT_COMMITTER_EMAIL: options.author.email,
    };
    const commit = await text(["commit-tree", tree, ...(head ? ["-p", head] : []), "-F", "-"], { env: who, input: options.message });
    // Only if it is still not there: two at once must not overwrite each other.
    await git(["update-ref", ref, commit, "0".repeat(40)]);
    return { commit, branch: options.name, skipped: changes.filter((change) => !usable.includes(change)).map((change) => change.path) };
  } finally {
    await rm(index, { force: true });
  }
}

async function indexEntries(
  change: Change,
  git: (args: readonly string[], more?: Partial<GitOptions>) => Promise<Buffer>,
): Promise<string[]> {
  const entries = change.from === null ? [] : [`0 ${"0".repeat(40)}\t${change.from}`];
  if (change.after === null) return [...entries, `0 ${"0".repeat(40)}\t${change.path}`];
  const blob = (await git(["hash-object", "-w", "--no-filters", "--stdin"], { input: change.after.content })).toString("utf8").trim();
  const mode = change.after.kind === "link" ? "120000" : change.after.mode & 0o111 ? "100755" : "100644";
  return [...entries, `${mode} ${blob}\t${change.path}`];
}

/** The repository of a folder: its `.git`, or what a `.git` file of a linked work tree names. */
async function findGitDir(folder: string): Promise<string> {
  const path = join(folder, ".git");
  const found = await lstat(path).catch(() => null);
  if (found?.isDirectory()) return path;
  if (found?.isFile()) {
    const named = /^gitdir: (.+)$/m.exec(await readFile(path, "utf8"))?.[1];
    if (named) return resolve(folder, named.trim());
  }
  throw new CaissonError("not_found", `${folder} is not a git repository.`, { hint: "Apply the changes with `caisson apply` instead." });
}
