import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { BestView } from "../../src/contract/best/best-verbs.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const bash = (command: string) => ({ tool: "bash", arguments: { command } });
/** A model that runs one command, slowly enough to be killed in between. */
const doing = (command: string, pauseMs = 0) =>
  cli.script({ turns: [{ calls: [bash(command)] }, { say: "All done now.", pauseMs }], costUsdPerCall: 0.01 });

afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

async function best(argv: readonly string[], cwd: string): Promise<{ code: number | null; view: BestView; stderr: string }> {
  const { code, text, stderr } = await cli.run(["best", ...argv, "--json"], { cwd });
  return { code, stderr, view: JSON.parse(text.trim().split("\n").at(-1) || "null") as BestView };
}

test("the third of four attempts is promoted, though the driver is killed in between", async () => {
  const folder = await cli.folder({ "n.txt": "0\n" });
  const models = await Promise.all([1, 2, 3, 4].map((number) => doing(`sleep 0.3; echo ${number} > n.txt; sleep 1000 &`, 100)));
  const grade = '! pgrep sleep && [ -z "$HTTPS_PROXY" ] && grep -q 3 n.txt';
  const argv = ["best", "count", "-n", "4", "--models", models.join(","), "--grade", grade, "--max-cost", "1", "--network", "example.org"];
  const going = cli.start([...argv, "--runtime", "oci"], { cwd: folder });
  const id = /best_[a-z2-7]+/.exec(await going.output(/best_[a-z2-7]+/))?.[0] ?? "";
  const isUnderWay = async () => (await best(["show", id], folder)).view.attempts.some(({ status }) => status === "graded");
  await expect.poll(isUnderWay).toBe(true);
  going.child.kill("SIGKILL");
  await going.ended;
  const { code, view, stderr } = await best(["resume", id], folder);
  expect(code, stderr).toBe(0);
  expect(view.attempts.map(({ attempt, place, grade: found }) => [attempt, place, found?.isPassed])).toEqual([
    [3, 1, true],
    [expect.any(Number), 2, false],
    [expect.any(Number), 3, false],
    [expect.any(Number), 4, false],
  ]);
  expect(view).toMatchObject({ finish: "completed", costUsd: 0.08, winner: { attempt: 3 } });
  // Each attempt ran once, and the losers stay.
  const { text } = await cli.run(["ps", "--all", "--json", "--label", `best=${id}`], { cwd: folder });
  expect(text.match(/"run_[a-z2-7]{12}","name"|"run":"run_/g)).toHaveLength(4);
  // The winner is the newest run of its folder.
  expect((await cli.run(["diff"], { cwd: folder })).text).toContain("+3");
  expect((await cli.run(["apply"], { cwd: folder })).code).toBe(0);
  expect(readFileSync(join(folder, "n.txt"), "utf8")).toBe("3\n");
  expect((await cli.run(["best", "rm", id], { cwd: folder })).code).toBe(0);
  expect(readdirSync(join(cli.home(), "sessions"))).toHaveLength(4);
});

test("scores rank attempts, and one budget bounds them all", async () => {
  const folder = await cli.folder({});
  const models = await Promise.all([7, 9].map((number) => doing(`echo ${number} > n`)));
  const scored = await best(["count", "-n", "2", "--models", models.join(","), "--grade", "printf 'score: %s\\n' $(cat n)"], folder);
  expect(scored).toMatchObject({ code: 0, view: { winner: { attempt: 2 } } });
  expect(scored.view.attempts.map(({ grade, why }) => [grade?.score, why])).toEqual([
    [9, ""],
    [7, "its score is lower"],
  ]);
  const poor = await best(["count", "-n", "3", "--concurrency", "1", "--models", models.join(","), "--max-cost", "0.025"], folder);
  // Each attempt needs two calls for one cent each, and gets a share for less than that.
  expect(poor.code).toBe(1);
  expect(poor.view.costUsd).toBeLessThan(0.05);
  expect(poor.view).toMatchObject({ finish: "failed", text: "No attempt was done.", winner: null });
});

test("attempts fork a run after a step, with a further message", async () => {
  const folder = await cli.folder({});
  const turns = ["one", "two", "three"].flatMap((word) => [{ calls: [bash(`echo ${word} >> n`)] }, { say: "Done." }]);
  const model = await cli.script({ turns });
  const first = await cli.run(["run", "begin", "--model", model, "--runtime", "oci"], { cwd: folder });
  const run = /run_[a-z2-7]+/.exec(first.text)?.[0] ?? "";
  expect((await cli.run(["run", "go on", `--continue=${run}`], { cwd: folder })).code).toBe(0);
  const { code, view, stderr } = await best([`${run}@2`, "-n", "2", "--send", "again", "--grade", "[ $(wc -l < n) = 2 ]"], folder);
  expect(code, stderr).toBe(0);
  expect(view.attempts.map(({ place, grade }) => [place, grade?.isPassed])).toEqual([
    [1, true],
    [2, true],
  ]);
  expect(view.attempts.every((attempt) => attempt.run !== run)).toBe(true);
  // Forks and the run that they began with all replay.
  for (const each of [run, ...view.attempts.map((attempt) => attempt.run ?? "")]) {
    const replayed = await cli.run(["replay", each, "--live-from", "2", "--json"], { cwd: folder });
    expect([each, replayed.code, replayed.stderr]).toEqual([each, 0, ""]);
    expect(replayed.text).toMatch(/"fork":"run_[a-z2-7]{12}"/);
  }
  expect((await cli.run(["rewind", run, "--to", "2"], { cwd: folder })).code).toBe(0);
  expect((await cli.run(["send", run, "--no-resume", "later"], { cwd: folder })).code).toBe(0);
  expect((await cli.run(["replay", run], { cwd: folder })).text).toContain("came out the same");
});

test("bad input is refused first, and a cancelled best-of stops its attempts", async () => {
  const folder = await cli.folder({});
  for (const [argv, message] of [
    [["x y", "-n", "0"], "attempts"],
    [["x y", "-n", "33"], "attempts"],
    [["x y", "--models", "nonsense"], '"nonsense" is not a model'],
    [["run_aaaaaaaaaaaa@2"], "there is no run run_aaaaaaaaaaaa"],
    [["show", "best_aaaaaaaaaaaa"], "there is no best best_aaaaaaaaaaaa"],
  ] as const) {
    const { code, stderr } = await cli.run(["best", ...argv], { cwd: folder });
    expect([code, stderr]).toEqual([125, expect.stringContaining(message)]);
  }
  const model = await doing("sleep 1000");
  const going = cli.start(["best", "wait for it", "-n", "2", "--model", model], { cwd: folder });
  const id = /best_[a-z2-7]+/.exec(await going.output(/best_[a-z2-7]+/))?.[0] ?? "";
  await expect.poll(() => cli.sandboxes().length).toBe(2);
  expect((await cli.run(["best", "cancel", id], { cwd: folder })).code).toBe(0);
  await going.ended;
  expect((await best(["show", id], folder)).view).toMatchObject({
    finish: "cancelled",
    attempts: [{ finish: "cancelled" }, { finish: "cancelled" }],
  });
});
