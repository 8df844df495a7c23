import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GitServer, startGitServer } from "../../../test/support/git-server.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import type { Session, WorkspaceSource } from "../../contract/session.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createOciRuntime } from "../../runtimes/oci/runtime.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { kindOf } from "../change.ts";
import { createSessionStore, type SessionStore } from "../sessions.ts";
import { prepareWorkspace } from "./check-out.ts";
import { findCommitChanges } from "./commit-changes.ts";
import { mirrorFolder } from "./git-mirror.ts";

type GitSource = Extract<WorkspaceSource, { kind: "git" }>;

describe("a git workspace", () => {
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
        owner: `o${number}`,
        ownerGone: () => false,
        onProgress: (line: string) => void lines.push(line),
      },
    };
  };
  /** A session on a source, its workspace prepared in a sandbox. */
  async function open(source: Partial<GitSource> & { url: string }, more: { path?: string } = {}) {
    const session = await sessions.create({
      id: `s${number++}`,
      source: { kind: "git", submodules: false, ...source },
      scope: "session",
      cleanup: "never",
    });
    const { lower, layer } = sessions.paths(session);
    const sandbox = await runtime.create(SandboxSpec.parse({ workspace: { kind: "folder", path: lower, access: "overlay", layer } }));
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
      commit: at,
    });
  };
  const file = (name: string) => pathToFileURL(join(base, "remotes", name)).href;

  test("the default branch, checked out inside, with its history and a clean status", async () => {
    const { session, sandbox, lines } = await open({ url: `${server.url}/app/.git` });
    await using _ = sandbox;
    expect(
      await sh(
        sandbox,
        "git symbolic-ref --short HEAD; git log --format=%s; git status --porcelain; git tag; git rev-parse HEAD; git remote get-url origin",
      ),
    ).toBe(`main\nsecond\nx\nv1\n${session.commit}\n${server.url}/app/.git`);
    expect(await sh(sandbox, "id -u; stat -c %u a.txt; stat -c %A run.sh")).toBe("1000\n1000\n-rwxr-xr-x");
    expect(lines.join("\n")).toMatch(/cloning http:[\s\S]*checking out/);
    expect((await changesIn(session, sandbox)).changes).toEqual([]);
    expect((await sessions.history(session.id)).map((event) => event.type)).toEqual(["session.created", "session.prepared"]);
  });

  test("branch, tag, commit; a ref wins over a branch; depth", async () => {
    const first = git("remotes/app", "rev-parse", "main~1");
    for (const [source, head, log] of [
      [{ branch: "side" }, "side", "3"],
      [{ ref: "v1" }, "HEAD", "2"],
      [{ ref: first, branch: "side" }, "HEAD", "1"],
      [{ branch: "side", depth: 1 }, "side", "1"],
    ] as const) {
      const { sandbox } = await open({ url: file("app"), ...source });
      await using _ = sandbox;
      expect(await sh(sandbox, "git rev-parse --abbrev-ref HEAD; git rev-list --count HEAD")).toBe(`${head}\n${log}`);
    }
  });

  test("the second clone asks the remote only whether there is anything new", async () => {
    await (await open({ url: `${server.url}/app/.git` })).sandbox.destroy();
    server.requests();
    await (await open({ url: `${server.url}/app/.git` })).sandbox.destroy();
    const again = server.requests();
    // References are listed, no pack is asked for.
    expect(again.length).toBeLessThanOrEqual(6);
    const fresh = commit("remotes/app", { news: "n\n" }, "news");
    const { session, sandbox } = await open({ url: `${server.url}/app/.git` });
    await sandbox.destroy();
    expect(session.commit).toBe(fresh);
  });

  test("several at once on one address, and a mirror that is damaged", async () => {
    const url = file("app");
    rmSync(mirrorFolder(state, url), { recursive: true, force: true });
    const opened = await Promise.all([1, 2, 3].map(() => open({ url })));
    for (const { sandbox } of opened) await sandbox.destroy();
    expect(new Set(opened.map(({ session }) => session.commit)).size).toBe(1);
    const mirror = mirrorFolder(state, url);
    writeFileSync(join(mirror, "config"), "[broken\n");
    await (await open({ url })).sandbox.destroy();
    for (const name of readdirSync(join(mirror, "objects/pack"))) rmSync(join(mirror, "objects/pack", name));
    for (const name of readdirSync(join(mirror, "objects")))
      if (name.length === 2) rmSync(join(mirror, "objects", name), { recursive: true });
    const { session, sandbox } = await open({ url });
    await using _ = sandbox;
    expect((await changesIn(session, sandbox)).changes).toEqual([]);
    expect(readdirSync(join(state, "mirrors")).filter((name) => !/^[0-9a-f]{24}\.git$/.test(name))).toEqual([]);
  });

  test("what the agent changes is compared with the commit, by time and by content, also when folders change places", async () => {
    make("remotes/two");
    commit("remotes/two", { "x/f": "1\n", "y/f": "2\n", same: "s\n", "gone/g": "g\n", bin: "\0\x01" });
    const { session, sandbox } = await open({ url: file("two") });
    await using _ = sandbox;
    await sh(
      sandbox,
      "mv x t; mv y x; mv t y; cp -p same keep; touch -d '2001-01-01' same; printf 'S\\n' > same; touch -d '2001-01-01' same; rm -r gone; chmod +x bin; echo n > new; git add -A; git -c user.name=a -c user.email=a@x commit -qm agent; git config core.fsmonitor /bin/false",
    );
    for (const layer of [undefined, null]) {
      const { changes, leftOut } = await changesIn(session, sandbox, layer);
      expect(changes.map((each) => `${kindOf(each)} ${each.path}`)).toEqual([
        "modified bin",
        "removed gone/g",
        "added keep",
        "added new",
        "modified same",
        "modified x/f",
        "modified y/f",
      ]);
      expect(leftOut).toEqual([]);
    }
  });

  test("submodules: relative and nested, absolute, none that lead to this machine's folders", async () => {
    make("remotes/leaf");
    commit("remotes/leaf", { leaf: "leaf\n" });
    make("remotes/middle");
    commit("remotes/middle", { middle: "m\n" });
    git("remotes/middle", "submodule", "--quiet", "add", "--name", "leaf", file("leaf"), "deps/leaf");
    git("remotes/middle", "config", "-f", ".gitmodules", "submodule.leaf.url", "../../leaf/.git");
    commit("remotes/middle", { middle: "mm\n" });
    make("remotes/top");
    git("remotes/top", "submodule", "--quiet", "add", "--name", "mid", file("middle"), "lib/mid");
    git("remotes/top", "config", "-f", ".gitmodules", "submodule.mid.url", `${server.url}/middle/.git`);
    commit("remotes/top", { top: "t\n" });
    const { session, sandbox } = await open({ url: `${server.url}/top/.git`, submodules: true });
    {
      await using _ = sandbox;
      expect(
        await sh(
          sandbox,
          "cat top lib/mid/middle lib/mid/deps/leaf/leaf; git submodule status --recursive | wc -l; git status --porcelain",
        ),
      ).toBe("t\nmm\nleaf\n2");
      expect((await changesIn(session, sandbox)).changes).toEqual([]);
      await sh(sandbox, "echo x >> lib/mid/deps/leaf/leaf");
      expect((await changesIn(session, sandbox)).changes.map((change) => change.path)).toEqual(["lib/mid/deps/leaf/leaf"]);
    }
    // Another port of the same host is another place, unless the user names it.
    const other = await startGitServer(join(base, "remotes"));
    git("remotes/top", "config", "-f", ".gitmodules", "submodule.mid.url", `${other.url}/middle/.git`);
    commit("remotes/top", { top: "elsewhere\n" });
    await expect(open({ url: `${server.url}/top/.git`, submodules: true })).rejects.toMatchObject({
      code: "denied",
      hint: `\`--submodules-from ${other.url}\` allows it.`,
    });
    {
      const { sandbox: named } = await open({ url: `${server.url}/top/.git`, submodules: true, submodulesFrom: [other.url] });
      await using _ = named;
      expect(await sh(named, "cat lib/mid/deps/leaf/leaf")).toBe("leaf");
    }
    await other[Symbol.asyncDispose]();
    for (const url of [file("leaf"), "ext::sh -c touch% /tmp/x", "-oProxyCommand=x", "../../../../../etc"]) {
      git("remotes/top", "config", "-f", ".gitmodules", "submodule.mid.url", url);
      commit("remotes/top", { top: url });
      await expect(open({ url: `${server.url}/top/.git`, submodules: true }), url).rejects.toMatchObject({
        code: expect.stringMatching(/denied|unsafe|invalid/),
      });
    }
    git("remotes/top", "config", "-f", ".gitmodules", "submodule.mid.path", "../out");
    commit("remotes/top", { top: "bad path" });
    await expect(open({ url: `${server.url}/top/.git`, submodules: true })).rejects.toMatchObject({ code: "unsafe" });
  });

  test("what is wrong with an address is said", async () => {
    await expect(open({ url: "ext::sh -c id" })).rejects.toMatchObject({ code: "invalid" });
    await expect(open({ url: "/just/a/path" })).rejects.toMatchObject({ code: "invalid" });
    await expect(open({ url: `${server.url}/nothing` })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("nothing"),
    });
    await expect(open({ url: "http://127.0.0.1:1/x" })).rejects.toMatchObject({ code: "unavailable", hint: expect.any(String) });
    await expect(open({ url: file("app"), branch: "missing" })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining('"missing"'),
    });
    await expect(open({ url: file("app"), ref: "--upload-pack=x" })).rejects.toMatchObject({ code: "not_found" });
    make("remotes/empty");
    await expect(open({ url: file("empty") })).rejects.toMatchObject({ code: "not_found", message: expect.stringContaining("empty") });
  });

  test("a password in an address stays on the host, and out of every message", async () => {
    cpSync(join(base, "remotes/app"), join(base, "private/app"), { recursive: true });
    await using closed = await startGitServer(join(base, "private"), { password: "ann:hunter22" });
    const url = `${closed.url.replace("//", "//ann:hunter22@")}/app/.git`;
    const { session, sandbox, lines } = await open({ url });
    await using _ = sandbox;
    expect(await sh(sandbox, "git remote get-url origin; grep -r hunter22 /workspace /tmp 2>/dev/null || echo clean")).toBe(
      `${closed.url}/app/.git\nclean`,
    );
    expect(lines.join()).not.toContain("hunter22");
    expect(JSON.stringify(await sessions.history(session.id))).not.toContain("hunter22");
    const wrong = await open({ url: url.replace("hunter22", "wrong-one") }).catch((error: Error) => error);
    expect(wrong).toMatchObject({ code: "unavailable" });
    expect((wrong as Error).message).not.toContain("wrong-one");
  });

  test("a key is used on the host and never goes inside", async () => {
    const bin = join(base, "bin");
    mkdirSync(bin);
    // Stands in for ssh: notes what it is called with, and does what the other end would.
    writeFileSync(join(bin, "ssh"), `#!/bin/sh\necho "$@" >> ${base}/ssh.log\nfor last; do :; done\nexec sh -c "$last"\n`);
    chmodSync(join(bin, "ssh"), 0o755);
    const key = join(base, "it's a key");
    writeFileSync(key, "SECRET KEY");
    const { sandbox } = await open({ url: `ssh://git@host.example${join(base, "remotes/app")}`, keyPath: key }, { path: `${bin}:${path}` });
    await using _ = sandbox;
    expect(readFileSync(join(base, "ssh.log"), "utf8")).toContain(`-i ${key} -o IdentitiesOnly=yes`);
    expect(
      await sh(
        sandbox,
        "cat a.txt | head -1; grep -rl 'SECRET KEY' / 2>/dev/null --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude-dir=lib || true",
      ),
    ).toBe("one");
    expect(existsSync(key)).toBe(true);
  });
});
