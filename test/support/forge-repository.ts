import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

/** A bare repository on disk that tests create and inspect. */
export interface ForgeRepository {
  path: string;
  git(...args: string[]): string;
  /** Returns the commit of a branch, or null if it does not exist. */
  branch(name: string): string | null;
  branches(): string[];
  /** Returns the content of a file on a branch. */
  file(branch: string, path: string): string;
  /** Adds a commit with these files to a branch, as another person would. Returns the commit. */
  commit(branch: string, files: Readonly<Record<string, string>>, message?: string): string;
}

const identity = {
  GIT_AUTHOR_NAME: "Somebody",
  GIT_AUTHOR_EMAIL: "somebody@example.com",
  GIT_COMMITTER_NAME: "Somebody",
  GIT_COMMITTER_EMAIL: "somebody@example.com",
};

/** Creates `folder/NAME.git` with a first commit on `main`. */
export function makeForgeRepository(
  folder: string,
  name: string,
  files: Readonly<Record<string, string>>,
  { hash = "sha1" }: { hash?: "sha1" | "sha256" } = {},
): ForgeRepository {
  const path = join(folder, `${name}.git`);
  mkdirSync(path, { recursive: true });
  const run = (args: readonly string[], input?: string) =>
    execFileSync("git", ["-c", "safe.directory=*", `--git-dir=${path}`, ...args], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, HOME: "/nonexistent", ...identity },
      stdio: ["pipe", "pipe", "pipe"],
      ...(input !== undefined && { input }),
    }).trim();
  run(["init", "--quiet", "--bare", "--initial-branch=main", `--object-format=${hash}`, path]);
  const branch = (wanted: string) => {
    try {
      return run(["rev-parse", "--verify", "--quiet", `refs/heads/${wanted}`]);
    } catch {
      return null;
    }
  };
  const commit = (wanted: string, changed: Readonly<Record<string, string>>, message = "A change\n") => {
    const parent = branch(wanted);
    const env = { GIT_INDEX_FILE: join(path, "test-index") };
    const index = (args: readonly string[], input?: string) =>
      execFileSync("git", ["-c", "safe.directory=*", `--git-dir=${path}`, ...args], {
        encoding: "utf8",
        env: { PATH: process.env.PATH, HOME: "/nonexistent", ...identity, ...env },
        ...(input !== undefined && { input }),
      }).trim();
    index(parent === null ? ["read-tree", "--empty"] : ["read-tree", parent]);
    for (const [file, content] of Object.entries(changed)) {
      const blob = run(["hash-object", "-w", "--stdin"], content);
      index(["update-index", "--add", "--cacheinfo", `100644,${blob},${file}`]);
    }
    const commitId = run(["commit-tree", index(["write-tree"]), ...(parent === null ? [] : ["-p", parent]), "-F", "-"], message);
    run(["update-ref", `refs/heads/${wanted}`, commitId]);
    return commitId;
  };
  commit("main", files, "First\n");
  return {
    path,
    git: (...args) => run(args),
    branch,
    branches: () => run(["for-each-ref", "--format=%(refname:short)", "refs/heads"]).split("\n").filter(Boolean),
    file: (wanted, file) => run(["show", `refs/heads/${wanted}:${file}`]),
    commit,
  };
}

/** Returns the merged tree of two commits, or null if they conflict. */
export function mergedTreeOf(repository: ForgeRepository, ours: string, theirs: string): string | null {
  try {
    return repository.git("merge-tree", "--write-tree", ours, theirs).split("\n")[0] ?? null;
  } catch {
    return null;
  }
}
