import { randomBytes } from "node:crypto";
import { chown, lstat, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { type Change, gitMode, type LeftOut } from "../change.ts";
import { forbidden } from "../protected-path.ts";
import { type GitOptions, hostGit } from "./host-git.ts";

export interface BranchOptions {
  /** The user's folder: a git work tree, or a folder in one. */
  folder: string;
  name: string;
  message: string;
  author: { name: string; email: string };
  git: Pick<GitOptions, "path" | "home">;
  /** The commit the changes begin from; absent: the repository's HEAD. It must be there. */
  base?: string;
}

export interface Branched {
  commit: string;
  branch: string;
  repository: string;
  skipped: LeftOut[];
}

type Git = (args: readonly string[], more?: Partial<GitOptions>) => Promise<Buffer>;

/**
 * Makes a commit of the changes on a new branch of the user's repository, by writing objects and a ref: the work tree and the index are not touched, no hook, filter or
 * setting of the agent's is ever looked at. New files that the repository ignores are left out. Throws `not_found` (no repository, no such base), `exists` (the branch),
 * `invalid` (its name), `conflict` (nothing to commit).
 */
export async function commitToBranch(changes: readonly Change[], options: BranchOptions): Promise<Branched> {
  const { gitDir, root } = await findRepository(options.folder);
  const { uid, gid } = await stat(gitDir);
  const git: Git = (args, more = {}) => hostGit(args, { ...options.git, gitDir, user: { uid, gid }, ...more });
  const ref = await freshBranch(options.name, git);
  const base = await findBase(options, git);
  const prefix = relative(root, options.folder);
  const { usable, skipped } = await choose(changes, { git, root, prefix });
  if (usable.length === 0) throw new CaissonError("conflict", "There is nothing to commit.", { details: { skipped } });
  const work = join(tmpdir(), `caisson-branch-${randomBytes(8).toString("hex")}`);
  await mkdir(work, { mode: 0o700 });
  try {
    if (process.getuid?.() === 0) await chown(work, uid, gid);
    const env = { GIT_INDEX_FILE: join(work, "index") };
    if (base) await git(["read-tree", base], { env });
    await git(["update-index", "-z", "--index-info"], { env, input: await indexInfo(usable, { git, work, prefix, owner: { uid, gid } }) });
    const tree = await words(git(["write-tree"], { env }));
    const commit = await words(
      git(["commit-tree", tree, ...(base ? ["-p", base] : []), "-F", "-"], { env: identity(options.author), input: options.message }),
    );
    // Only if it is still not there: two at once must not overwrite each other.
    await git(["update-ref", "-m", "caisson branch", ref, commit, ""]);
    return { commit, branch: options.name, repository: root, skipped };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const words = async (output: Promise<Buffer>) => (await output).toString("utf8").trim();

const identity = ({ name, email }: BranchOptions["author"]) => ({
  GIT_AUTHOR_NAME: name,
  GIT_AUTHOR_EMAIL: email,
  GIT_COMMITTER_NAME: name,
  GIT_COMMITTER_EMAIL: email,
});

async function freshBranch(name: string, git: Git): Promise<string> {
  const ref = `refs/heads/${name}`;
  const valid = !name.startsWith("-") && name !== "HEAD" && (await git(["check-ref-format", ref]).catch(() => null)) !== null;
  if (!valid)
    throw new CaissonError("invalid", `${JSON.stringify(name)} cannot be a branch's name.`, { hint: "Choose another with --name." });
  const taken = await git(["rev-parse", "--verify", "--quiet", ref]).catch(() => null);
  if (taken) throw new CaissonError("exists", `There is a branch ${name} already.`, { hint: "Choose another name with --name." });
  return ref;
}

async function findBase(options: BranchOptions, git: Git): Promise<string | null> {
  const found = await words(git(["rev-parse", "--verify", "--quiet", "--end-of-options", `${options.base ?? "HEAD"}^{commit}`])).catch(
    () => null,
  );
  if (found === null && options.base !== undefined) {
    throw new CaissonError(
      "not_found",
      `The repository of ${options.folder} does not have the commit ${options.base} that the changes begin from.`,
      {
        hint: "Fetch it there first.",
      },
    );
  }
  return found;
}

/** Without what is git's own, and without new files that the repository's own rules ignore. */
async function choose(
  changes: readonly Change[],
  where: { git: Git; root: string; prefix: string },
): Promise<{ usable: Change[]; skipped: LeftOut[] }> {
  const skipped: LeftOut[] = [];
  const allowed = changes.filter((change) => {
    const reason = forbidden(change.path) ?? (change.from === null ? null : forbidden(change.from));
    if (reason !== null) skipped.push({ path: change.path, reason });
    return reason === null;
  });
  const fresh = allowed.filter((change) => change.before === null).map((change) => join(where.prefix, change.path));
  const ignored = fresh.length === 0 ? new Set<string>() : await ignoredOf(fresh, where);
  const usable = allowed.filter((change) => {
    if (!ignored.has(join(where.prefix, change.path)) || change.before !== null) return true;
    skipped.push({ path: change.path, reason: "the repository ignores it" });
    return false;
  });
  return { usable, skipped };
}

/** By the rules in the user's own work tree, which no agent wrote to. */
async function ignoredOf(paths: readonly string[], where: { git: Git; root: string }): Promise<Set<string>> {
  const input = `${paths.join("\0")}\0`;
  const output = await where
    .git([`--work-tree=${where.root}`, "check-ignore", "-z", "--stdin", "--no-index"], { input, cwd: where.root })
    .catch((error: unknown) => {
      // Exit code 1 says that none is.
      if (error instanceof CaissonError && error.details?.exitCode === 1) return Buffer.alloc(0);
      throw error;
    });
  return new Set(output.toString("utf8").split("\0").filter(Boolean));
}

/** What goes comes first, so that a file may take a folder's place. */
async function indexInfo(
  changes: readonly Change[],
  where: { git: Git; work: string; prefix: string; owner: { uid: number; gid: number } },
): Promise<string> {
  const at = (path: string) => join(where.prefix, path);
  const gone = changes.flatMap(({ path, from, after }) => (from !== null ? [from] : after === null ? [path] : []));
  const staying = changes.flatMap((change) => (change.after === null ? [] : [{ path: change.path, side: change.after }]));
  const files = await Promise.all(
    staying.map(async ({ side }, index) => {
      const file = join(where.work, String(index));
      await writeFile(file, side.content, { mode: 0o600 });
      if (process.getuid?.() === 0) await chown(file, where.owner.uid, where.owner.gid);
      return file;
    }),
  );
  const blobs =
    files.length === 0
      ? []
      : (await words(where.git(["hash-object", "-w", "--no-filters", "--stdin-paths"], { input: `${files.join("\n")}\n` }))).split("\n");
  const none = "0".repeat(blobs[0]?.length ?? 40);
  return [
    ...gone.map((path) => `0 ${none}\t${at(path)}\0`),
    ...staying.map(({ path, side }, index) => `${gitMode(side)} ${blobs[index]}\t${at(path)}\0`),
  ].join("");
}

/** The repository of a folder or of one above it: its `.git`, or what a `.git` file of a linked work tree names. */
async function findRepository(folder: string): Promise<{ gitDir: string; root: string }> {
  for (let root = folder; ; root = dirname(root)) {
    const path = join(root, ".git");
    const found = await lstat(path).catch(() => null);
    if (found?.isDirectory()) return { gitDir: path, root };
    if (found?.isFile()) {
      const named = /^gitdir: (.+)$/m.exec(await readFile(path, "utf8"))?.[1];
      if (named) return { gitDir: resolve(root, named.trim()), root };
    }
    if (root === dirname(root)) break;
  }
  throw new CaissonError("not_found", `${folder} is not in a git repository.`, { hint: "Apply the changes with `caisson apply` instead." });
}
