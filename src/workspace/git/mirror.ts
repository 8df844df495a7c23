import { createHash } from "node:crypto";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import { type GitOptions, hostGit } from "./host-git.ts";

type GitSource = Extract<WorkspaceSource, { kind: "git" }>;

/** What a remote may be. `ext::` and other transports that run programs are not among them. */
const ALLOWED = /^(https?|ssh|git|file):\/\/|^[\w.-]+@[\w.-]+:/i;

/**
 * A bare mirror of a remote on the host, fetched anew each time and kept, so that the second clone is fast. Throws `invalid` for an address of another kind, `unavailable`
 * when the remote cannot be reached or refuses.
 */
export async function fetchMirror(
  source: GitSource,
  options: { stateDir: string; git: Pick<GitOptions, "path" | "home">; onProgress?: (line: string) => void; signal?: AbortSignal },
): Promise<string> {
  if (!ALLOWED.test(source.url) || /[\0\n]/.test(source.url) || source.url.startsWith("-")) {
    throw new CaissonError("invalid", `${JSON.stringify(source.url.slice(0, 200))} is not the address of a repository.`, {
      hint: "Use https://, ssh://, git://, file:// or user@host:path.",
    });
  }
  const root = join(options.stateDir, "mirrors");
  const dir = join(root, `${createHash("sha256").update(source.url).digest("hex").slice(0, 24)}.git`);
  const common = {
    ...options.git,
    env: transport(source),
    ...(options.onProgress ? { onProgress: options.onProgress } : {}),
    ...(options.signal ? { signal: options.signal } : {}),
  };
  await mkdir(root, { recursive: true, mode: 0o700 });
  const there = await stat(join(dir, "HEAD")).catch(() => null);
  try {
    if (there) {
      await hostGit(["fetch", "--prune", "--tags", "--force", "--progress", "origin", "+refs/heads/*:refs/heads/*"], {
        ...common,
        gitDir: dir,
      });
      return dir;
    }
    const fresh = `${dir}.new-${process.pid}-${Date.now()}`;
    try {
      await hostGit(["clone", "--mirror", "--template=", "--progress", "--", source.url, fresh], common);
      await rename(fresh, dir).catch(async (error: unknown) => {
        // Somebody else was faster; theirs is as good.
        if (!(await stat(join(dir, "HEAD")).catch(() => null))) throw error;
      });
    } finally {
      await rm(fresh, { recursive: true, force: true });
    }
    return dir;
  } catch (error) {
    if (error instanceof CaissonError && error.code !== "internal") throw error;
    throw new CaissonError("unavailable", `${source.url} could not be fetched: ${error instanceof Error ? error.message : error}`, {
      hint: "Check the address, the network, and that the key or credential is one the server knows.",
      cause: error,
    });
  }
}

function transport(source: GitSource): Record<string, string> {
  const key = source.keyPath === undefined ? "" : ` -i '${source.keyPath.replaceAll("'", `'\\''`)}' -o IdentitiesOnly=yes`;
  return {
    GIT_SSH_COMMAND: `ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new${key}`,
    GIT_ALLOW_PROTOCOL: "https:http:ssh:git:file",
  };
}

/** The commit a source means: its ref wins over its branch, and the remote's own default comes last. Throws `not_found`. */
export async function resolveCommit(
  mirror: string,
  source: GitSource,
  options: { git: Pick<GitOptions, "path" | "home"> },
): Promise<string> {
  const wanted = source.ref ?? source.branch ?? "HEAD";
  const tries =
    source.ref === undefined && source.branch !== undefined
      ? [`refs/heads/${wanted}`]
      : [`refs/heads/${wanted}`, `refs/tags/${wanted}`, wanted];
  for (const name of tries) {
    if (name.startsWith("-")) continue;
    const found = await hostGit(["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`], {
      ...options.git,
      gitDir: mirror,
    }).catch(() => null);
    if (found) return found.toString("utf8").trim();
  }
  throw new CaissonError("not_found", `${source.url} has no ${source.ref === undefined ? "branch" : "ref"} ${JSON.stringify(wanted)}.`);
}
