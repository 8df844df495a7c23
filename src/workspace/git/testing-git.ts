import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect } from "vitest";
import { type GitServer, startGitServer } from "../../../test/support/git-server.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Session, WorkspaceSource } from "../../contract/session/session.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createOciRuntime } from "../../runtimes/oci/runtime.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { createSessionStore, type SessionStore } from "../sessions.ts";
import { prepareWorkspace } from "./check-out.ts";
import { findCommitChanges } from "./commit-changes.ts";

type GitSource = Extract<WorkspaceSource, { kind: "git" }>;

/**
 * Sets up sessions on git addresses, checked out in OCI sandboxes. `remotes/app`, which a server provides, has two
 * branches and a tag.
 */
export function useGitWorkspaces() {
  let base = "";
  let state = "";
  let runtime: Runtime;
  let server: GitServer;
  let sessions: SessionStore;
  let number = 0;
  const log = createMemoryLog();
  const path = process.env.PATH ?? "";
  const git = (repository: string, ...args: string[]) =>
    execFileSync("git", ["-c", "protocol.file.allow=always", "-C", join(base, repository), ...args], {
      encoding: "utf8",
      env: { PATH: path, HOME: base, GIT_AUTHOR_NAME: "u", GIT_AUTHOR_EMAIL: "u@x", GIT_COMMITTER_NAME: "u", GIT_COMMITTER_EMAIL: "u@x" },
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  const commit = (repository: string, files: Record<string, string>, message = "x") => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(base, repository, name, ".."), { recursive: true });
      writeFileSync(join(base, repository, name), text);
    }
    git(repository, "add", "-A");
    git(repository, "commit", "-qm", message);
    return git(repository, "rev-parse", "HEAD");
  };
  const make = (repository: string) => {
    mkdirSync(join(base, repository), { recursive: true });
    git(repository, "init", "-q", "-b", "main");
    git(repository, "config", "uploadpack.allowAnySHA1InWant", "true");
  };

  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    state = join(base, "home");
    mkdirSync(state, { mode: 0o700 });
    const guestPath = join(import.meta.dirname, "..", "..", "..", "guest", "build", "caisson-guest");
    runtime = createOciRuntime({ stateDir: state, guestPath }, { home: base, path });
    sessions = createSessionStore({
      stateDir: state,
      log,
      identity: { pid: process.pid, host: "h", startTicks: 0, bootId: "b" },
      alive: () => true,
    });
    make("remotes/app");
    commit("remotes/app", { "a.txt": "one\n", "d/b.txt": "two\n", "run.sh": "#!/bin/sh\n" });
    chmodSync(join(base, "remotes/app/run.sh"), 0o755);
    commit("remotes/app", { "a.txt": "one\nmore\n", ".gitattributes": "*.txt eol=crlf\n*.x filter=none\n" }, "second");
    git("remotes/app", "tag", "-a", "v1", "-m", "v1");
    git("remotes/app", "checkout", "-q", "-b", "side");
    commit("remotes/app", { side: "side\n" });
    git("remotes/app", "checkout", "-q", "main");
    server = await startGitServer(join(base, "remotes"));
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await runtime[Symbol.asyncDispose]();
    rmSync(base, { recursive: true, force: true });
  });

  const options = (more: { path?: string } = {}) => {
    const lines: string[] = [];
    return {
      lines,
      prepare: {
        sessions,
        stateDir: state,
        git: { path: more.path ?? path, home: base },
        log,
        owner: LOCAL_OWNER,
        holder: `o${number}`,
        holderGone: () => false,
        onProgress: (line: string) => void lines.push(line),
      },
    };
  };
  /** Opens a session on a source, and prepares its workspace in a sandbox. */
  async function open(source: Partial<GitSource> & { url: string }, more: { path?: string } = {}) {
    const session = await sessions.create({
      id: `s${number++}`,
      source: { kind: "git", submodules: false, ...source },
      scope: "session",
      cleanup: "never",
    });
    const { lower, layer } = sessions.paths(session);
    const sandbox = await runtime.create(SandboxConfig.parse({ workspace: { kind: "folder", path: lower, access: "overlay", layer } }));
    const { lines, prepare } = options(more);
    try {
      await prepareWorkspace(session, { sandbox, runtime }, prepare);
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
    return { session, sandbox, lines };
  }
  const sh = async (sandbox: OwnedSandbox, script: string) => {
    const { stdout, stderr, ended } = await runCommand(sandbox, { argv: ["sh", "-c", script] });
    expect(ended, stderr).toMatchObject({ exitCode: 0 });
    return stdout.trim();
  };
  const changesIn = async (session: Session, sandbox: OwnedSandbox, layer: string | null = `${sessions.paths(session).layer}/upper`) => {
    const { source, commit: at, preparedAt } = session;
    if (source.kind !== "git" || at === null || preparedAt === null) throw new Error("not prepared");
    return await findCommitChanges({
      sandbox,
      layer,
      folders: await sessions.folders(session.id),
      preparedAtMs: Date.parse(preparedAt),
      stateDir: state,
      git: { path, home: base },
      source,
      owner: session.owner,
      commit: at,
    });
  };
  const file = (name: string) => pathToFileURL(join(base, "remotes", name)).href;
  return { path, opened: () => ({ base, state, server, sessions }), git, commit, make, open, sh, changesIn, file };
}
