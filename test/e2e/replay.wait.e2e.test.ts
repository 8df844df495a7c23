import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { ReplayEvent, ReplayResult } from "../../src/contract/run/run-replay.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const bash = (command: string) => ({ tool: "bash", arguments: { command } });
const sessions = () => readdirSync(join(cli.home(), "sessions"));

afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

async function ended(turns: readonly object[], cwd: string, ...options: string[]): Promise<string> {
  const model = await cli.script({ turns: [...turns, { say: "Done." }] });
  const { code, text, stderr } = await cli.run(["run", "do it", "--model", model, "--runtime", "oci", ...options], { cwd });
  expect(code, stderr + text).toBe(0);
  return /run_[a-z0-9]+/.exec(text)?.[0] ?? "";
}

async function replay(run: string, ...options: string[]): Promise<{ code: number | null; events: ReplayEvent[]; result: ReplayResult }> {
  const { code, text, stderr } = await cli.run(["replay", run, "--json", ...options]);
  const events = text
    .trim()
    .split("\n")
    .map((each) => JSON.parse(each || "null") as ReplayEvent);
  const last = events.at(-1);
  expect(last, stderr).toHaveProperty("result");
  return { code, events, result: (last as { result: ReplayResult }).result };
}

test("a run replays from its log, and its tools on the files that it began with", async () => {
  const folder = await cli.folder({ "a.txt": "one\n", "AGENTS.md": "Be brief.\n" });
  const run = await ended(
    [
      { calls: [bash("cat a.txt; echo two >> a.txt; mkdir d; ls")] },
      { calls: [bash("cat a.txt"), { tool: "write", arguments: { path: "b.txt", content: "x\n" } }] },
      { calls: [bash("sleep 0.01; date +%s%N; cat b.txt")] },
    ],
    folder,
  );
  const recorded = await replay(run);
  expect(recorded).toMatchObject({ code: 0, result: { run, isSame: true, steps: 4, notCompared: [] } });
  const live = await replay(run, "--tools", "live");
  expect(live).toMatchObject({ code: 1, result: { isSame: false, difference: null, drift: [{ step: 3, call: "t3.1", name: "bash" }] } });
  expect(live.result.drift[0]?.diff).toMatch(/^-\d+\n\+\d+\n x/);
  const ignoring = await replay(run, "--tools", "live", "--ignore", "^[0-9]{15,}$", "--keep");
  expect(ignoring).toMatchObject({ code: 0, result: { isSame: true, drift: [] } });
  // The fork's files are those of the run; the run's own are untouched.
  const of = async (name: string) => (await cli.run(["diff", name], { cwd: folder })).text;
  expect(await of(ignoring.result.session ?? "")).toBe(await of(run));
  expect(sessions()).toHaveLength(2);
});

test("a replay reaches neither the network nor the secrets of the run", async () => {
  const folder = await cli.folder({});
  const secret = join(await cli.folder({ token: "a-token-of-the-test" }), "token");
  const turns = [{ calls: [bash('[ -n "$HTTPS_PROXY" ] && echo proxied; [ -n "$TOKEN" ] && echo secret; ls /sys/class/net')] }];
  const run = await ended(turns, folder, "--network", "example.org", "--secret", `TOKEN@example.org;from=file:${secret}`);
  const { code, result } = await replay(run, "--tools", "live");
  expect(code).toBe(1);
  expect(result.drift[0]?.diff).toMatch(/^-proxied\n-secret\n lo/);
});

test("a replay that is killed leaves nothing behind", async () => {
  const folder = await cli.folder({});
  const run = await ended([{ calls: [bash("echo one; [ -e slow ] && sleep 100; echo two")] }], folder);
  const before = sessions();
  await (await import("node:fs/promises")).writeFile(join(folder, "slow"), "");
  const going = cli.start(["replay", run, "--tools", "live"]);
  await expect.poll(() => cli.sandboxes().length).toBe(1);
  going.child.kill("SIGKILL");
  await going.ended;
  expect((await cli.run(["ps", "--all"])).code).toBe(0);
  await cli.run(["session", "ls"]);
  await expect.poll(sessions).toEqual(before);
});

test("a continued run replays as a whole; what cannot run again is refused by name", async () => {
  const folder = await cli.folder({});
  const run = await ended([{ calls: [bash("echo one")] }], folder);
  const continued = await cli.run(["run", "again", `--continue=${run}`], { cwd: folder });
  expect(continued.code).toBe(1);
  expect(await replay(run)).toMatchObject({ code: 0, result: { isSame: true } });
  expect(await replay(run, "--tools", "live")).toMatchObject({ code: 0, result: { isSame: true } });
  const missing = await cli.run(["replay", "run_aaaaaaaaaaaa"]);
  expect([missing.code, missing.stderr]).toEqual([125, expect.stringContaining("run_aaaaaaaaaaaa")]);
  const badWord = await cli.run(["replay", run, "--tools", "maybe"]);
  expect([badWord.code, badWord.stderr]).toEqual([125, expect.stringContaining("tools must be one of recorded, live")]);
});
