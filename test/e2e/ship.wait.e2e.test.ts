import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ShipDetails, ShipView } from "../../src/contract/ship/ship-verbs.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { makeForgeRepository } from "../support/forge-repository.ts";
import { type ForgeServer, startForgeServer } from "../support/forge-server.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const TOKEN = "canary-token-Zx81kQpW0vT5yLr7";
const files = { "add.sh": "echo $(($1 - $2))\n", "test.sh": '[ "$(sh add.sh 2 3)" = 5 ]\n' };
const cli = useRunsCli();

/** Runs an agent that mends `add.sh` and runs the tests. Resolves with the run's id. */
async function fixIt(argv: readonly string[], cwd: string, { tests = "sh test.sh" } = {}): Promise<string> {
  const edit = { tool: "bash", arguments: { command: "echo 'echo $(($1 + $2))' > add.sh" } };
  const model = await cli.script({
    about: "a scripted model that mends add.sh",
    turns: [{ calls: [edit] }, { calls: [{ tool: "bash", arguments: { command: tests } }] }, { say: "Done." }],
  });
  const result = await cli.run(["run", "Mend the addition", "--model", model, "--runtime", "oci", ...argv], { cwd });
  expect(result.code, result.stderr + result.text).toBe(0);
  return /run_[a-z2-7]{12}/.exec(result.text)?.[0] ?? "";
}

async function ok(argv: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const { code, stderr, text } = await cli.run(argv, { env });
  expect(code, stderr + text).toBe(0);
  return text;
}
const json = async <Answer>(argv: readonly string[]) => JSON.parse(await ok([...argv, "--json"])) as Answer;
async function refused(argv: readonly string[]): Promise<string> {
  const { code, stderr, text } = await cli.run(argv);
  expect(code, stderr + text).not.toBe(0);
  return stderr;
}

describe("a forge", () => {
  let forge: ForgeServer;
  beforeAll(async () => {
    forge = await startForgeServer({ kind: "gitea", folder: await cli.folder(), token: TOKEN, files });
    const { port } = new URL(forge.url);
    // Redirects a file, as a pipe would, since the command reads standard input.
    const value = join(await cli.folder({ token: TOKEN }), "token");
    execFileSync("sh", ["-c", `${cli.commandLine()} secret set 'GITEA_TOKEN@127.0.0.1;ports=${port}' < ${value}`], {
      cwd: cli.work(),
      env: cli.environment({}),
      stdio: "pipe",
    });
  });
  afterAll(async () => await forge[Symbol.asyncDispose]());
  const to = () => ["--to", forge.remote, "--forge", "gitea", "--allow-private", "--kind", "fix", "--ticket", "#12"];

  test("gets a pull request, which merges on request, and the token stays secret", async () => {
    const run = await fixIt(["--repo", forge.remote], cli.work());
    const opened = await json<ShipView>(["ship", run, ...to()]);
    expect(opened).toMatchObject({
      status: "open",
      branch: "fix/12-mend-the-addition",
      into: "main",
      run,
      tests: { kind: "ran", command: "sh test.sh", exitCode: 0 },
    });
    expect(forge.repository.branches()).toEqual(["fix/12-mend-the-addition", "main"]);
    expect(forge.pulls.all()).toMatchObject([{ title: "Mend the addition", state: "open", branch: opened.branch }]);
    // The same command again finds the same ship.
    expect((await json<ShipView>(["ship", run, ...to()])).id).toBe(opened.id);
    expect(await ok(["ship", "ls"])).toContain(opened.id);
    expect(await ok(["ship", "merge", opened.id])).toContain("was merged into main");
    expect(forge.repository.branches()).toEqual(["main"]);
    expect(forge.repository.file("main", "add.sh")).toBe("echo $(($1 + $2))");
    expect(forge.pulls.all()).toHaveLength(1);
    const details = await json<ShipDetails>(["ship", "show", opened.id.slice(0, 10)]);
    expect(details).toMatchObject({ status: "merged", merged: forge.repository.branch("main"), error: null });
    expect(await refused(["ship", "merge", opened.id])).toContain("has ended");
    expect(filesWith(cli.home(), TOKEN).map((file) => file.replace(/.*\//, ""))).toEqual(["GITEA_TOKEN.value"]);
    expect(forge.requests().every(({ path }) => !path.includes(TOKEN))).toBe(true);
  });

  // Only without a station: otherwise the test would have to kill the station.
  test.runIf(stationMode === "none")("gets one request and one merge even if the process is killed several times", async () => {
    const run = await fixIt(["--repo", forge.remote], cli.work(), { tests: "sh test.sh && echo fine > fine.txt" });
    const before = forge.pulls.all().length;
    const count = Number(forge.repository.git("rev-list", "--count", "main"));
    let ship = "";
    for (const at of ["ship.committed:after", "ship.effect:after", "ship.merged:before"]) {
      const argv = ship === "" ? ["ship", run, ...to(), "--merge"] : ["ship", "resume", ship];
      const { signal } = await cli.run(argv, { env: { CAISSON_CRASH_AT: at } });
      expect(signal).toBe("SIGKILL");
      ship = (await json<ShipView[]>(["ship", "ls"]))[0]?.id ?? "";
    }
    expect(await ok(["ship", "resume", ship])).toContain("was merged into main");
    expect(forge.pulls.all()).toHaveLength(before + 1);
    expect(Number(forge.repository.git("rev-list", "--count", "main"))).toBe(count + 2);
    expect(forge.repository.branches()).toEqual(["main"]);
    expect(forge.repository.file("main", "fine.txt")).toBe("fine");
  });

  test("gets nothing new from a paused ship until it is resumed", async () => {
    const run = await fixIt(["--repo", forge.remote], cli.work(), { tests: "sh test.sh && echo paused > paused.txt" });
    const before = { pulls: forge.pulls.all().length, commits: commitsOn("main") };
    const [arrived, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    forge.faults.add(/^POST .*\/pulls$/, { kind: "held", arrived: arrived.resolve, until: release.promise });
    const shipping = cli.start(["ship", run, ...to(), "--merge", "--json"]);
    await Promise.race([arrived.promise, shipping.ended]);
    const [{ id }] = (await json<ShipView[]>(["ship", "ls"])) as [ShipView];
    // The ship is paused while it opens the pull request. The request is finished, and the merge does not start.
    expect(await json<ShipView>(["ship", "pause", id])).toMatchObject({ id, status: "paused" });
    const result = await shipping.ended;
    expect([result.code, result.stderr, JSON.parse(result.text)]).toEqual([0, "", expect.objectContaining({ id, status: "paused" })]);
    release.resolve();
    await expect.poll(() => forge.pulls.all().length, { timeout: 60_000 }).toBe(before.pulls + 1);
    // Without a station, no process remains to record that the request is open.
    if (stationMode !== "none")
      await expect.poll(async () => (await json<ShipDetails>(["ship", "show", id])).request, { timeout: 60_000 }).not.toBeNull();
    forge.requests();
    const paused = await json<ShipDetails>(["ship", "show", id]);
    expect(paused).toMatchObject({ status: "paused", merged: null });
    // Pausing the ship again, or repeating the command, has no effect.
    await ok(["ship", "pause", id]);
    expect(await json<ShipView>(["ship", "merge", id])).toMatchObject({ id, status: "paused" });
    expect(await json<ShipView>(["ship", run, ...to()])).toMatchObject({ id, status: "paused" });
    expect(await refused(["ship", "rm", id])).toMatch(new RegExp(`the ship ${id} has not ended[\\s\\S]*caisson ship cancel ${id}`));
    expect(await json<ShipDetails>(["ship", "show", id])).toEqual(paused);
    expect(forge.requests()).toEqual([]);
    expect(commitsOn("main")).toBe(before.commits);

    expect(await ok(["ship", "resume", id])).toContain("was merged into main");
    expect(forge.pulls.all()).toHaveLength(before.pulls + 1);
    expect(commitsOn("main")).toBe(before.commits + 2);
    expect(forge.repository.branches()).toEqual(["main"]);
    expect(await refused(["ship", "pause", id])).toContain("has ended");
    await isForgotten(id);
    // The merged files belong to the remote.
    expect(forge.repository.file("main", "paused.txt")).toBe("paused");
  });

  test("keeps the branch of a paused ship that is cancelled, with no local remains", async () => {
    const run = await fixIt(["--repo", forge.remote], cli.work(), { tests: "sh test.sh && echo not > cancelled.txt" });
    const { id, branch } = await json<ShipView>(["ship", run, ...to()]);
    await ok(["ship", "pause", id]);
    expect(await ok(["ship", "cancel", id])).toContain(`${id} was cancelled`);
    expect(forge.pulls.all().at(-1)).toMatchObject({ branch, state: "closed", mergedAt: null });
    await isForgotten(id);
    expect(forge.repository.branches()).toEqual([branch, "main"]);
    forge.repository.git("branch", "--delete", "--force", branch ?? "");
  });

  const commitsOn = (branch: string) => Number(forge.repository.git("rev-list", "--count", branch));

  /** Removes a finished ship, and checks that nothing remains here and that a second removal fails. */
  async function isForgotten(id: string): Promise<void> {
    expect(await ok(["ship", "rm", id])).toBe(`${id}\n`);
    expect((await json<ShipView[]>(["ship", "ls", "--all"])).map((ship) => ship.id)).not.toContain(id);
    expect(await refused(["ship", "show", id])).toContain(`there is no ship ${id}`);
    expect(await refused(["ship", "rm", id])).toContain(`there is no ship ${id}`);
    expect(readdirSync(join(cli.home(), "ships"))).toEqual([]);
    await using log = createSqliteLog({ path: join(cli.home(), "log.db") });
    expect(await log.streams({ prefix: `ship/${id}` })).toEqual([]);
  }

  test("gets nothing from a run without passing tests, or for an SSH address", async () => {
    forge.requests();
    const [untested, failed] = [
      await fixIt(["--repo", forge.remote], cli.work(), { tests: "ls" }),
      await fixIt(["--repo", forge.remote], cli.work(), { tests: "sh test.sh; false" }),
    ];
    forge.requests();
    expect(await refused(["ship", untested, ...to()])).toMatch(/no command that ran tests[\s\S]*--without-tests/);
    expect(await refused(["ship", failed, ...to()])).toMatch(
      /`sh test.sh; false` ran, but its exit code is false's[\s\S]*--tests 'sh test.sh; false'/,
    );
    expect(await refused(["ship", failed, ...to(), "--tests", "sh test.sh; false"])).toMatch(/the tests failed/);
    expect(await refused(["ship", untested, "--to", "git@git.example.com:team/project.git"])).toContain(
      "--to https://git.example.com/team/project.git",
    );
    expect(await refused(["ship", untested, "--to", "https://git.example.com/team/project"])).toContain("--forge");
    expect(forge.requests()).toEqual([]);
    expect(await json<ShipView[]>(["ship", "ls"])).toEqual([]);
  });
});

describe.runIf(stationMode !== "http")("a bare repository on this machine", () => {
  test("gets a folder run's changes as a merge request, and runs no hook to merge", async () => {
    const folder = await cli.folder();
    const bare = makeForgeRepository(folder, "project", files);
    const marker = join(folder, "ran");
    execFileSync("sh", [
      "-c",
      `for hook in pre-receive update post-receive reference-transaction; do printf '#!/bin/sh\\ntouch ${marker}\\n' > ${bare.path}/hooks/$hook; chmod +x ${bare.path}/hooks/$hook; done`,
    ]);
    const clone = join(folder, "clone");
    execFileSync("git", ["clone", "--quiet", bare.path, clone], { stdio: "pipe" });
    const run = await fixIt([], clone, { tests: "ls" });
    const ship = await json<ShipView>(["ship", run, "--to", bare.path, "--without-tests", "the folder's own tests come later"]);
    expect(ship).toMatchObject({
      status: "open",
      branch: "feature/mend-the-addition",
      tests: { kind: "waived", reason: "the folder's own tests come later" },
    });
    expect(bare.git("show", `${ship.request?.id}:merge-request.json`)).toContain('"title": "Mend the addition"');
    expect(await ok(["ship", "merge", ship.id])).toContain("was merged into main");
    expect(bare.branches()).toEqual(["main"]);
    expect(bare.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
    expect(bare.file("main", "add.sh")).toBe("echo $(($1 + $2))");
    bare.git("fsck", "--full", "--strict");
    expect(readdirSync(folder)).not.toContain("ran");
    expect(readdirSync(join(cli.home(), "ships"))).toEqual([]);
  });
});

/**
 * Returns the files in a state folder that contain this text. Skips templates, which are copies of the machine's files.
 */
function filesWith(home: string, text: string): string[] {
  const entries = readdirSync(home, { withFileTypes: true }).filter(({ name }) => name !== "templates");
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(home, name));
  return [
    ...entries.filter((entry) => entry.isFile()),
    ...below.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())),
  ]
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text));
}
