import { randomBytes } from "node:crypto";
import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { readLower } from "../read-side.ts";
import { type GitOptions, hostGit } from "./host-git.ts";
import type { RepositoryFiles } from "./repository-files.ts";

/** Nothing here waits for a network; a repository may still name a file that never ends. */
const TIMEOUT_MS = 120_000;

export interface PrivateRepository extends AsyncDisposable {
  /** Runs git on it. Throws `internal`, with git's words. */
  git(args: readonly string[], more?: Partial<GitOptions>): Promise<Buffer>;
  /** A folder of our own, for whatever git is to read or write. */
  folder: string;
  /** Where git writes new objects. */
  objects: string;
  /** Writes a file that git may read, whoever it runs as. */
  put(name: string, content: Buffer | string): Promise<string>;
}

/**
 * A repository of our own that only borrows the objects of the user's. Git never sees the user's settings, hooks,
 * attributes, grafts, replacements or remotes, so there is nothing in it that could name a program: not a list of what
 * to forbid, but nothing there.
 */
export async function makePrivateRepository(repository: RepositoryFiles, options: Pick<GitOptions, "path">): Promise<PrivateRepository> {
  const { uid, gid } = repository.common.identity;
  const asOwner = process.getuid?.() === 0;
  const folder = join(tmpdir(), `caisson-branch-${randomBytes(8).toString("hex")}`);
  const gitDir = join(folder, "git");
  const make = async (path: string) => {
    await mkdir(path, { mode: 0o700 });
    if (asOwner) await chown(path, uid, gid);
  };
  const put = async (name: string, content: Buffer | string) => {
    const path = join(folder, name);
    await writeFile(path, content, { mode: 0o600, flag: "wx" });
    if (asOwner) await chown(path, uid, gid);
    return path;
  };
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    for (const path of ["", "git", "git/objects", "git/objects/info", "git/refs", "git/info"]) await make(join(folder, path));
    const format =
      repository.hash === "sha256"
        ? "\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
        : "\trepositoryformatversion = 0\n";
    await put("git/config", `[core]\n\tbare = true\n${format}`);
    await put("git/HEAD", "ref: refs/heads/none\n");
    await put("git/objects/info/alternates", `${quotedPath(join(repository.common.path, "objects"))}\n`);
    const exclude = await readLower(repository.common, "info/exclude").catch(() => null);
    if (exclude?.kind === "file") await put("git/info/exclude", exclude.content);
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    folder,
    objects: join(gitDir, "objects"),
    put,
    git: (args, more = {}) => hostGit(args, { path: options.path, timeoutMs: TIMEOUT_MS, gitDir, user: { uid, gid }, ...more }),
    [Symbol.asyncDispose]: remove,
  };
}

/** Throws `not_found` for a commit whose objects are not all there, as in a partial clone. */
export async function checkCommit({ git }: PrivateRepository, commit: string, root: string): Promise<void> {
  const found = await git(["rev-parse", "--verify", "--quiet", "--end-of-options", `${commit}^{tree}`]).catch(() => null);
  if (found !== null) return;
  throw new CaissonError("not_found", `the repository of ${root} does not have the commit ${commit} that the changes begin from`, {
    hint: "Fetch it there first.",
  });
}

/** As git writes and reads names with unusual characters. */
export function quotedPath(path: string): string {
  return `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
