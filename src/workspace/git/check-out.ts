import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CaissonError } from "../../contract/error.ts";
import type { Session, WorkspaceSource } from "../../contract/session.ts";
import { copyIn } from "../../sandbox/copy.ts";
import { run } from "../../sandbox/run.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { SessionStore } from "../sessions.ts";
import { type GitOptions, hostGit } from "./host-git.ts";
import { fetchMirror, resolveCommit } from "./mirror.ts";

type GitSource = Extract<WorkspaceSource, { kind: "git" }>;

interface PrepareOptions {
  sessions: SessionStore;
  stateDir: string;
  git: Pick<GitOptions, "path" | "home">;
  onProgress?: (line: string) => void;
}

const CHECK_OUT_MS_MAX = 10 * 60_000;
const SUBMODULES_MAX = 100;
const SUBMODULE_DEPTH_MAX = 5;

/** Puts a git session's repository into its workspace, the first time; the host only moves packed objects, the check-out happens inside. */
export async function prepareWorkspace(session: Session, sandbox: Sandbox, options: PrepareOptions): Promise<void> {
  if (session.source.kind !== "git" || session.commit !== null) return;
  const commit = await cloneInto(session.source, { sandbox, folder: "/workspace", gitFolder: "/workspace/.git", depth: 0 }, options);
  await options.sessions.update({ ...session, commit });
  session.commit = commit;
}

interface Target {
  sandbox: Sandbox;
  folder: string;
  gitFolder: string;
  /** How deep in submodules. */
  depth: number;
}

async function cloneInto(source: GitSource, target: Target, options: PrepareOptions): Promise<string> {
  const mirror = await fetchMirror(source, options);
  const commit = await resolveCommit(mirror, source, options);
  await copyRepository({ source, mirror, commit }, target, options);
  const branch = source.ref === undefined ? (source.branch ?? (await defaultBranch(mirror, options))) : null;
  const git = (...args: string[]) =>
    inside(target.sandbox, ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-C", target.folder, ...args]);
  await git("config", "core.bare", "false");
  if (target.gitFolder !== `${target.folder}/.git`) await git("config", "core.worktree", target.folder);
  await git("remote", "set-url", "origin", source.url).catch(() => git("remote", "add", "origin", source.url));
  if (branch === null) await git("checkout", "--quiet", "--force", "--detach", commit);
  else await git("checkout", "--quiet", "--force", "-B", branch, commit);
  if (source.submodules) await checkOutSubmodules({ source, mirror, commit }, target, options);
  return commit;
}

/** A bare clone with just what was asked for, packed by the host, unpacked by the guest. */
async function copyRepository(
  what: { source: GitSource; mirror: string; commit: string },
  target: Target,
  options: PrepareOptions,
): Promise<void> {
  const parent = join(options.stateDir, "mirrors");
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const packed = join(parent, `pack-${process.pid}-${randomBytes(6).toString("hex")}`);
  try {
    await hostGit(["init", "--bare", "--quiet", "--template=", packed], options.git);
    const depth = what.source.depth === undefined ? [] : [`--depth=${what.source.depth}`];
    const refs = what.source.depth === undefined ? ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"] : [];
    await hostGit(
      ["fetch", "--quiet", "--no-tags", ...depth, pathToFileURL(what.mirror).href, `+${what.commit}:refs/heads/caisson-start`, ...refs],
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
    await copyIn(target.sandbox, packed, target.gitFolder);
  } finally {
    await rm(packed, { recursive: true, force: true });
  }
}

async function defaultBranch(mirror: string, options: PrepareOptions): Promise<string | null> {
  const name = await hostGit(["symbolic-ref", "--quiet", "--short", "HEAD"], { ...options.git, gitDir: mirror }).catch(() => null);
  return name?.toString("utf8").trim() || null;
}

/** Submodules as the commit names them; names and paths are data of the remote and are checked before they become paths. */
async function checkOutSubmodules(
  what: { source: GitSource; mirror: string; commit: string },
  target: Target,
  options: PrepareOptions,
): Promise<void> {
  if (target.depth >= SUBMODULE_DEPTH_MAX)
    throw new CaissonError("unsafe", `Submodules of ${what.source.url} lie deeper than ${SUBMODULE_DEPTH_MAX}.`);
  const text = await hostGit(["config", "--blob", `${what.commit}:.gitmodules`, "--null", "--list"], {
    ...options.git,
    gitDir: what.mirror,
  }).catch(() => null);
  if (!text) return;
  const modules = new Map<string, { path?: string; url?: string }>();
  for (const entry of text.toString("utf8").split("\0")) {
    const match = /^submodule\.(.+)\.(path|url)\n([\s\S]*)$/.exec(entry);
    if (!match?.[1] || !match[2]) continue;
    modules.set(match[1], { ...modules.get(match[1]), [match[2]]: match[3] ?? "" });
  }
  if (modules.size > SUBMODULES_MAX)
    throw new CaissonError("too_large", `${what.source.url} has ${modules.size} submodules; at most ${SUBMODULES_MAX} are checked out.`);
  for (const [name, module] of modules) {
    if (!module.path || !module.url || !safeName(name) || !safeName(module.path))
      throw new CaissonError("unsafe", `The submodule ${JSON.stringify(name)} of ${what.source.url} has a path or name that is not safe.`);
    const commit = await gitlink(what, module.path, options);
    if (!commit) continue;
    const url = absoluteUrl(what.source.url, module.url);
    const { keyPath } = what.source;
    const source: GitSource = { kind: "git", url, ref: commit, submodules: true, ...(keyPath === undefined ? {} : { keyPath }) };
    const gitFolder = `${target.gitFolder}/modules/${name}`;
    const folder = `${target.folder}/${module.path}`;
    await target.sandbox.mkdir(folder, { parents: true });
    await target.sandbox.mkdir(gitFolder, { parents: true });
    await target.sandbox.writeFile(`${folder}/.git`, Buffer.from(`gitdir: ${gitFolder}\n`));
    await cloneInto(source, { sandbox: target.sandbox, folder, gitFolder, depth: target.depth + 1 }, options);
  }
}

async function gitlink(what: { mirror: string; commit: string }, path: string, options: PrepareOptions): Promise<string | null> {
  const line = await hostGit(["ls-tree", what.commit, "--", path], { ...options.git, gitDir: what.mirror });
  return /^160000 commit ([0-9a-f]{40})\t/.exec(line.toString("utf8"))?.[1] ?? null;
}

const safeName = (name: string) =>
  !name.startsWith("/") &&
  !name.startsWith("-") &&
  name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part.toLowerCase() !== ".git");

function absoluteUrl(base: string, url: string): string {
  if (!url.startsWith("./") && !url.startsWith("../")) return url;
  const separator = base.includes("://") ? "/" : ":";
  const parts = base.replace(/\/$/, "").split("/");
  for (const part of url.split("/")) {
    if (part === "..") {
      if (parts.length <= (separator === "/" ? 3 : 1))
        throw new CaissonError("unsafe", `The submodule address ${JSON.stringify(url)} leaves its server.`);
      parts.pop();
    } else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

async function inside(sandbox: Sandbox, argv: readonly string[]): Promise<void> {
  const { ended, stderr } = await run(sandbox, { argv, timeoutMs: CHECK_OUT_MS_MAX, env: { GIT_TERMINAL_PROMPT: "0" } });
  if (ended.kind === "exited" && ended.exitCode === 0) return;
  throw new CaissonError(
    "unavailable",
    `The check-out failed inside the sandbox: ${stderr.toString("utf8").trim().slice(-500) || ended.kind}`,
    {
      hint: "The template must have git.",
    },
  );
}
