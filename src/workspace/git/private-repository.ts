import { randomBytes } from "node:crypto";
import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { succeeds } from "../../lib/failures.ts";
import { ifUnreadable, readLower } from "../read-side.ts";
import { type GitOptions, hostGit } from "./host-git.ts";
import type { RepositoryFiles } from "./repository-files.ts";

/** No command here waits for a network, but a repository may name a file that never ends. */
const TIMEOUT_MS = 120_000;

export interface PrivateRepository extends AsyncDisposable {
  /** Runs git on the repository. Throws `internal` with git's message. */
  git(args: readonly string[], more?: Partial<GitOptions>): Promise<Buffer>;
  /** The folder for everything that git reads or writes. */
  folder: string;
  /** The folder where git writes new objects. */
  objects: string;
  /** Writes a file that git can read, whichever user runs it. */
  put(name: string, content: Buffer | string): Promise<string>;
}

/**
 * Creates a separate repository that only borrows the objects of the user's repository. Git never sees the user's
 * settings, hooks, attributes, grafts, replacements or remotes. So we need no list of forbidden settings: there is
 * nothing that could name a program.
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
    const exclude = await readLower(repository.common, "info/exclude").catch(ifUnreadable);
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

/** Throws `not_found` if objects of a commit are missing, as in a partial clone. */
export async function checkCommit({ git }: PrivateRepository, commit: string, root: string): Promise<void> {
  const asking = git(["rev-parse", "--verify", "--quiet", "--end-of-options", `${commit}^{tree}`]);
  if (await succeeds(asking, "git fails for a commit that is missing")) return;
  throw new CaissonError("not_found", `the repository of ${root} does not have the commit ${commit} that the changes are based on`, {
    hint: "Fetch the commit there first.",
  });
}

/** Quotes a name with unusual characters as git does. */
export function quotedPath(path: string): string {
  return `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
