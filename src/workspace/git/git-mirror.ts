import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { ABSENT, ifErrno, ignore, jsonOrNull } from "../../lib/failures.ts";
import { type HeldLease, holdLease } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import { createDiskShares, type DiskShares, folderBytes, OWNED_NAME } from "../../sandbox/disk-shares.ts";
import { checkAddress, cleanAddress, withoutSecretOf } from "./address.ts";
import { type GitOptions, hostGit } from "./host-git.ts";

export type GitSource = Extract<WorkspaceSource, { kind: "git" }>;

/** Git's access to a remote for one fetch. */
export interface RemoteAccess extends AsyncDisposable {
  /** True if git works as the machine's user: with its home folder, keys and logins, and any transport. */
  asUser: boolean;
  /** Variables for git's environment, if it does not work as the machine's user. */
  env: Readonly<Record<string, string>>;
  /** Explains why a fetch failed, or returns null if git's own message may be shown. */
  explain(): Promise<CaissonError | null>;
}

export interface MirrorOptions {
  stateDir: string;
  git: Pick<GitOptions, "path" | "home">;
  log: Log;
  /** The owner of the session. The fetch uses this owner's credentials, and only this owner reads the mirror. */
  owner: string;
  /** Opens the access to a remote. If absent, only the machine's user can fetch. Throws `denied`. */
  access?: ((url: string, owner: string) => Promise<RemoteAccess>) | undefined;
  /** Identifies this process. With `holderGone`, lets one process at a time fetch into a mirror. */
  holder: string;
  holderGone: (holder: string) => boolean;
  onProgress?: (line: string) => void;
  signal?: AbortSignal;
  /** Limits on what may be written for the owner. */
  disk?: DiskShares;
}

/** How long a fetching process that died keeps others from a mirror. */
export const MIRROR_LOCK_TTL_MS = 30_000;
const LOCK_POLL_MS = 50;
const LOCK_WAIT_MS_MAX = 30 * 60_000;

/**
 * Returns the path of an owner's mirror of a remote. Each owner has a separate one: a mirror keeps commits that the
 * remote no longer shows, and content fetched with one owner's credentials is not for others.
 */
export function mirrorFolder(stateDir: string, { url, owner }: { url: string; owner: string }): string {
  const key = owner === LOCAL_OWNER ? url : `${owner}\0${url}`;
  return join(stateDir, "mirrors", `${createHash("sha256").update(key).digest("hex").slice(0, 24)}.git`);
}

/**
 * Returns the mirror with the commit that a session started from. Older versions had one mirror for all owners. A
 * session of such a version fetched the commit into that mirror, so its content is the same.
 */
export function sessionMirror(stateDir: string, remote: { url: string; owner: string }): string {
  const own = mirrorFolder(stateDir, remote);
  return existsSync(own) ? own : mirrorFolder(stateDir, { ...remote, owner: LOCAL_OWNER });
}

/**
 * Fetches a remote into a bare mirror on the host. The mirror is kept, so the second clone is fast, and recreated if it
 * is damaged. Throws `invalid` for an unsupported address, `unavailable` if the remote refuses or cannot be reached.
 */
export async function fetchMirror(source: GitSource, options: MirrorOptions): Promise<string> {
  checkAddress(source.url);
  const dir = mirrorFolder(options.stateDir, { ...options, url: source.url });
  await mkdir(join(options.stateDir, "mirrors"), { recursive: true, mode: 0o700 });
  await using _ = await lockMirror(dir, source.url, options);
  await using access = await openAccess(source, options);
  const remote = remoteGit(source, options, access);
  try {
    if ((await ifErrno(stat(join(dir, "HEAD")), ABSENT, null)) !== null) {
      options.onProgress?.(`fetching ${cleanAddress(source.url)}`);
      if (await update(dir, source, { ...options, remote })) {
        await noteSize(dir, options);
        return dir;
      }
      options.onProgress?.("the mirror is damaged; recreating it");
    } else options.onProgress?.(`cloning ${cleanAddress(source.url)}`);
    await make(dir, source, { ...options, remote });
    return dir;
  } catch (error) {
    throw await unreachable(source, error, access);
  }
}

/** Fetches as long as the disk, and the owner's share of it, have room. */
async function whileRoom<Result>(folder: string, options: MirrorOptions, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const disk = options.disk ?? createDiskShares({ stateDir: options.stateDir });
  const { owner, signal } = options;
  return await disk.write({ what: "the repository", owner, signal, measured: folder }, ({ signal: ending }) => work(ending));
}

/** Records the mirror's owner and size. A mirror without a recorded owner belongs to the first owner who fetches it. */
async function noteSize(dir: string, { owner: fetcher }: MirrorOptions): Promise<void> {
  const path = join(dir, OWNED_NAME);
  const known = jsonOrNull(await ifErrno(readFile(path, "utf8"), ABSENT, "")) as { owner?: unknown } | null;
  const owner = typeof known?.owner === "string" ? known.owner : fetcher;
  await writeFile(path, JSON.stringify({ owner, bytes: await folderBytes(dir) }), { mode: 0o600 });
}

/** Updates a mirror. Returns false if it is damaged: fetching into it fails although the remote responds. */
async function update(dir: string, source: GitSource, options: MirrorOptions & { remote: RemoteGit }): Promise<boolean> {
  const { remote, git } = options;
  const fetch = ["fetch", "--prune", "--tags", "--force", "--progress", "origin", "+refs/heads/*:refs/heads/*"];
  const address = cleanAddress(source.url);
  try {
    // Older versions stored the address with its password.
    if (address !== source.url) await hostGit(["config", "remote.origin.url", address], { ...git, gitDir: dir });
    await whileRoom(join(dir, "objects", "pack"), options, (signal) => remote(fetch, dir, signal));
  } catch (error) {
    if (error instanceof CaissonError && error.code === "no_space") throw error;
    const answers = await ignore(remote(["ls-remote", "--quiet", "--", cleanAddress(source.url), "HEAD"]), "the first error is thrown");
    if (answers === undefined) throw error;
    return false;
  }
  // The remote's default branch may have changed.
  const text = (await remote(["ls-remote", "--quiet", "--symref", "origin", "HEAD"], dir)).toString("utf8");
  const branch = /^ref: (refs\/heads\/\S+)\tHEAD$/m.exec(text)?.[1];
  if (branch !== undefined) await hostGit(["symbolic-ref", "HEAD", branch], { ...git, gitDir: dir });
  return true;
}

/** Recreates a mirror that turned out to be damaged. Throws like `fetchMirror`. */
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
    const clone = ["clone", "--mirror", "--template=", "--progress", "--", cleanAddress(source.url), fresh];
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
  if (owner !== LOCAL_OWNER) throw new CaissonError("denied", "only the machine's user can fetch repositories");
  return { asUser: true, env: {}, explain: async () => null, async [Symbol.asyncDispose]() {} };
}

function remoteGit(source: GitSource, options: MirrorOptions, { asUser, env }: RemoteAccess): RemoteGit {
  const { onProgress } = options;
  return (args, gitDir, signal = options.signal) =>
    hostGit(args, {
      ...(asUser ? options.git : { path: options.git.path }),
      env: withPasswordOf(source.url, asUser ? transport(source) : env),
      ...(gitDir === undefined ? {} : { gitDir }),
      ...(onProgress ? { onProgress: (line: string) => onProgress(withoutSecretOf(source.url, line)) } : {}),
      ...(signal ? { signal } : {}),
    });
}

/**
 * Passes the password in an address to git only in the environment: every user of the machine can see arguments, and a
 * mirror's settings stay on disk.
 */
function withPasswordOf(url: string, env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const clean = cleanAddress(url);
  if (clean === url) return env;
  const count = Number(env.GIT_CONFIG_COUNT ?? 0);
  return {
    ...env,
    GIT_CONFIG_COUNT: String(count + 1),
    [`GIT_CONFIG_KEY_${count}`]: `url.${url}.insteadOf`,
    [`GIT_CONFIG_VALUE_${count}`]: clean,
  };
}

/** The stream whose lease a process holds while it changes a mirror. */
export const mirrorStream = (name: string) => `mirror/${name}`;

async function lockMirror(dir: string, url: string, options: MirrorOptions): Promise<HeldLease> {
  const stream = mirrorStream(basename(dir));
  for (let waitedMs = 0; waitedMs < LOCK_WAIT_MS_MAX; waitedMs += LOCK_POLL_MS) {
    const held = await holdLease(options.log, stream, {
      holder: options.holder,
      ttlMs: MIRROR_LOCK_TTL_MS,
      holderGone: options.holderGone,
    });
    if (held) return held;
    if (waitedMs === 0) options.onProgress?.(`waiting for another process that is fetching ${cleanAddress(url)}`);
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
      hint: "Check the address, the network, and that the server accepts the key or password. Store a password with `caisson secret set NAME@HOST`.",
    },
  );
}

/**
 * Resolves the commit of a source. Its ref overrides its branch, and the remote's default branch comes last. Throws
 * `not_found`.
 */
export async function resolveCommit(mirror: string, source: GitSource, options: MirrorOptions): Promise<string> {
  const wanted = source.ref ?? source.branch ?? "HEAD";
  const heads = [`refs/heads/${wanted}`];
  const tries = source.ref !== undefined ? [`refs/tags/${wanted}`, ...heads, wanted] : source.branch !== undefined ? heads : ["HEAD"];
  const look = async () => {
    for (const name of tries) {
      if (name.startsWith("-")) continue;
      const asking = hostGit(["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`], {
        ...options.git,
        gitDir: mirror,
      });
      const found = await ignore(asking, "git fails for an unknown name");
      if (found) return found.toString("utf8").trim();
    }
    return null;
  };
  const found = await look();
  if (found) return found;
  // A commit that is on no branch or tag can still be fetched by its hash.
  if (/^[0-9a-f]{40}$/.test(wanted)) {
    await using access = await openAccess(source, options);
    await ignore(remoteGit(source, options, access)(["fetch", "--no-tags", "origin", wanted], mirror), "reported as not found below");
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
