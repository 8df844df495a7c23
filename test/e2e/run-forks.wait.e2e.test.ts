import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";
import { isThroughStation } from "../support/station-modes.ts";

const cli = useRunsCli();

interface Place {
  cwd: string;
  home?: string;
}

const ok = async (argv: readonly string[], place: Place) => {
  const result = await cli.run(argv, place);
  expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
  return result;
};
const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
/** Two turns of two steps. */
const turns = [
  bash("echo one > a.txt; ln -s a.txt link; mkdir d; echo x > d/x"),
  { say: "One." },
  bash("echo two > a.txt; rm link; rm -r d"),
  { say: "Two." },
];

interface Row {
  run: string;
  name: string | null;
  status: string;
  steps: number;
  session: string;
}
const list = async (place: Place): Promise<Row[]> => JSON.parse((await ok(["ps", "--all", "--json"], place)).text);
const changes = async (run: string, place: Place) => (await ok(["diff", run, "--no-pager"], place)).text;

/** Creates a run with one turn, and returns its id. */
async function oneTurn(place: Place): Promise<string> {
  const model = await cli.script({ turns });
  const { events } = await ok(["run", "first", "--json", "--model", model, "--runtime", "oci"], place);
  const [created] = events;
  return created?.type === "run.created" ? created.data.run : "";
}

test("forks continue the conversation on their own files, and outlive their parent", async () => {
  const place = { cwd: await cli.folder({ "a.txt": "zero\n" }) };
  const run = await oneTurn(place);
  const waiting = await ok(["fork", run, "--name", "waits"], place);
  expect([waiting.text, waiting.stderr]).toEqual([
    expect.stringContaining(`${run}@2  waits for a message`),
    expect.stringContaining("caisson send"),
  ]);
  const followed = await ok(["fork", `${run}@2`, "--send", "second"], place);
  expect(followed.text).toMatch(/a fork of run_\w+ after step 2[\s\S]*second[\s\S]*done after 2 steps \(4 in all\)/);
  const { runs } = JSON.parse((await ok(["fork", run, "-n", "2", "--send", "second", "--name", "try", "--json"], place)).text);
  expect(runs).toMatchObject([{ name: "try-1", from: { run, step: 2 }, isWaiting: false }, { name: "try-2" }]);
  for (const name of ["try-1", "try-2"]) await ok(["attach", name], place);
  expect(await changes("try-2", place)).toContain("+two");
  expect(await changes(run, place)).toContain("+one");
  await ok(["session", "rm", "--yes", run], place);
  await ok(["send", "waits", "second"], place);
  await ok(["attach", "waits"], place);
  expect(await changes("waits", place)).toBe(await changes("try-1", place));
  const refused = await cli.run(["fork", `${run}@9`], place);
  expect([refused.code, refused.stderr]).toEqual([125, expect.stringMatching(/has no step 9\nhint: It has taken 2/)]);
});

test("a rewind restores conversation and files, and preserves the rest", async () => {
  const place = { cwd: await cli.folder({ "a.txt": "zero\n" }) };
  const run = await oneTurn(place);
  const before = await changes(run, place);
  await ok(["run", `--continue=${run}`, "second"], place);
  const after = await changes(run, place);
  const { text } = await ok(["rewind", run, "--to", "2"], place);
  expect(text).toMatch(/is again as it was after step 2\. run_\w+ has what came after\.\nFiles restored:\n {2}a\.txt/);
  const tail = /(run_\w+) has/.exec(text)?.[1] ?? "";
  expect([await changes(run, place), await changes(tail, place)]).toEqual([before, after]);
  expect(await list(place)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ run, status: "paused: rewound", steps: 2 }),
      expect.objectContaining({ run: tail, status: "done", steps: 4, forked: { run, step: 4 } }),
    ]),
  );
  // The script answers by the number of calls, so the same step follows again.
  await ok(["run", `--continue=${run}`, "second"], place);
  expect(await changes(run, place)).toBe(after);
  await ok(["rewind", run, "--to", "0"], place);
  expect(await changes(run, place)).toBe("");
  const forked = await ok(["fork", tail, "--send", "third"], place).catch((error: Error) => error);
  // The script has no fifth answer: the fork begins, and ends with that error.
  expect(String(forked)).toContain("so call 5 has none");
});

const RECOVERED = { status: "paused: rewound", steps: 2 };

/** Kills the process of a fork or a rewind at each of its writes. The next command must find nothing half done. */
test("kill -9 at any write of a fork leaves a whole fork or none", { timeout: 400_000 }, async ({ skip }) => {
  skip(isThroughStation, "the process that does the work is killed");
  for (const point of ["session.announced:after", "session.created:after", "run.forked:before", "run.forked:after"]) {
    const cwd = await cli.folder({ "a.txt": "zero\n" });
    const place = { cwd, home: join(cwd, "..", `home-fork-${point.replaceAll(/[^a-z]/g, "-")}`) };
    const run = await oneTurn(place);
    const crashing = await cli.run(["fork", run], { ...place, env: { CAISSON_CRASH_AT: point } });
    expect(crashing.signal, `${point}: ${crashing.stderr}`).toBe("SIGKILL");
    const rows = await list(place);
    const forks = rows.filter((row) => row.run !== run);
    expect(forks.length, point).toBe(point === "run.forked:after" ? 1 : 0);
    expect(sessionsIn(place.home), point).toEqual(rows.map(({ session }) => session).sort());
    for (const fork of forks) {
      await ok(["send", fork.run, "second"], place);
      await ok(["attach", fork.run], place);
    }
    await ok(["fork", run], place);
    expect((await list(place)).length, point).toBe(rows.length + 1);
    expect(JSON.parse((await ok(["logs", "--check", "--json"], place)).text), point).toEqual([]);
    expect(cli.sandboxes(place.home), point).toEqual([]);
  }
});

test("kill -9 at any write of a rewind is made good by the next command", { timeout: 400_000 }, async ({ skip }) => {
  skip(isThroughStation, "the process that does the work is killed");
  const points = [
    "run.rewind_started:before",
    "run.rewind_started:after",
    "session.announced:after",
    "session.created:after",
    "run.forked:before",
    "run.forked:after",
    "rewind.restored:after",
    "run.rewound:before",
    "run.rewound:after",
  ];
  for (const point of points) {
    const cwd = await cli.folder({ "a.txt": "zero\n" });
    const place = { cwd, home: join(cwd, "..", `home-rewind-${point.replaceAll(/[^a-z]/g, "-")}`) };
    const run = await oneTurn(place);
    const before = await changes(run, place);
    await ok(["run", `--continue=${run}`, "second"], place);
    const after = await changes(run, place);
    const crashing = await cli.run(["rewind", run, "--to", "2"], { ...place, env: { CAISSON_CRASH_AT: point } });
    expect(crashing.signal, `${point}: ${crashing.stderr}`).toBe("SIGKILL");
    const rows = await list(place);
    const isUnchanged = point === "run.rewind_started:before";
    expect(rows.length, point).toBe(isUnchanged ? 1 : 2);
    expect(
      rows.find((row) => row.run === run),
      point,
    ).toMatchObject(isUnchanged ? { status: "done", steps: 4 } : RECOVERED);
    expect(await changes(run, place), point).toBe(isUnchanged ? after : before);
    for (const tail of rows.filter((row) => row.run !== run)) expect(await changes(tail.run, place), point).toBe(after);
    expect(sessionsIn(place.home), point).toEqual(rows.map(({ session }) => session).sort());
    await ok(["run", `--continue=${run}`, "again"], place).catch(() => null);
    expect(JSON.parse((await ok(["logs", "--check", "--json"], place)).text), point).toEqual([]);
    expect(cli.sandboxes(place.home), point).toEqual([]);
  }
});

/** Returns everything in the sessions folder, notes and remains included. */
function sessionsIn(home: string): string[] {
  const folder = join(home, "sessions");
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  for (const name of names.filter((each) => each.startsWith("run_"))) readFileSync(join(folder, name, "session.json"));
  return names;
}
