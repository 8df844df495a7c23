import { describe, expect, test } from "vitest";
import { cost, drift, errors, findingsOf, noProgress, repetition } from "./detectors.ts";
import { duplicateOf } from "./duplicates.ts";
import { repeated, settingsOf, type ToldCall, told } from "./testing.ts";
import type { Trajectory } from "./trajectory.ts";

const settings = settingsOf();
const read = (
  n: number,
  text = `line ${n} of something that was not seen before: ${"abcdefghij"[n % 10]}${"klmnopqrst"[(n / 10) | 0]}`,
): ToldCall => ({
  tool: "read",
  args: { path: `src/${n}.ts` },
  text,
});
const edit = (n: number): ToldCall => ({
  tool: "edit",
  args: { path: "src/parser.ts", old: `a${n}`, new: `b${n}` },
  text: "ok",
  changes: "src/parser.ts",
});
const test_ = (failed: number): ToldCall => ({
  args: { command: "npm test" },
  text: `Tests ${failed} failed, ${20 - failed} passed`,
  outcome: failed > 0 ? "error" : "ok",
  details: { exitCode: failed > 0 ? 1 : 0 },
});
const sameTest: ToldCall = { args: { command: "npm test" }, text: "Tests 4 failed", outcome: "error" };

describe("no progress", () => {
  test("many steps that read the same again are idle, and the evidence is what was called", () => {
    const found = noProgress(told(repeated(20, (n) => [read(n % 3, `the same ${n % 3 === 0 ? "a" : "b"}`)])), settings);
    expect(found).toMatchObject({ detector: "no_progress", text: expect.stringContaining("20 steps without") });
    expect(found?.events.length).toBe(20);
    expect(found?.severity).toBeGreaterThan(0.35);
  });
  test.each<[string, ToldCall[][]]>([
    ["reading something new with every step", repeated(40, (n) => [read(n)])],
    ["a changed file now and then", repeated(40, (n) => (n % 10 === 9 ? [edit(n)] : [read(0, "same")]))],
    ["tests that do better, slowly", repeated(40, (n) => [test_(n % 10 === 9 ? 20 - n / 10 : 20 - Math.floor(n / 10))])],
    ["fewer steps than that", repeated(14, () => [read(0, "same")])],
  ])("is not said of a run that gets on: %s", (_, steps) => {
    expect(noProgress(told(steps), settings)).toBeNull();
  });
  test("the same change once more is none, and neither is one that is taken back and made again", () => {
    expect(noProgress(told(repeated(30, (n) => [edit(n % 2)])), settings)).not.toBeNull();
  });
  test("whoever waits for a command is not idle", () => {
    const poll: ToldCall = {
      tool: "bash_output",
      args: { id: "t1.1" },
      text: "(no output)\n\nIt is still running.",
      details: { state: "It is still running." },
    };
    const sleep: ToldCall = { args: { command: "sleep 30; cat build.log" }, text: "still building" };
    expect(findingsOf(told(repeated(30, (n) => [n % 2 === 0 ? poll : sleep])), settings)).toEqual([]);
    expect(findingsOf(told(repeated(90, () => [poll])), settings), "for ever is too long").not.toEqual([]);
  });
});

describe("repetition", () => {
  test("calls that differ in numbers only, with the same result", () => {
    const found = repetition(
      told(repeated(7, (n) => [{ args: { command: `curl localhost:80${n}/health?t=${n * 17}` }, text: `refused after ${n} ms` }])),
      settings,
    );
    expect(found).toMatchObject({ detector: "repetition", text: expect.stringContaining("7 calls of bash") });
    expect(found?.events).toHaveLength(7);
  });
  test("A-B-A-B, and cycles of three", () => {
    for (const length of [2, 3]) {
      const steps = repeated(4 * length, (n) => [read(n % length, `content ${"abc"[n % length]}`)]);
      expect(repetition(told(steps), settings), String(length)).toMatchObject({ text: expect.stringContaining(`same ${length} calls`) });
    }
  });
  test("a command that fails the same way whatever is changed is worth a word, and no more", () => {
    const steps = repeated(11, (n) => [edit(n), sameTest]);
    expect(repetition(told(steps), settings)).toMatchObject({ severity: 0.32, text: expect.stringContaining("11 times") });
    expect(repetition(told(steps.slice(0, 8)), settings)).toBeNull();
  });
  test.each<[string, ToldCall[][]]>([
    [
      "pages of one file, each with another content",
      repeated(30, (n) => [{ tool: "read", args: { path: "a.ts", offset: n * 100 }, text: `${"abcdefghijklmnopqrstuvwxyzABCD"[n]} part` }]),
    ],
    [
      "the same look at things between changes",
      repeated(40, (n) => [n % 3 === 0 ? edit(n) : { args: { command: "git status" }, text: "M src/parser.ts" }]),
    ],
    ["edits that look alike", repeated(30, (n) => [edit(n)])],
  ])("is not said of %s", (_, steps) => {
    expect(repetition(told(steps), settings)).toBeNull();
  });
});

describe("errors", () => {
  test("one after the other, whatever was tried", () => {
    const steps = repeated(9, (n) => [
      { args: { command: `tool-${"abcdefghi"[n]}` }, text: `${"abcdefghi"[n]}: not found`, outcome: "error" as const },
    ]);
    expect(errors(told(steps), settings)).toMatchObject({ detector: "errors", text: "9 calls failed, one after the other" });
  });
  test("not of failures with something that works in between", () => {
    expect(errors(told(repeated(30, (n) => [n % 2 === 0 ? test_(5) : edit(n)])), settings)).toBeNull();
    expect(errors(told(repeated(7, () => [test_(5)])), settings)).toBeNull();
  });
});

describe("cost", () => {
  test("what was spent since the last progress", () => {
    expect(
      cost(
        told(
          repeated(6, () => [read(0, "x")]),
          { costUsd: 0.5 },
        ),
        settings,
      ),
    ).toMatchObject({ detector: "cost", text: expect.stringContaining("$3.00") });
    expect(
      cost(
        told(
          repeated(6, () => [read(0, "x")]),
          { tokens: 1_000_000 },
        ),
        settings,
      ),
    ).not.toBeNull();
  });
  test("not of a run that costs much and gets on, nor of a few steps", () => {
    expect(
      cost(
        told(
          repeated(30, (n) => [edit(n)]),
          { costUsd: 5 },
        ),
        settings,
      ),
    ).toBeNull();
    expect(
      cost(
        told(
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
  test("by words: on the task first, and then not any more", () => {
    expect(drift(told([...onTask, ...elsewhere(26)]), settings)).toMatchObject({ detector: "drift", severity: 0.32 });
  });
  test("not while something of the task is in its calls, nor where nothing ever was", () => {
    expect(drift(told([...onTask, ...elsewhere(20)]), settings)).toBeNull();
    expect(drift(told(elsewhere(28)), settings)).toBeNull();
    expect(drift(told([...onTask, ...elsewhere(26)], { say: "now src/parser.ts again" }), settings)).toBeNull();
  });
  test("by a judge, where there is one: its word counts, and words are not compared", () => {
    const judged = { ...settings, judge: { ...settings.judge, model: "scripted" } };
    const trajectory = told([...onTask, ...elsewhere(26)]);
    expect(drift(trajectory, judged)).toBeNull();
    trajectory.judged = { ...trajectory.judged, coherence: 0.3, text: "works on icons", seq: trajectory.seq };
    expect(drift(trajectory, judged)).toMatchObject({ severity: 0.35, text: "the judge says 0.3: works on icons" });
    trajectory.judged = { ...trajectory.judged, coherence: 0.6 };
    expect(drift(trajectory, judged)).toBeNull();
  });
});

describe("duplicates", () => {
  const older = (given: Partial<Trajectory> = {}): Trajectory => ({
    ...told(repeated(9, (n) => [edit(n), { ...edit(n + 50), args: { n }, changes: "src/lexer.ts" }])),
    createdAt: "2026-01-01T00:00:00.000Z",
    run: "run_aaaaaaaaaaaa",
    ...given,
  });
  const younger = (given: Partial<Trajectory> = {}) => older({ run: "run_bbbbbbbbbbbb", createdAt: "2026-01-02T00:00:00.000Z", ...given });
  test("the younger of two with the same task and files; a word of the other's files is not in it", () => {
    const found = duplicateOf(younger(), [older(), younger()], settings);
    expect(found?.finding.text).toBe(
      "run_aaaaaaaaaaaa was there first and has 100 % of the same task, and both changed 2 of the same files",
    );
    expect(duplicateOf(older(), [older(), younger()], settings)).toBeNull();
  });
  test("one that waits needs no files", () => {
    expect(duplicateOf(younger({ status: "queued", files: [] }), [older()], settings)).not.toBeNull();
  });
  test.each<[string, Partial<Trajectory>]>([
    ["another owner", { owner: "else" }],
    ["a run of the same parent", { parent: "run_cccccccccccc" }],
    ["another agent", { agent: "reviewer" }],
    ["other files", { files: ["a", "b"] }],
    ["another task", { task: "Write the documentation of the command line, with examples" }],
    ["one that has been told", { isKnownDuplicate: true }],
  ])("not %s", (_, given) => {
    expect(duplicateOf(younger(given), [older()], settings)).toBeNull();
  });
});

test("nothing is said of a run that is young, by steps or by time", () => {
  const steps = repeated(20, () => [read(0, "same")]);
  expect(findingsOf(told(steps), settings)).not.toEqual([]);
  expect(findingsOf(told(steps), settingsOf({ stepsMin: 30 }))).toEqual([]);
  expect(findingsOf(told(steps), settingsOf({ workedMsMin: 3_600_000 }))).toEqual([]);
});

test("time alone is no finding: the same steps over a year", () => {
  const trajectory = told(repeated(10, (n) => [read(n)]));
  trajectory.workedMs = 365 * 86_400_000;
  expect(findingsOf(trajectory, settings)).toEqual([]);
});
