import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type GitServer, startGitServer } from "../../../test/support/git-server.ts";
import type { SessionStore } from "../sessions.ts";
import { useGitWorkspaces } from "./testing-git.ts";

describe("the addresses of a git workspace", () => {
  const { path, opened, git, commit, make, open, sh, changesIn, file } = useGitWorkspaces();
  let base = "";
  let server: GitServer;
  let sessions: SessionStore;
  beforeAll(() => {
    ({ base, server, sessions } = opened());
  });

  test("allow relative, nested and absolute submodules, but no local folders", async () => {
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
    // Another port of the same host counts as another place, unless the user names it.
    const other = await startGitServer(join(base, "remotes"));
    git("remotes/top", "config", "-f", ".gitmodules", "submodule.mid.url", `${other.url}/middle/.git`);
    commit("remotes/top", { top: "elsewhere\n" });
    await expect(open({ url: `${server.url}/top/.git`, submodules: true })).rejects.toMatchObject({
      code: "denied",
      hint: `Allow it with \`--submodules-from ${other.url}\`.`,
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

  test("are rejected with the reason", async () => {
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

  test("keep their password on the host, and out of every message", async () => {
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

  test("use a key on the host, which never goes inside", async () => {
    const bin = join(base, "bin");
    mkdirSync(bin);
    // A fake ssh: records its arguments, and does what the remote side would do.
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
