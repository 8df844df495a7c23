import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CaissonError } from "../../contract/error/error.ts";
import type { Session } from "../../contract/session/session.ts";
import { ignore } from "../../lib/failures.ts";
import { copyIn } from "../../sandbox/copy.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SessionStore } from "../sessions.ts";
import { foldersOf } from "../walk-layer.ts";
import { cleanAddress } from "./address.ts";
import { fetchMirror, type GitSource, type MirrorOptions, remakeMirror, resolveCommit } from "./git-mirror.ts";
import { hostGit } from "./host-git.ts";
import { submodulesOf } from "./submodules.ts";

export interface PrepareOptions extends MirrorOptions {
  sessions: SessionStore;
}

const CHECK_OUT_MS_MAX = 10 * 60_000;

/**
 * Checks out a git session's repository in its workspace, the first time. The host only transfers packed objects; the
 * checkout takes place inside. Starts from scratch if it was interrupted. Throws the errors of `fetchMirror` and
 * `resolveCommit`, and `unavailable` if the checkout fails inside.
 */
export async function prepareWorkspace(
  session: Session,
  { sandbox, runtime }: { sandbox: Sandbox; runtime: Pick<Runtime, "layerFolders"> },
  options: PrepareOptions,
): Promise<void> {
  if (session.source.kind !== "git" || session.commit !== null) return;
  for (const { name } of (await sandbox.list("/workspace")).entries) await sandbox.remove(`/workspace/${name}`, { recursive: true });
  const commit = await cloneInto(session.source, { sandbox, folder: "/workspace", gitFolder: "/workspace/.git", depth: 0 }, options);
  const folder = (await runtime.layerFolders?.(options.sessions.paths(session).layer))?.[0];
  if (folder !== undefined) await options.sessions.noteFolders(session.id, await foldersOf(folder));
  const { preparedAt } = await options.sessions.update(session.id, { commit, preparedAt: new Date().toISOString() });
  await options.sessions.record(session.id, { type: "session.prepared", data: { commit } });
  Object.assign(session, { commit, preparedAt });
}

interface Target {
  sandbox: Sandbox;
  folder: string;
  gitFolder: string;
  /** The nesting depth of submodules. */
  depth: number;
}

async function cloneInto(source: GitSource, target: Target, options: PrepareOptions): Promise<string> {
  let mirror = await fetchMirror(source, options);
  let commit = await resolveCommit(mirror, source, options);
  try {
    await copyRepository({ source, mirror, commit }, target, options);
  } catch (error) {
    // Objects are missing: the mirror is damaged in a way that the fetch did not notice.
    if (!(error instanceof CaissonError) || error.code !== "internal") throw error;
    options.onProgress?.("the mirror is damaged; recreating it");
    mirror = await remakeMirror(source, options);
    commit = await resolveCommit(mirror, source, options);
    await copyRepository({ source, mirror, commit }, target, options);
  }
  options.onProgress?.(
    `checking out ${commit.slice(0, 12)}${target.depth === 0 ? "" : ` in ${target.folder.slice("/workspace/".length)}`}`,
  );
  await checkOut({ source, commit, branch: await branchOf(source, mirror, options) }, target);
  if (source.submodules) await checkOutSubmodules({ source, mirror, commit }, target, options);
  return commit;
}

/**
 * Checks out the repository's exact bytes, without the conversions that its attributes request: a diff compares with
 * the commit itself.
 */
async function checkOut(what: { source: GitSource; commit: string; branch: string | null }, target: Target): Promise<void> {
  const git = (...args: string[]) =>
    inside(target.sandbox, ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-C", target.folder, ...args]);
  const attributes = `${target.gitFolder}/info/attributes`;
  await git("config", "core.bare", "false");
  if (target.gitFolder !== `${target.folder}/.git`) await git("config", "core.worktree", target.folder);
  await git("config", "remote.origin.url", cleanAddress(what.source.url));
  await git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*");
  await target.sandbox.writeFile(attributes, Buffer.from("* -text -eol -filter -ident -working-tree-encoding\n"), { parents: true });
  if (what.branch === null) await git("checkout", "--quiet", "--force", "--detach", what.commit);
  else await git("checkout", "--quiet", "--force", "--no-track", "-B", what.branch, what.commit);
  await target.sandbox.remove(attributes);
}

/** Creates a bare clone with only the requested commits, which the host packs and the guest unpacks. */
async function copyRepository(
  what: { source: GitSource; mirror: string; commit: string },
  target: Target,
  options: PrepareOptions,
): Promise<void> {
  const parent = join(options.stateDir, "mirrors");
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const packed = join(parent, `pack-${process.pid}-${randomBytes(6).toString("hex")}`);
  const { depth } = what.source;
  try {
    await hostGit(["init", "--bare", "--quiet", "--template=", packed], options.git);
    const refs = depth === undefined ? ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"] : [];
    await hostGit(
      [
        "fetch",
        "--quiet",
        "--no-tags",
        ...(depth === undefined ? [] : [`--depth=${depth}`]),
        pathToFileURL(what.mirror).href,
        `+${what.commit}:refs/heads/caisson-start`,
        ...refs,
      ],
      {
        ...options.git,
        gitDir: packed,
        env: {
          GIT_CONFIG_COUNT: "1",
          GIT_CONFIG_KEY_0: "uploadpack.allowAnySHA1InWant",
          GIT_CONFIG_VALUE_0: "true",
          GIT_ALLOW_PROTOCOL: "file",
        },
      },
    );
    await hostGit(["update-ref", "-d", "refs/heads/caisson-start"], { ...options.git, gitDir: packed });
    await rm(join(packed, "FETCH_HEAD"), { force: true });
    await copyIn(target.sandbox, packed, target.gitFolder);
  } finally {
    await rm(packed, { recursive: true, force: true });
  }
}

async function branchOf(source: GitSource, mirror: string, options: PrepareOptions): Promise<string | null> {
  if (source.ref !== undefined) return null;
  if (source.branch !== undefined) return source.branch;
  const asking = hostGit(["symbolic-ref", "--quiet", "--short", "HEAD"], { ...options.git, gitDir: mirror });
  return (await ignore(asking, "git fails for a detached HEAD"))?.toString("utf8").trim() || null;
}

async function checkOutSubmodules(
  what: { source: GitSource; mirror: string; commit: string },
  target: Target,
  options: PrepareOptions,
): Promise<void> {
  for (const { name, path, source } of await submodulesOf({ ...what, depth: target.depth }, options.git)) {
    const gitFolder = `${target.gitFolder}/modules/${name}`;
    const folder = `${target.folder}/${path}`;
    await target.sandbox.mkdir(folder, { parents: true });
    await target.sandbox.mkdir(gitFolder, { parents: true });
    await target.sandbox.writeFile(`${folder}/.git`, Buffer.from(`gitdir: ${gitFolder}\n`));
    await cloneInto(source, { sandbox: target.sandbox, folder, gitFolder, depth: target.depth + 1 }, options);
    const config = (key: string, value: string) =>
      inside(target.sandbox, ["git", "config", "--file", `${target.gitFolder}/config`, `submodule.${name}.${key}`, value]);
    await config("url", cleanAddress(source.url));
    await config("active", "true");
  }
}

async function inside(sandbox: Sandbox, argv: readonly string[]): Promise<void> {
  const { ended, stderr } = await runCommand(sandbox, { argv, cwd: "/", timeoutMs: CHECK_OUT_MS_MAX, env: { GIT_TERMINAL_PROMPT: "0" } });
  if (ended.kind === "exited" && ended.exitCode === 0) return;
  throw new CaissonError("unavailable", `the checkout failed inside the sandbox: ${stderr.trim().slice(-500) || ended.kind}`, {
    hint: "The template must contain git.",
  });
}
