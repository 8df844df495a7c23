import { expect, test } from "vitest";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { choicesIn, everyRun, narrowRuns, readFilter, sortRuns, writeFilter } from "./run-filter.ts";

const nowMs = Date.parse("2026-06-01T12:00:00.000Z");
let runCount = 0;

function run(overrides: Partial<RunView> = {}): RunView {
  runCount += 1;
  return {
    run: `run_${`${runCount}`.padStart(12, "a")}`,
    name: null,
    labels: {},
    session: "s",
    parent: null,
    agent: "coder",
    model: "scripted",
    title: "Fix the tests",
    status: "running",
    paused: null,
    finish: null,
    sandbox: null,
    health: "ok",
    steps: 1,
    usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 },
    costUsd: 0,
    workedMs: 1,
    asked: [],
    updatedAt: "2026-06-01T11:59:00.000Z",
    ...overrides,
  } as RunView;
}

const found = (runs: RunView[], filter: Partial<typeof everyRun>) =>
  narrowRuns(sortRuns(runs, { ...everyRun, ...filter }), { ...everyRun, ...filter }, nowMs).map(({ title }) => title);

test("round-trips a filter through the address", () => {
  const filter = {
    text: "fix & mend",
    states: ["active", "failed"],
    agent: "a=b",
    runtime: "oci",
    label: "team=x y",
    time: "7d",
    withSubRuns: true,
    sort: "cost",
    isAscending: true,
  } as const;
  expect(readFilter(writeFilter(filter))).toEqual(filter);
  expect(writeFilter(everyRun)).toBe("");
  expect(readFilter("")).toEqual(everyRun);
  expect(readFilter("state=nonsense&sort=-nothing&time=__proto__")).toEqual(everyRun);
});

test("searches everything that names a run, in any word order", () => {
  const runs = [run({ title: "One", name: "nightly", labels: { team: "red" } }), run({ title: "Two", agent: "reviewer" })];
  expect(found(runs, { text: "RED one" })).toEqual(["One"]);
  expect(found(runs, { text: "nightly two" })).toEqual([]);
  expect(found(runs, { text: "review" })).toEqual(["Two"]);
});

test("derives a run's state from its questions and outcome, not only its status", () => {
  const questions = [{ question: "ask_aaaaaaaaaaaa", kind: "tool" as const, text: "May I?" }];
  const runs = [
    run({ title: "asks", asked: questions }),
    run({ title: "works" }),
    run({ title: "held", status: "paused" }),
    run({ title: "done", status: "ended", finish: "done" }),
    run({ title: "over budget", status: "ended", finish: "budget", asked: questions }),
    run({ title: "stopped", status: "ended", finish: "cancelled" }),
  ];
  expect(found(runs, { states: ["waiting"], sort: "title", isAscending: true })).toEqual(["asks", "held"]);
  expect(found(runs, { states: ["active", "done"], sort: "title" })).toEqual(["works", "done"]);
  expect(found(runs, { states: ["failed"] })).toEqual(["over budget"]);
});

test("filters by agent, runtime, label, time and parent", () => {
  const runs = [
    run({ title: "new", sandbox: { id: "sb_aaaaaaaaaaaa", runtime: "oci" }, labels: { team: "red" } }),
    run({ title: "old", agent: "reviewer", labels: { team: "blue" }, updatedAt: "2026-05-01T00:00:00.000Z" }),
    run({ title: "below", parent: { run: "run_aaaaaaaaaaaa", call: "t1.1" } }),
  ];
  expect(found(runs, { agent: "reviewer" })).toEqual(["old"]);
  expect(found(runs, { runtime: "oci" })).toEqual(["new"]);
  expect(found(runs, { label: "team=blue" })).toEqual(["old"]);
  expect(found(runs, { label: "team" })).toHaveLength(2);
  expect(found(runs, { time: "24h" })).toEqual(["new"]);
  expect(found(runs, { withSubRuns: true, time: "24h" })).toContain("below");
  expect(choicesIn(runs)).toEqual({ agents: ["coder", "reviewer"], runtimes: ["oci"], labels: ["team=blue", "team=red"] });
});

test("sorts runs of unknown cost last, and equal ones in a stable order", () => {
  const runs = [run({ title: "unknown", costUsd: null }), run({ title: "dear", costUsd: 5 }), run({ title: "cheap", costUsd: 1 })];
  expect(found(runs, { sort: "cost" })).toEqual(["dear", "cheap", "unknown"]);
  expect(found(runs.toReversed(), { sort: "agent" })).toEqual(found(runs, { sort: "agent" }));
});
