import { describe, expect, test } from "vitest";
import { cost, drift, errors, findingsOf, noProgress, repetition } from "./detectors.ts";
import { duplicateOf } from "./duplicates.ts";
import { repeated, type ScriptedCall, settingsOf, trajectoryAfter } from "./testing-guardian.ts";
import type { Trajectory } from "./trajectory.ts";

const settings = settingsOf();
const read = (
  n: number,
  text = `line ${n} of something that was not seen before: ${"abcdefghij"[n % 10]}${"klmnopqrst"[(n / 10) | 0]}`,
): ScriptedCall => ({
  tool: "read",
  args: { path: `src/${n}.ts` },
  text,
});
const edit = (n: number): ScriptedCall => ({
  tool: "edit",
  args: { path: "src/parser.ts", old: `a${n}`, new: `b${n}` },
  text: "ok",
  changes: "src/parser.ts",
});
const test_ = (failed: number): ScriptedCall => ({
  args: { command: "npm test" },
  text: `Tests ${failed} failed, ${20 - failed} passed`,
  outcome: failed > 0 ? "error" : "ok",
  details: { exitCode: failed > 0 ? 1 : 0 },
});
const sameTest: ScriptedCall = { args: { command: "npm test" }, text: "Tests 4 failed", outcome: "error" };

describe("no progress", () => {
  test("is reported for many steps that read the same, with the calls as evidence", () => {
    const found = noProgress(trajectoryAfter(repeated(20, (n) => [read(n % 3, `the same ${n % 3 === 0 ? "a" : "b"}`)])), settings);
    expect(found).toMatchObject({ detector: "no_progress", text: expect.stringContaining("20 steps without") });
    expect(found?.events.length).toBe(20);
    expect(found?.severity).toBeGreaterThan(0.35);
  });
  test.each<[string, ScriptedCall[][]]>([
    ["reading something new with every step", repeated(40, (n) => [read(n)])],
    ["a changed file now and then", repeated(40, (n) => (n % 10 === 9 ? [edit(n)] : [read(0, "same")]))],
    ["slowly improving tests", repeated(40, (n) => [test_(n % 10 === 9 ? 20 - n / 10 : 20 - Math.floor(n / 10))])],
    ["too few steps", repeated(14, () => [read(0, "same")])],
  ])("is not reported for a run that makes progress: %s", (_, steps) => {
    expect(noProgress(trajectoryAfter(steps), settings)).toBeNull();
  });
  test("is reported for a run that only repeats or reverts changes", () => {
    expect(noProgress(trajectoryAfter(repeated(30, (n) => [edit(n % 2)])), settings)).not.toBeNull();
  });
  test("is not reported for a run that waits for a command", () => {
    const poll: ScriptedCall = {
      tool: "bash_output",
      args: { id: "t1.1" },
      text: "(no output)\n\nIt is still running.",
      details: { state: "It is still running." },
    };
    const sleep: ScriptedCall = { args: { command: "sleep 30; cat build.log" }, text: "still building" };
    expect(findingsOf(trajectoryAfter(repeated(30, (n) => [n % 2 === 0 ? poll : sleep])), settings)).toEqual([]);
    expect(findingsOf(trajectoryAfter(repeated(90, () => [poll])), settings), "an endless wait is too long").not.toEqual([]);
  });
});

describe("repetition", () => {
  test("is reported for calls that differ only in numbers and have the same result", () => {
    const found = repetition(
      trajectoryAfter(
        repeated(7, (n) => [{ args: { command: `curl localhost:80${n}/health?t=${n * 17}` }, text: `refused after ${n} ms` }]),
      ),
      settings,
    );
    expect(found).toMatchObject({ detector: "repetition", text: expect.stringContaining("7 calls of bash") });
    expect(found?.events).toHaveLength(7);
  });
  test("is reported for cycles of two and three calls", () => {
    for (const length of [2, 3]) {
      const steps = repeated(4 * length, (n) => [read(n % length, `content ${"abc"[n % length]}`)]);
      expect(repetition(trajectoryAfter(steps), settings), String(length)).toMatchObject({
        text: expect.stringContaining(`same ${length} calls`),
      });
    }
  });
  test("is mild for a command that keeps failing the same way despite changes", () => {
    const steps = repeated(11, (n) => [edit(n), sameTest]);
    expect(repetition(trajectoryAfter(steps), settings)).toMatchObject({ severity: 0.32, text: expect.stringContaining("11 times") });
    expect(repetition(trajectoryAfter(steps.slice(0, 8)), settings)).toBeNull();
  });
  test.each<[string, ScriptedCall[][]]>([
    [
      "pages of one file with different content",
      repeated(30, (n) => [{ tool: "read", args: { path: "a.ts", offset: n * 100 }, text: `${"abcdefghijklmnopqrstuvwxyzABCD"[n]} part` }]),
    ],
    [
      "the same status command between changes",
      repeated(40, (n) => [n % 3 === 0 ? edit(n) : { args: { command: "git status" }, text: "M src/parser.ts" }]),
    ],
    ["edits that look alike", repeated(30, (n) => [edit(n)])],
  ])("is not reported for %s", (_, steps) => {
    expect(repetition(trajectoryAfter(steps), settings)).toBeNull();
  });
});

describe("errors", () => {
  test("are reported if many calls in a row fail, even different ones", () => {
    const steps = repeated(9, (n) => [
      { args: { command: `tool-${"abcdefghi"[n]}` }, text: `${"abcdefghi"[n]}: not found`, outcome: "error" as const },
    ]);
    expect(errors(trajectoryAfter(steps), settings)).toMatchObject({ detector: "errors", text: "9 calls failed in a row" });
  });
  test("are not reported if something succeeds in between", () => {
    expect(errors(trajectoryAfter(repeated(30, (n) => [n % 2 === 0 ? test_(5) : edit(n)])), settings)).toBeNull();
    expect(errors(trajectoryAfter(repeated(7, () => [test_(5)])), settings)).toBeNull();
  });
});

describe("cost", () => {
  test("is reported for the spending since the last progress", () => {
    expect(
      cost(
        trajectoryAfter(
          repeated(6, () => [read(0, "x")]),
          { costUsd: 0.5 },
        ),
        settings,
      ),
    ).toMatchObject({ detector: "cost", text: expect.stringContaining("$3.00") });
    expect(
      cost(
        trajectoryAfter(
          repeated(6, () => [read(0, "x")]),
          { tokens: 1_000_000 },
        ),
        settings,
      ),
    ).not.toBeNull();
  });
  test("is not reported for a run that makes progress, or after a few steps", () => {
    expect(
      cost(
        trajectoryAfter(
          repeated(30, (n) => [edit(n)]),
          { costUsd: 5 },
        ),
        settings,
      ),
    ).toBeNull();
    expect(
      cost(
        trajectoryAfter(
          repeated(3, () => [read(0, "x")]),
          { costUsd: 5 },
        ),
        settings,
      ),
    ).toBeNull();
  });
});

describe("drift", () => {
  const onTask = repeated(6, () => [read(0, "x")].map((each) => ({ ...each, args: { path: "src/parser.ts" } })));
  const elsewhere = (count: number) =>
    repeated(count, (n) => [{ args: { command: `ls /usr/share/${"abcdefghijklmnopqrstuvwxyzAB"[n]}` }, text: `${n}` }]);
  test("is reported if the calls no longer mention the task", () => {
    expect(drift(trajectoryAfter([...onTask, ...elsewhere(26)]), settings)).toMatchObject({ detector: "drift", severity: 0.32 });
  });
  test("is not reported if the calls still mention the task, or never did", () => {
    expect(drift(trajectoryAfter([...onTask, ...elsewhere(20)]), settings)).toBeNull();
    expect(drift(trajectoryAfter(elsewhere(28)), settings)).toBeNull();
    expect(drift(trajectoryAfter([...onTask, ...elsewhere(26)], { say: "now src/parser.ts again" }), settings)).toBeNull();
  });
  test("is decided by the judge if there is one", () => {
    const judged = { ...settings, judge: { ...settings.judge, model: "scripted" } };
    const trajectory = trajectoryAfter([...onTask, ...elsewhere(26)]);
    expect(drift(trajectory, judged)).toBeNull();
    trajectory.judged = { ...trajectory.judged, coherence: 0.3, text: "works on icons", seq: trajectory.seq };
    expect(drift(trajectory, judged)).toMatchObject({ severity: 0.35, text: "the judge says 0.3: works on icons" });
    trajectory.judged = { ...trajectory.judged, coherence: 0.6 };
    expect(drift(trajectory, judged)).toBeNull();
  });
});

describe("duplicates", () => {
  const older = (overrides: Partial<Trajectory> = {}): Trajectory => ({
    ...trajectoryAfter(repeated(9, (n) => [edit(n), { ...edit(n + 50), args: { n }, changes: "src/lexer.ts" }])),
    createdAt: "2026-01-01T00:00:00.000Z",
    run: "run_aaaaaaaaaaaa",
    ...overrides,
  });
  const younger = (overrides: Partial<Trajectory> = {}) =>
    older({ run: "run_bbbbbbbbbbbb", createdAt: "2026-01-02T00:00:00.000Z", ...overrides });
  test("are reported for the younger run, without the other run's file names", () => {
    const found = duplicateOf(younger(), [older(), younger()], settings);
    expect(found?.finding.text).toBe(
      "run_aaaaaaaaaaaa started earlier with a task that is 100% the same, and both changed 2 of the same files",
    );
    expect(duplicateOf(older(), [older(), younger()], settings)).toBeNull();
  });
  test("are reported for a waiting run that has changed no files", () => {
    expect(duplicateOf(younger({ status: "queued", files: [] }), [older()], settings)).not.toBeNull();
  });
  test.each<[string, Partial<Trajectory>]>([
    ["another owner", { owner: "else" }],
    ["a run of the same parent", { parent: "run_cccccccccccc" }],
    ["another agent", { agent: "reviewer" }],
    ["other files", { files: ["a", "b"] }],
    ["another task", { task: "Write the documentation of the command line, with examples" }],
    ["a known duplicate", { isKnownDuplicate: true }],
    ["a fork of the same run", { root: "run_aaaaaaaaaaaa" }],
  ])("are not reported for %s", (_, overrides) => {
    expect(duplicateOf(younger(overrides), [older()], settings)).toBeNull();
  });
});

test("findings ignore a run that is young, by steps or by time", () => {
  const steps = repeated(20, () => [read(0, "same")]);
  expect(findingsOf(trajectoryAfter(steps), settings)).not.toEqual([]);
  expect(findingsOf(trajectoryAfter(steps), settingsOf({ stepsMin: 30 }))).toEqual([]);
  expect(findingsOf(trajectoryAfter(steps), settingsOf({ workedMsMin: 3_600_000 }))).toEqual([]);
});

test("working time alone is not a finding", () => {
  const trajectory = trajectoryAfter(repeated(10, (n) => [read(n)]));
  trajectory.workedMs = 365 * 86_400_000;
  expect(findingsOf(trajectory, settings)).toEqual([]);
});
