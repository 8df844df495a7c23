import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { GitServer } from "../../../test/support/git-server.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { kindOf } from "../change.ts";
import type { SessionStore } from "../sessions.ts";
import { mirrorFolder } from "./git-mirror.ts";
import { useGitWorkspaces } from "./testing-git.ts";

describe("a git workspace", () => {
  const { opened, git, commit, make, open, sh, changesIn, file } = useGitWorkspaces();
  let state = "";
  let server: GitServer;
  let sessions: SessionStore;
  beforeAll(() => {
    ({ state, server, sessions } = opened());
  });

  test("checks out the default branch with its history and a clean status", async () => {
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

  test("checks out a branch, tag or commit; a ref overrides a branch", async () => {
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

  test("only asks the remote for news when it is cloned again", async () => {
    await (await open({ url: `${server.url}/app/.git` })).sandbox.destroy();
    server.requests();
    await (await open({ url: `${server.url}/app/.git` })).sandbox.destroy();
    const again = server.requests();
    // Lists refs, but fetches no pack.
    expect(again.length).toBeLessThanOrEqual(6);
    const fresh = commit("remotes/app", { news: "n\n" }, "news");
    const { session, sandbox } = await open({ url: `${server.url}/app/.git` });
    await sandbox.destroy();
    expect(session.commit).toBe(fresh);
  });

  test("shares a mirror with concurrent clones, and repairs a damaged one", async () => {
    const url = file("app");
    rmSync(mirrorFolder(state, { url, owner: LOCAL_OWNER }), { recursive: true, force: true });
    const opened = await Promise.all([1, 2, 3].map(() => open({ url })));
    for (const { sandbox } of opened) await sandbox.destroy();
    expect(new Set(opened.map(({ session }) => session.commit)).size).toBe(1);
    const mirror = mirrorFolder(state, { url, owner: LOCAL_OWNER });
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

  test("compares changes with the commit, by time and content, even if folders swap", async () => {
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
});
