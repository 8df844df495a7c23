import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";
import { lstatOrNull } from "../../lib/paths.ts";
import { currentProcess, isRunning } from "../../sandbox/process-identity.ts";
import { type GitOptions, hostGit } from "./host-git.ts";
import type { OwnRepository } from "./make-commit.ts";
import { quotedPath } from "./private-repository.ts";

const TIMEOUT_MS = 120_000;

export interface KeptRepositoryOptions {
  /** A folder that only we use; created if it does not exist. */
  folder: string;
  hash: "sha1" | "sha256";
  /** A folder of objects that the repository may read: a mirror's, or the user's repository. */
  borrows: string;
  git: Pick<GitOptions, "path">;
}

const SCRATCH_AGE_MS_MAX = 3_600_000;

/** Includes the process in the name, to detect leftovers of dead processes. */
function scratchName(): string {
  const { pid, startTicks } = currentProcess();
  return `work-${pid}-${startTicks}-${randomLetters(8)}`;
}

/** Removes the scratch folders of processes that died. */
async function sweepScratch(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  });
  for (const name of names) {
    if (!name.startsWith("work-")) continue;
    const [, pid, startTicks] = /^work-(\d{1,10})-(\d{1,18})-/.exec(name) ?? [];
    const isDead =
      pid === undefined
        ? Date.now() - (lstatOrNull(join(folder, name))?.mtimeMs ?? Date.now()) > SCRATCH_AGE_MS_MAX
        : !isRunning({ pid: Number(pid), startTicks: Number(startTicks) });
    if (isDead) await rm(join(folder, name), { recursive: true, force: true });
  }
}

export interface KeptRepository extends OwnRepository, AsyncDisposable {}

/**
 * Opens a bare repository that survives a crash: the objects for a branch stay until they are stored elsewhere. Git
 * sees only the settings that we write here. Disposal removes only the scratch files.
 */
export async function openKeptRepository(options: KeptRepositoryOptions): Promise<KeptRepository> {
  const { folder, hash, borrows, git } = options;
  const gitDir = join(folder, "repository.git");
  const scratch = join(folder, scratchName());
  await sweepScratch(folder);
  for (const each of ["objects/info", "refs", "info"]) await mkdir(join(gitDir, each), { recursive: true, mode: 0o700 });
  await mkdir(scratch, { mode: 0o700 });
  const format =
    hash === "sha256" ? "\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n" : "\trepositoryformatversion = 0\n";
  const put = async (name: string, content: Buffer | string) => {
    const path = join(scratch, name);
    await writeFile(path, content, { mode: 0o600, flag: "wx" });
    return path;
  };
  await writeFile(join(gitDir, "config"), `[core]\n\tbare = true\n${format}`, { mode: 0o600 });
  await writeFile(join(gitDir, "HEAD"), "ref: refs/heads/none\n", { mode: 0o600 });
  await writeFile(join(gitDir, "objects/info/alternates"), `${quotedPath(borrows)}\n`, { mode: 0o600 });
  return {
    folder: scratch,
    put,
    git: (args, more = {}) => hostGit(args, { path: git.path, timeoutMs: TIMEOUT_MS, gitDir, ...more }),
    [Symbol.asyncDispose]: () => rm(scratch, { recursive: true, force: true }),
  };
}
