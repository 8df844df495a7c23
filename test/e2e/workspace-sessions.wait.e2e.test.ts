import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isThroughStation } from "../support/station-modes.ts";
import { useWorkspaceCli } from "../support/workspace-cli.ts";

const { cli, work, ok } = useWorkspaceCli();

describe("sessions", () => {
  const agent = (cleanup: string) => `---\nname: tidy\nharness: agentic\nworkspace:\n  cleanup: ${cleanup}\n---\nYou work.\n`;

  test("are removed with their run only if the agent file says so", async () => {
    for (const [cleanup, turns, stays] of [
      ["always", [{ calls: [{ tool: "write", arguments: { path: "x", content: "x" } }] }, { say: "Done." }], false],
      ["on_success", [{ say: "Done." }], false],
      ["on_success", [{ fail: { code: "invalid", times: 9 } }], true],
      ["never", [{ say: "Done." }], true],
    ] as const) {
      const folder = await cli.folder({ a: "1\n" });
      mkdirSync(join(folder, "agents"));
      writeFileSync(join(folder, "agents", "tidy.prompt"), agent(cleanup));
      const result = await cli.run(
        ["run", "tidy", "do it", "--model", await cli.script({ turns: [...turns] as never }), "--runtime", "oci"],
        { cwd: folder },
      );
      const id = /run_[a-z0-9]+/.exec(result.text)?.[0] ?? "";
      expect(existsSync(join(cli.home(), "sessions", id)), `${cleanup}: ${result.text}${result.stderr}`).toBe(stays);
      if (!stays) expect(result.text).toMatch(/(was|were) removed/);
    }
  });

  test("go with their run or their last run if --cleanup says so, even after a kill", async ({ skip }) => {
    const folder = await cli.folder({ a: "1\n" });
    const turns = [{ calls: [{ tool: "write", arguments: { path: "x", content: "x" } }] }, { say: "Done." }];
    const model = await cli.script({ turns });
    const sessions = () => (existsSync(join(cli.home(), "sessions")) ? readdirSync(join(cli.home(), "sessions")).sort() : []);
    const others = sessions();
    const run = async (...args: string[]) => {
      const { text, stderr } = await ok(["run", "do it", "--model", model, "--runtime", "oci", ...args], folder);
      return text + stderr;
    };
    await run("--session", "fix");
    expect(JSON.parse((await ok(["session", "info", "fix", "--json"], folder)).text)).toMatchObject({ cleanup: "never" });
    expect(await run("--session", "fix", "--cleanup", "on_success")).toMatch(
      isThroughStation ? /removed/ : /fix was removed, with 1 file that was not applied/,
    );
    expect(await run("--workflow", "release", "--cleanup", "always")).toMatch(/(was|were) removed/);
    const failing = await cli.script({ turns: [{ fail: { code: "invalid", times: 9 } }] });
    await cli.run(["run", "do it", "--model", failing, "--runtime", "oci", "--session", "kept", "--cleanup", "on_success"], {
      cwd: folder,
    });
    expect((await ok(["session", "info", "kept"], folder)).text).toContain("until its last run succeeds");
    await ok(["session", "rm", "kept", "--yes"], folder);
    expect(sessions()).toEqual(others);
    skip(isThroughStation, "the station drives the run, and would be killed");
    for (const point of ["session.cleanup:before#1", "session.removed:before#1", "session.moved:after#1"]) {
      const killed = await cli.run(["run", "do it", "--model", model, "--runtime", "oci", "--cleanup", "always"], {
        cwd: folder,
        env: { CAISSON_CRASH_AT: point },
      });
      expect([point, killed.signal]).toEqual([point, "SIGKILL"]);
      expect(sessions(), point).not.toEqual(others);
      await ok(["ps", "--all"], folder);
      expect(sessions(), point).toEqual(others);
    }
    expect(cli.sandboxes()).toEqual([]);
  });

  test("in use name their user and how to unlock them, and unlock after a kill", async ({ skip }) => {
    skip(isThroughStation, "the station holds the lock, and the run continues when the command is killed");
    const folder = await cli.folder({ a: "1\n" });
    const model = await cli.script({
      turns: [{ calls: [{ tool: "bash", arguments: { command: "echo on; sleep 60" } }] }, { say: "Done." }],
    });
    const going = cli.start(["run", "x", "--session", "busy", "--model", model, "--runtime", "oci", "--json"], { cwd: folder });
    const { data } = await going.event("run.created");
    await going.event("tool.started");
    const second = await cli.run(["run", "y", "--session", "busy", "--model", model], { cwd: folder });
    expect([second.code, second.stderr]).toEqual([
      125,
      expect.stringMatching(new RegExp(`busy is in use by ${data.run}[\\s\\S]*session unlock --force busy`)),
    ]);
    expect((await cli.run(["session", "rm", "busy"], { cwd: folder })).code).toBe(125);
    expect((await ok(["session", "ls"], folder)).text).toContain(`in use by ${data.run}`);
    // During the run, the changes are read through the run's sandbox.
    expect((await ok(["diff", "busy"], folder)).text).toBe("");
    expect((await cli.run(["session", "unlock", "busy"], { cwd: folder })).code).toBe(125);
    going.child.kill("SIGKILL");
    await going.ended;
    expect((await ok(["session", "ls"], folder)).text).toContain("stale lock");
    await ok(["session", "unlock", "busy"], folder);
    await ok(["stop", data.run], folder);
    const dry = JSON.parse((await ok(["session", "cleanup", "--older-than", "0", "--dry-run", "--json"], folder)).text) as {
      removed: string[];
    };
    expect(dry.removed).toContain("busy");
    expect(existsSync(join(cli.home(), "sessions", "busy"))).toBe(true);
    expect((await ok(["session", "cleanup", "--older-than", "1h"], folder)).text).toBe("Nothing to remove.\n");
    await ok(["session", "cleanup", "--older-than", "0", "--yes"], folder);
    expect(readdirSync(join(cli.home(), "sessions"))).toEqual([]);
    expect(cli.sandboxes()).toEqual([]);
  });

  test("of a workflow are shared by its runs, and remain when one of them ends", async () => {
    const folder = await cli.folder({ a: "1\n" });
    mkdirSync(join(folder, "agents"));
    writeFileSync(join(folder, "agents", "tidy.prompt"), agent("always"));
    const step = async (command: string) => {
      const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] });
      return await ok(["run", "tidy", "do it", "--workflow", "release", "--model", model, "--runtime", "oci"], folder);
    };
    await step("echo one > made");
    expect((await step("cat made && echo two >> made")).text).toContain("one");
    const [session] = JSON.parse((await ok(["session", "ls", "--json"], folder)).text) as { id: string; scope: string }[];
    expect(session).toMatchObject({ id: "workflow-release", scope: "workflow" });
    expect((await ok(["diff", "workflow-release"], folder)).text).toContain("+one\n+two\n");
    await ok(["session", "rm", "workflow-release", "--yes"], folder);
    const misplaced = await cli.run(["run", "x", "--branch", "b", "--model", await cli.script({ turns: [] })], { cwd: folder });
    expect([misplaced.code, misplaced.stderr]).toEqual([125, expect.stringContaining("--branch cannot be used with a folder")]);
  });

  test("can be read by several commands at once", async () => {
    const folder = await cli.folder({ a: "1\n" });
    const { run } = await work("echo more >> a", [], folder);
    const all = await Promise.all([1, 2, 3].map(() => cli.run(["diff", run], { cwd: folder })));
    for (const each of all) expect([each.code, each.text.includes("+more")], each.stderr).toEqual([0, true]);
    const refusal = await cli.run(["discard"], { cwd: folder });
    expect([refusal.code, refusal.stderr]).toEqual([
      125,
      expect.stringMatching(new RegExp(`files? of ${run} w.* not applied.*\\nhint: .*--yes`)),
    ]);
    await ok(["discard", "--yes"], folder);
    expect((await cli.run(["diff", run], { cwd: folder })).code).toBe(125);
  });

  test("with a damaged record can be removed by force", async () => {
    const folder = await cli.folder({ a: "1\n" });
    await work("echo x > x", ["--session", "hurt"], folder);
    writeFileSync(join(cli.home(), "sessions", "hurt", "session.json"), "{");
    expect((await cli.run(["session", "rm", "hurt"], { cwd: folder })).stderr).toContain("--force hurt");
    await ok(["session", "rm", "--force", "hurt"], folder);
    expect(existsSync(join(cli.home(), "sessions", "hurt"))).toBe(false);
  });
});
