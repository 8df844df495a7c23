import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isThroughStation } from "../support/station-modes.ts";
import { useWorkspaceCli } from "../support/workspace-cli.ts";

const { cli, work, ok } = useWorkspaceCli();

const git = (folder: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@x", "-C", folder, ...args], { encoding: "utf8" }).trim();
const commit = (folder: string, files: Record<string, string>): string => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  git(folder, "add", "-A");
  git(folder, "commit", "-qm", Object.keys(files).join());
  return git(folder, "rev-parse", "HEAD");
};

/** Creates a repository, and returns its folder and its address. */
async function repository(): Promise<{ upstream: string; url: string; cwd: string; first: string }> {
  const upstream = await cli.folder({});
  git(upstream, "init", "-q", "-b", "main");
  const first = commit(upstream, { a: "1\n", ".gitignore": "out/\n" });
  const cwd = await cli.folder({});
  return { upstream, url: `file://${upstream}`, cwd, first };
}

interface Refreshed {
  before: string | null;
  commit: string;
  files: number;
  commits: number;
}

describe("caisson session refresh", () => {
  const refresh = async (cwd: string, ...args: string[]) =>
    JSON.parse((await ok(["session", "refresh", "--json", ...args], cwd)).text) as Refreshed;

  test("checks out the branch's new tip, and the next run finds it", async () => {
    const { upstream, url, cwd, first } = await repository();
    await work("cat a", ["--repo", url, "--branch", "main", "--session", "tip"], cwd);
    expect(await refresh(cwd, "tip")).toMatchObject({ before: first, commit: first });
    const second = commit(upstream, { a: "2\n", b: "new\n" });
    const { text, stderr } = await ok(["session", "refresh", "tip"], cwd);
    expect(text).toBe(`tip is now at ${second.slice(0, 12)}.\n`);
    expect(stderr).toMatch(/fetching file:[\s\S]*checking out/);
    expect((await ok(["diff", "tip"], cwd)).text).toBe("");
    expect((await ok(["session", "info", "tip"], cwd)).text).toContain(`refreshed from ${first.slice(0, 12)} to ${second.slice(0, 12)}`);
    await work("test $(cat a b | tr -d '\\n') = 2new && git merge-base --is-ancestor HEAD origin/main", ["--session", "tip"], cwd);
    // A step back is as good as a step forward.
    expect(await refresh(cwd, "tip", "--ref", first)).toMatchObject({ before: second, commit: first });
    const { text: shown } = await ok(["session", "info", "tip", "--json"], cwd);
    expect(JSON.parse(shown)).toMatchObject({ commit: first, source: { ref: first } });
    await ok(["session", "rm", "tip"], cwd);
  });

  test.each([
    ["echo changed > a", "1 changed file"],
    ["mkdir out && echo x > out/x", "1 ignored file"],
    ["git -c user.name=a -c user.email=a@x commit -q --allow-empty -m own", "1 commit"],
    ["echo stashed > a && git -c user.name=a -c user.email=a@x stash -q", "commit"],
    ["rm -r .git", "commits that cannot be read"],
  ])("refuses to remove what the session has: %s", async (command, what) => {
    const { upstream, url, cwd, first } = await repository();
    await work(command, ["--repo", url, "--session", "own"], cwd);
    const second = commit(upstream, { b: "new\n" });
    const refused = await cli.run(["session", "refresh", "own"], { cwd });
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining(what)]);
    expect(refused.stderr).toContain("caisson session refresh own --discard");
    expect(JSON.parse((await ok(["session", "info", "own", "--json"], cwd)).text)).toMatchObject({ commit: first });
    expect(await refresh(cwd, "own", "--discard")).toMatchObject({ before: first, commit: second });
    expect((await ok(["diff", "own"], cwd)).text).toBe("");
    await work("cat a b .git/HEAD && ! git stash list | grep . && test ! -e out", ["--session", "own"], cwd);
    await ok(["session", "rm", "own"], cwd);
  });

  test("refuses sessions without a repository, unknown refs and sessions in use", async () => {
    const { url, cwd } = await repository();
    mkdirSync(join(cwd, "x"));
    await work("true", ["--session", "folder"], cwd);
    const onFolder = await cli.run(["session", "refresh", "folder"], { cwd });
    expect([onFolder.code, onFolder.stderr]).toEqual([125, expect.stringContaining(`works on the folder ${cwd}`)]);
    await work("true", ["--repo", url, "--session", "repo"], cwd);
    const unknown = await cli.run(["session", "refresh", "repo", "--ref", "no-such"], { cwd });
    expect([unknown.code, unknown.stderr]).toEqual([125, expect.stringContaining("no-such")]);
    const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command: "sleep 60" } }] }, { say: "Done." }] });
    const going = cli.start(["run", "x", "--session", "repo", "--model", model, "--runtime", "oci", "--json"], { cwd });
    const { data } = await going.event("run.created");
    await going.event("tool.started");
    const busy = await cli.run(["session", "refresh", "repo", "--ref", "main", "--discard"], { cwd });
    expect([busy.code, busy.stderr]).toEqual([125, expect.stringContaining("is in use")]);
    await ok(["stop", data.run], cwd);
    await going.ended;
    await ok(["session", "rm", "--yes", "folder", "repo"], cwd);
  });

  test("is completed by the next run if it is killed", async ({ skip }) => {
    skip(isThroughStation, "the station checks out, and would be killed");
    const { upstream, url, cwd } = await repository();
    for (const point of ["session.refresh:after", "session.refreshed:before"]) {
      await work("true", ["--repo", url, "--session", "killed"], cwd);
      commit(upstream, { a: `${point}\n` });
      const killed = await cli.run(["session", "refresh", "killed"], { cwd, env: { CAISSON_CRASH_AT: point } });
      expect(killed.signal).toBe("SIGKILL");
      await work(`test $(cat a) = ${point}`, ["--session", "killed"], cwd);
      expect((await ok(["diff", "killed"], cwd)).text).toBe("");
      await ok(["session", "rm", "killed"], cwd);
    }
    expect(cli.sandboxes()).toEqual([]);
  });
});
