import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { type HeldLease, holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import { createDiskShares, type DiskShares, folderBytes, OWNED_NAME } from "../../sandbox/disk-shares.ts";
import { checkAddress, cleanAddress, withoutSecretOf } from "./address.ts";
import { type GitOptions, hostGit } from "./host-git.ts";

export type GitSource = Extract<WorkspaceSource, { kind: "git" }>;

/** How git reaches a remote for one fetch. */
export interface RemoteAccess extends AsyncDisposable {
  /** Whether git works as the machine's user: with its home folder, keys and logins, and any transport. */
  asUser: boolean;
  /** For git's environment, where it does not. */
  env: Readonly<Record<string, string>>;
  /** Says why a fetch failed, in place of git's words; null where those may be told. */
  explain(): Promise<CaissonError | null>;
}

export interface MirrorOptions {
  stateDir: string;
  git: Pick<GitOptions, "path" | "home">;
  log: Log;
  /** Whose session it is: with whose credentials it is fetched, and who reads the mirror. */
  owner: string;
  /** Absent: for the machine's user alone. Throws `denied`. */
  access?: ((url: string, owner: string) => Promise<RemoteAccess>) | undefined;
  /** This process, and whether another's is gone: one fetches into a mirror at a time. */
  holder: string;
  holderGone: (holder: string) => boolean;
  onProgress?: (line: string) => void;
  signal?: AbortSignal;
  /** What may be written for the owner. */
  disk?: DiskShares;
}

const LOCK_TTL_MS = 30_000;
const LOCK_POLL_MS = 50;
const LOCK_WAIT_MS_MAX = 30 * 60_000;

/**
 * An owner's mirror of a remote. Each has its own: a mirror keeps commits that the remote no longer shows, and what was
 * fetched with one owner's credentials is not for another.
 */
export function mirrorFolder(stateDir: string, { url, owner }: { url: string; owner: string }): string {
  const key = owner === LOCAL_OWNER ? url : `${owner}\0${url}`;
  return join(stateDir, "mirrors", `${createHash("sha256").update(key).digest("hex").slice(0, 24)}.git`);
}

/**
 * The mirror with the commit that a session began from. Before owners had mirrors of their own there was one for all;
 * its commit was fetched by that session, so it is the same content.
 */
export function sessionMirror(stateDir: string, asked: { url: string; owner: string }): string {
  const own = mirrorFolder(stateDir, asked);
  return existsSync(own) ? own : mirrorFolder(stateDir, { ...asked, owner: LOCAL_OWNER });
}

/**
 * A bare mirror of a remote on the host, fetched anew each time and kept, so that the second clone is fast; one that is
 * damaged is made again. Throws `invalid` for an address of another kind, `unavailable` when the remote cannot be
 * reached or refuses.
 */
export async function fetchMirror(source: GitSource, options: MirrorOptions): Promise<string> {
  checkAddress(source.url);
  const dir = mirrorFolder(options.stateDir, { ...options, url: source.url });
  await mkdir(join(options.stateDir, "mirrors"), { recursive: true, mode: 0o700 });
  await using _ = await lockMirror(dir, source.url, options);
  await using access = await openAccess(source, options);
  const remote = remoteGit(source, options, access);
  try {
    if (await stat(join(dir, "HEAD")).catch(() => null)) {
      options.onProgress?.(`fetching ${cleanAddress(source.url)}`);
      if (await update(dir, source, { ...options, remote })) {
        await noteSize(dir, options);
        return dir;
      }
      options.onProgress?.("the mirror is damaged; making it again");
    } else options.onProgress?.(`cloning ${cleanAddress(source.url)}`);
    await make(dir, source, { ...options, remote });
    return dir;
  } catch (error) {
    throw await unreachable(source, error, access);
  }
}

/** Fetches while the disk, and the share of the one it is kept for, have room. */
async function whileRoom<Result>(folder: string, options: MirrorOptions, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const disk = options.disk ?? createDiskShares({ stateDir: options.stateDir });
  const { owner, signal } = options;
  return await disk.write({ what: "the repository", owner, signal, measured: folder }, ({ signal: ending }) => work(ending));
}

/** For whom it is kept; one from before owners had their own is the first's who fetched it. */
async function noteSize(dir: string, { owner: fetcher }: MirrorOptions): Promise<void> {
  const path = join(dir, OWNED_NAME);
  const known = jsonOrNull(await readFile(path, "utf8").catch(() => "")) as { owner?: unknown } | null;
  const owner = typeof known?.owner === "string" ? known.owner : fetcher;
  await writeFile(path, JSON.stringify({ owner, bytes: await folderBytes(dir) }), { mode: 0o600 });
}

/** False when the mirror is damaged: fetching into it fails although the remote answers. */
async function update(dir: string, source: GitSource, options: MirrorOptions & { remote: RemoteGit }): Promise<boolean> {
  const { remote, git } = options;
  const fetch = ["fetch", "--prune", "--tags", "--force", "--progress", "origin", "+refs/heads/*:refs/heads/*"];
  try {
    await whileRoom(join(dir, "objects", "pack"), options, (signal) => remote(fetch, dir, signal));
  } catch (error) {
    if (error instanceof CaissonError && error.code === "no_space") throw error;
    const answers = await remote(["ls-remote", "--quiet", "--", source.url, "HEAD"]).catch(() => null);
    if (answers === null) throw error;
    return false;
  }
  // The remote may have another default branch by now.
  const text = (await remote(["ls-remote", "--quiet", "--symref", "origin", "HEAD"], dir)).toString("utf8");
  const branch = /^ref: (refs\/heads\/\S+)\tHEAD$/m.exec(text)?.[1];
  if (branch !== undefined) await hostGit(["symbolic-ref", "HEAD", branch], { ...git, gitDir: dir });
  return true;
}

/** Makes a mirror that turned out to be damaged again. Throws as `fetchMirror`. */
export async function remakeMirror(source: GitSource, options: MirrorOptions): Promise<string> {
  const dir = mirrorFolder(options.stateDir, { ...options, url: source.url });
  await using _ = await lockMirror(dir, source.url, options);
  await using access = await openAccess(source, options);
  try {
    await make(dir, source, { ...options, remote: remoteGit(source, options, access) });
    return dir;
  } catch (error) {
    throw await unreachable(source, error, access);
  }
}

async function make(dir: string, source: GitSource, options: MirrorOptions & { remote: RemoteGit }): Promise<void> {
  const fresh = `${dir}.new`;
  await rm(fresh, { recursive: true, force: true });
  try {
    const clone = ["clone", "--mirror", "--template=", "--progress", "--", source.url, fresh];
    await whileRoom(fresh, options, (signal) => options.remote(clone, undefined, signal));
    await noteSize(fresh, options);
    await rm(dir, { recursive: true, force: true });
    await rename(fresh, dir);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

type RemoteGit = (args: readonly string[], gitDir?: string, signal?: AbortSignal) => Promise<Buffer>;

async function openAccess({ url }: GitSource, { access, owner }: MirrorOptions): Promise<RemoteAccess> {
  if (access !== undefined) return await access(url, owner);
  if (owner !== LOCAL_OWNER) throw new CaissonError("denied", "repositories are fetched for the machine's user alone");
  return { asUser: true, env: {}, explain: async () => null, async [Symbol.asyncDispose]() {} };
}

function remoteGit(source: GitSource, options: MirrorOptions, { asUser, env }: RemoteAccess): RemoteGit {
  const { onProgress } = options;
  return (args, gitDir, signal = options.signal) =>
    hostGit(args, {
      ...(asUser ? options.git : { path: options.git.path }),
      env: asUser ? transport(source) : env,
      ...(gitDir === undefined ? {} : { gitDir }),
      ...(onProgress ? { onProgress: (line: string) => onProgress(withoutSecretOf(source.url, line)) } : {}),
      ...(signal ? { signal } : {}),
    });
}

async function lockMirror(dir: string, url: string, options: MirrorOptions): Promise<HeldLease> {
  const stream = `mirror/${dir.slice(dir.lastIndexOf("/") + 1)}`;
  for (let waitedMs = 0; waitedMs < LOCK_WAIT_MS_MAX; waitedMs += LOCK_POLL_MS) {
    const held = await holdLease(options.log, stream, { owner: options.holder, ttlMs: LOCK_TTL_MS, ownerGone: options.holderGone });
    if (held) return held;
    if (waitedMs === 0) options.onProgress?.(`waiting for another process that fetches ${cleanAddress(url)}`);
    await delay(LOCK_POLL_MS, undefined, options.signal ? { signal: options.signal } : {});
  }
  throw new CaissonError("busy", `another process has been fetching ${cleanAddress(url)} for too long`);
}

function transport(source: GitSource): Record<string, string> {
  const key = source.keyPath === undefined ? "" : ` -i '${source.keyPath.replaceAll("'", `'\\''`)}' -o IdentitiesOnly=yes`;
  return {
    GIT_SSH_COMMAND: `ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new${key}`,
    GIT_ALLOW_PROTOCOL: "https:http:ssh:git:file",
  };
}

async function unreachable(source: GitSource, error: unknown, access: RemoteAccess): Promise<unknown> {
  if (!(error instanceof CaissonError) || error.code !== "internal") return error;
  const explained = await access.explain();
  if (explained !== null) return explained;
  return new CaissonError(
    "unavailable",
    `${cleanAddress(source.url)} could not be fetched: ${withoutSecretOf(source.url, error.message)}`,
    {
      hint: "Check the address, the network, and that the server knows the key or password; `caisson secret set NAME@HOST` keeps a password for it.",
    },
  );
}

/**
 * The commit a source means: its ref wins over its branch, and the remote's own default comes last. Throws `not_found`.
 */
export async function resolveCommit(mirror: string, source: GitSource, options: MirrorOptions): Promise<string> {
  const wanted = source.ref ?? source.branch ?? "HEAD";
  const heads = [`refs/heads/${wanted}`];
  const tries = source.ref !== undefined ? [`refs/tags/${wanted}`, ...heads, wanted] : source.branch !== undefined ? heads : ["HEAD"];
  const look = async () => {
    for (const name of tries) {
      if (name.startsWith("-")) continue;
      const found = await hostGit(["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`], {
        ...options.git,
        gitDir: mirror,
      }).catch(() => null);
      if (found) return found.toString("utf8").trim();
    }
    return null;
  };
  const found = await look();
  if (found) return found;
  // A commit that no branch or tag leads to can still be asked for by its name.
  if (/^[0-9a-f]{40}$/.test(wanted)) {
    await using access = await openAccess(source, options);
    await remoteGit(source, options, access)(["fetch", "--no-tags", "origin", wanted], mirror).catch(() => null);
    const fetched = await look();
    if (fetched) return fetched;
  }
  const url = cleanAddress(source.url);
  if (wanted === "HEAD")
    throw new CaissonError("not_found", `${url} has no default branch; is it empty?`, { hint: "Name a branch with --branch." });
  throw new CaissonError(
    "not_found",
    `${url} has no ${source.ref === undefined ? "branch" : "tag, branch or commit"} ${JSON.stringify(wanted)}`,
  );
}
