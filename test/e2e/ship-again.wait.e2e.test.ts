import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { ShipDetails, ShipView } from "../../src/contract/ship/ship-verbs.ts";
import { type ForgeRepository, makeForgeRepository } from "../support/forge-repository.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const files = { "add.sh": "echo $(($1 - $2))\n", "test.sh": '[ "$(sh add.sh 2 3)" = 5 ]\n' };
const cli = useRunsCli();

/** Runs these commands in a clone, and resolves with the run's id. */
async function runIn(clone: string, commands: readonly string[]): Promise<string> {
  const model = await cli.script({
    about: "a scripted model that mends add.sh",
    turns: [...commands.map((command) => ({ calls: [{ tool: "bash", arguments: { command } }] })), { say: "Done." }],
  });
  const result = await cli.run(["run", "Mend the addition", "--model", model, "--runtime", "oci"], { cwd: clone });
  expect(result.code, result.stderr + result.text).toBe(0);
  return /run_[a-z2-7]{12}/.exec(result.text)?.[0] ?? "";
}

async function ok(argv: readonly string[]): Promise<string> {
  const { code, stderr, text } = await cli.run(argv);
  expect(code, stderr + text).toBe(0);
  return text;
}
const json = async <Answer>(argv: readonly string[]) => JSON.parse(await ok([...argv, "--json"])) as Answer;
async function refused(argv: readonly string[]): Promise<string> {
  const { code, stderr, text } = await cli.run(argv);
  expect(code, stderr + text).not.toBe(0);
  return stderr;
}
/** Returns the command in a hint that contains this part, split into words as printed. */
const hinted = (stderr: string, part: string): string[] => {
  const commands = [...stderr.matchAll(/caisson (ship(?: cancel)? ship_[a-z2-7]{12}(?: --[a-z-]+)*)/g)].map(([, command]) => command);
  return (commands.find((command) => command?.includes(part)) ?? stderr).split(" ");
};

const mend = "echo 'echo $(($1 + $2))' > add.sh";
const untested = ["--without-tests", "its tests are elsewhere"];

describe.runIf(stationMode !== "http")("a second ship of the same work", () => {
  let bare: ForgeRepository;
  let clone = "";
  let run = "";
  beforeAll(async () => {
    const folder = await cli.folder();
    bare = makeForgeRepository(folder, "project", files);
    clone = join(folder, "clone");
    execFileSync("git", ["clone", "--quiet", bare.path, clone], { stdio: "pipe" });
    bare.git("branch", "next", "main");
    // `git status` rewrites the index. The index belongs to git, so its change must not block the ship.
    run = await runIn(clone, [
      mend,
      "git -c safe.directory=/workspace status",
      "mkfifo pipe",
      "git init --quiet nested && echo n > nested/n.txt",
    ]);
  });
  const to = () => ["--to", bare.path, ...untested];

  test("leaves git's own files out, and continues a stuck ship as the hint says", async () => {
    const stuck = await refused(["ship", run, ...to()]);
    expect(stuck).toContain('"pipe"');
    expect(stuck).not.toContain('".git');
    const [{ id }] = (await json<ShipView[]>(["ship", "ls"])) as [ShipView];
    // The same command with the option and the printed command refer to the same ship.
    const opened = JSON.parse(await ok([...hinted(stuck, "--leave-out"), "--json"])) as ShipView;
    expect(opened).toMatchObject({ id, status: "open", into: "main", files: 2 });
    expect(bare.git("ls-tree", "-r", "--name-only", opened.branch ?? "").split("\n")).toEqual(["add.sh", "nested/n.txt", "test.sh"]);
  });

  test("is refused options that can no longer change, with commands that work", async () => {
    const again = await refused(["ship", run, ...to(), "--into", "next"]);
    expect(again).toContain("its pull request is open");
    expect(await refused(["ship", run, ...to(), "--title", "Another title"])).toContain("its branch is pushed");
    expect(await json<ShipView>(hinted(again, "ship ship_"))).toMatchObject({ status: "open", into: "main" });
    expect(await ok(hinted(again, "cancel"))).toContain("was cancelled");
    const other = await json<ShipView>(["ship", run, ...to(), "--leave-out", "--into", "next", "--title", "Another title"]);
    expect(other).toMatchObject({ status: "open", into: "next", title: "Another title", branch: "feature/another-title" });
    expect(await json<ShipView>(["ship", run, ...to(), "--merge"])).toMatchObject({ id: other.id, status: "merged" });
    expect(bare.file("next", "add.sh")).toBe("echo $(($1 + $2))");
    expect(bare.file("main", "add.sh")).toBe("echo $(($1 - $2))");
  });

  test("accepts every option while nothing is pushed", async () => {
    expect(await refused(["ship", run, ...to(), "--leave-out", "--into", "nowhere"])).toContain("has no branch nowhere");
    const [{ id }] = (await json<ShipView[]>(["ship", "ls"])) as [ShipView];
    const more = ["--into", "main", "--title", "Add, not subtract", "--body", "As asked", "--kind", "fix", "--ticket", "#7"];
    const opened = await json<ShipView>(["ship", run, ...to(), ...more]);
    expect(opened).toMatchObject({ id, status: "open", into: "main", title: "Add, not subtract", branch: "fix/7-add-not-subtract" });
    expect(bare.git("log", "-1", "--format=%B", opened.branch ?? "")).toMatch(/^Add, not subtract\n\nAs asked\n/);
    expect((await json<ShipDetails>(["ship", "show", id])).history.filter(({ type }) => type === "ship.options_changed")).toHaveLength(1);
    await ok(["ship", "cancel", id]);
  });

  test("can be cancelled by one command when it is stuck", async () => {
    await refused(["ship", run, ...to()]);
    const [{ id, status }] = (await json<ShipView[]>(["ship", "ls"])) as [ShipView];
    expect(status).toBe("blocked");
    expect(await ok(["ship", "cancel", id])).toContain(`${id} was cancelled`);
    expect(await json<ShipView[]>(["ship", "ls"])).toEqual([]);
    expect(readdirSync(join(cli.home(), "ships"))).toEqual([]);
  });
});

describe.runIf(stationMode !== "http")("a ship from a shallow clone", () => {
  test("stops before the push, and finishes after the hint is followed", async () => {
    const folder = await cli.folder();
    const bare = makeForgeRepository(folder, "project", files);
    bare.commit("main", { "c.txt": "c\n" });
    const clone = join(folder, "shallow clone");
    execFileSync("git", ["clone", "--quiet", "--depth", "1", `file://${bare.path}`, clone], { stdio: "pipe" });
    const run = await runIn(clone, [mend]);
    const stuck = await refused(["ship", run, "--to", bare.path, "--merge", ...untested]);
    expect(stuck).toContain("is a shallow clone");
    expect(bare.branches()).toEqual(["main"]);
    const hint = /then try again: (.*)$/m.exec(stuck)?.[1] ?? "";
    const [fetch = "", resume = ""] = hint.split(" && ");
    execFileSync("sh", ["-c", fetch], { stdio: "pipe" });
    expect(await ok(resume.split(" ").slice(1))).toContain("was merged into main");
    expect(bare.file("main", "add.sh")).toBe("echo $(($1 + $2))");
  });
});
