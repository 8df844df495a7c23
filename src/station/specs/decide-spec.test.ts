import { describe, expect, test } from "vitest";
import type { NewSpecEvent, SpecEvent } from "../../contract/spec-event.ts";
import { decideSpec, type SpecMove } from "./decide-spec.ts";
import { type PerformParts, performMove } from "./perform-move.ts";
import { applyToSpec, emptySpecState, type SpecState } from "./spec-state.ts";
import { decided, edited, executed } from "./spec-verbs.ts";
import { specView } from "./spec-view.ts";
import { goodAnswer, goodData, type StandInResult, standIns } from "./testing.ts";

const EVENTS_MAX = 200;
const threeTasks = {
  tasks: [
    { id: "TASK-001", title: "One", description: "", hours: 2, dependsOn: [], requirements: ["REQ-001"] },
    { id: "TASK-002", title: "Two", description: "", hours: 1, dependsOn: [], requirements: ["REQ-002"] },
    { id: "TASK-003", title: "Three", description: "", hours: 1, dependsOn: ["TASK-001", "TASK-002"], requirements: ["REQ-002"] },
  ],
  criticalPath: ["TASK-001", "TASK-003"],
};
const inWaves = (task: string): StandInResult =>
  task.startsWith("Spec phase: tasks") ? { text: JSON.stringify(threeTasks) } : goodAnswer(task);

/** A spec's log in memory, and whoever drives it; the clock goes on with what is waited for. */
function spec({ answer = inWaves, gates = [] as ("requirements" | "design")[], parallel = 3 } = {}) {
  const log: SpecEvent[] = [];
  const standIn = standIns(answer);
  const parts = { ...standIn, now: () => clock } as unknown as PerformParts;
  let clock = Date.parse("2026-01-01T00:00:00.000Z");
  const say = (events: readonly NewSpecEvent[]) => {
    for (const { type, data } of events) log.push({ type, version: 1, at: new Date(clock).toISOString(), data } as SpecEvent);
  };
  const state = (): SpecState => log.reduce(applyToSpec, emptySpecState());
  const moves = (): SpecMove[] => decideSpec(state(), new Date(clock).toISOString());
  say([
    {
      type: "spec.created",
      data: {
        spec: "spec_aaaaaaaaaaaa",
        idea: "Count words.",
        source: { kind: "empty" },
        gates,
        runs: { settings: {}, budgets: {} },
        parallel,
      },
    },
  ]);
  /** Drives until there is nothing to do or a person has to; `crash` says whether to die before or after a write. */
  const drive = async (crash: (place: string) => boolean = () => false): Promise<boolean> => {
    for (let count = 0; count < EVENTS_MAX; count++) {
      const [move] = moves();
      if (move === undefined || move.kind === "ask") return true;
      if (move.kind === "sleep") clock = Date.parse(move.until);
      const events = await performMove(state(), move, { ...parts, signal: AbortSignal.timeout(60_000) });
      if (crash(`before ${move.kind}`)) return false;
      say(events);
      if (crash(`after ${move.kind}`)) return false;
    }
    throw new Error("it does not end");
  };
  const execute = (asked: object = {}) => say(executed(state(), { until: "complete", by: "ann", ...asked } as never));
  const decide = (asked: object) => say(decided(state(), { by: "ann", text: "", ...asked } as never, new Date(clock).toISOString()));
  return { log, say, state, moves, drive, execute, decide, ...standIn, view: () => specView(state(), new Date(clock).toISOString()) };
}

test("a spec goes through all phases, does its tasks in waves, and ends with the session that holds their work", async () => {
  const one = spec();
  expect(one.moves()).toEqual([]);
  one.execute();
  await one.drive();
  expect(one.view()).toMatchObject({ status: "done", phase: "complete", version: 6, session: "merged-0" });
  expect(one.made.map(({ key }) => key)).toEqual([
    ...["explore", "prd", "requirements", "design", "tasks", "sync"].map((phase) => `spec_aaaaaaaaaaaa/${phase}/1`),
    ...["TASK-001/1", "TASK-002/2", "TASK-003/3"].map((task) => `spec_aaaaaaaaaaaa/${task}`),
  ]);
  expect(one.merged).toEqual([{ key: "spec_aaaaaaaaaaaa/merge/1", sessions: one.made.slice(6, 8).map(({ session }) => session) }]);
  // What follows a merge works on it.
  expect(one.made[8]?.session).toBe("merged-0");
  expect(one.view().coverage.map(({ requirement, state, changes }) => [requirement, state, changes.map(({ path }) => path)])).toEqual([
    ["REQ-001", "done", ["src/task-001.ts"]],
    ["REQ-002", "done", ["src/task-002.ts", "src/task-003.ts"]],
  ]);
});

test("tasks that may are started together, as many as are allowed", async () => {
  const one = spec({ parallel: 1 });
  one.execute();
  await one.drive((place) => place === "after startTask");
  expect(one.moves().map(({ kind }) => kind)).toEqual(["runTask"]);
  const two = spec();
  two.execute();
  await two.drive((place) => place === "after startTask");
  expect(two.moves().map(({ kind }) => kind)).toEqual(["runTask", "startTask"]);
});

describe("attempts", () => {
  const nonsense = (times: number) => {
    let left = times;
    return (task: string): StandInResult => (task.startsWith("Spec phase: design") && left-- > 0 ? { text: "I am done." } : inWaves(task));
  };

  test("that fail are followed by others, later and later, which are told what was wrong", async () => {
    const one = spec({ answer: nonsense(2) });
    one.execute();
    await one.drive();
    expect(one.view().status).toBe("done");
    const designs = one.made.filter(({ key }) => key.includes("/design/"));
    expect(designs.map(({ key }) => key.slice(-1))).toEqual(["1", "2", "3"]);
    expect(designs[0]?.task).not.toContain("What was wrong before");
    expect(designs[1]?.task).toContain("- the last answer has no JSON");
    const started = one.log
      .filter((event) => event.type === "spec.phase_started" && event.data.phase === "design")
      .map(({ at }) => Date.parse(at));
    expect(started.slice(1).map((at, index) => at - (started[index] ?? 0))).toEqual([2000, 4000]);
  });

  test("three that are nonsense fail the phase with what was wrong, and nothing else is done until somebody resumes it", async () => {
    const one = spec({ answer: nonsense(4) });
    one.execute();
    await one.drive();
    expect(one.view()).toMatchObject({ status: "failed", phase: "design", ended: { text: expect.stringContaining("no JSON") } });
    expect(one.view().phases.find(({ phase }) => phase === "design")?.state).toBe("failed");
    expect(one.moves()).toEqual([]);
    one.execute();
    await one.drive();
    expect(one.view().status).toBe("done");
    expect(one.made.filter(({ key }) => key.includes("/design/"))).toHaveLength(5);
    expect(one.made.filter(({ key }) => key.includes("/explore/"))).toHaveLength(1);
  });

  test("whose run fails count, too", async () => {
    const one = spec({ answer: (task) => (task.includes("attempt 1") ? { finish: "error", text: "out of paper" } : inWaves(task)) });
    one.execute();
    await one.drive();
    expect(one.view().status).toBe("done");
    expect(one.view().attempts[0]?.judgement?.checks[0]?.feedback).toContain("ended with error: out of paper");
  });
});

describe("gates", () => {
  test("wait for a person, and what they agreed to is known", async () => {
    const one = spec({ gates: ["requirements", "design"] });
    one.execute();
    await one.drive();
    expect(one.view()).toMatchObject({ status: "waiting", phase: "requirements", asked: { phase: "requirements", version: 3 } });
    expect(() => one.decide({ approved: true, version: 2 })).toThrow("is version 3, not 2");
    expect(() => one.decide({ approved: true, phase: "design" })).toThrow("does not wait");
    one.decide({ approved: true, version: 3 });
    await one.drive();
    expect(one.view().asked).toEqual({ phase: "design", version: 4 });
    one.decide({ approved: true });
    await one.drive();
    expect(one.view()).toMatchObject({
      status: "done",
      decisions: [
        { phase: "requirements", version: 3, by: "ann" },
        { phase: "design", version: 4 },
      ],
    });
    expect(() => one.decide({ approved: true })).toThrow("does not wait");
  });

  test("that are not passed have the phase written anew, with the words", async () => {
    const one = spec({ gates: ["requirements"] });
    one.execute();
    await one.drive();
    expect(() => one.decide({ approved: false })).toThrow("says what has to be other");
    one.decide({ approved: false, text: "say more of empty texts" });
    await one.drive();
    expect(one.view().asked).toEqual({ phase: "requirements", version: 4 });
    const again = one.made.at(-1)?.task;
    expect(again).toContain("ann did not agree: say more of empty texts");
    expect(again).toContain("What this phase said before, to be revised");
  });
});

test("a person's version makes what follows from it stale, and it is written anew", async () => {
  const one = spec({ gates: ["requirements"] });
  one.execute();
  await one.drive();
  one.decide({ approved: true });
  await one.drive();
  const data = { requirements: goodData.requirements.requirements.slice(0, 1) };
  one.say(edited(one.state(), { phase: "requirements", data, by: "ann" }));
  const stale = one
    .view()
    .phases.filter(({ state }) => state === "stale")
    .map(({ phase }) => phase);
  expect(stale).toEqual(["design", "tasks", "sync"]);
  one.execute();
  await one.drive();
  // Nobody has agreed to what the person wrote.
  expect(one.view().asked).toEqual({ phase: "requirements", version: 7 });
  one.decide({ approved: true });
  await one.drive();
  expect(one.view()).toMatchObject({ status: "done", data: { requirements: data } });
  expect(one.made.filter(({ key }) => key.includes("/prd/"))).toHaveLength(1);
  expect(one.made.filter(({ key }) => key.includes("/design/"))).toHaveLength(2);
});

test("what cannot be is refused: tasks that wait for each other, a phase ahead of others, no project, a spec at work", async () => {
  const one = spec();
  expect(() => edited(one.state(), { phase: "design", data: goodData.design, by: "ann" })).toThrow("explore is not written yet");
  expect(() => executed({ ...one.state(), source: null }, { until: "complete", by: "ann" })).toThrow("has no project");
  one.execute();
  expect(() => executed(one.state(), { until: "complete", by: "ann" })).toThrow("driven already");
  await one.drive();
  const tasks = threeTasks.tasks.map((task) => ({ ...task, dependsOn: ["TASK-003"] }));
  expect(() => edited(one.state(), { phase: "tasks", data: { tasks }, by: "ann" })).toThrow("wait for each other: TASK-003 → TASK-003");
  expect(() => edited(one.state(), { phase: "tasks", data: { jobs: [] }, by: "ann" })).toThrow("not what tasks looks like");
});

test("it can be written anew from a phase, and end with the plan", async () => {
  const one = spec();
  one.execute({ until: "sync" });
  await one.drive();
  expect(one.view()).toMatchObject({ status: "planned", phase: "complete" });
  one.execute({ until: "sync", from: "design" });
  await one.drive();
  expect(one.view().versions.map(({ phase }) => phase)).toEqual([
    "explore",
    "prd",
    "requirements",
    "design",
    "tasks",
    "sync",
    "design",
    "tasks",
    "sync",
  ]);
  expect(one.merged).toEqual([]);
});

test("a task that fails ends it with what went wrong, and resuming does that task alone again", async () => {
  let fails = true;
  const one = spec({
    answer: (task) => (task.startsWith("Spec task: TASK-002") && fails ? { finish: "error", text: "no paper" } : inWaves(task)),
  });
  one.execute();
  await one.drive();
  expect(one.view()).toMatchObject({ status: "failed", ended: { text: "TASK-002 ended with error: no paper" } });
  fails = false;
  one.execute();
  await one.drive();
  expect(one.view().status).toBe("done");
  expect(one.made.map(({ key }) => key.split("/")[1]).filter((task) => task?.startsWith("TASK"))).toEqual([
    ...["TASK-001", "TASK-002", "TASK-002", "TASK-003"],
  ]);
});

/** Every place where it can die: before and after each write. */
async function places(): Promise<number> {
  const one = spec();
  let count = 0;
  one.execute();
  await one.drive(() => {
    count += 1;
    return false;
  });
  return count;
}

test("whoever drives it can die before and after every write: the outcome is the same, and nothing is run twice", async () => {
  const whole = spec();
  whole.execute();
  await whole.drive();
  const count = await places();
  expect(count).toBeGreaterThan(50);
  for (let place = 0; place < count; place++) {
    const one = spec();
    one.execute();
    let at = 0;
    expect(await one.drive(() => at++ === place)).toBe(false);
    await one.drive();
    expect(one.view(), `died at ${place}`).toEqual(whole.view());
    expect(one.made.map(({ key }) => key)).toEqual(whole.made.map(({ key }) => key));
    expect(one.merged).toEqual(whole.merged);
  }
});
