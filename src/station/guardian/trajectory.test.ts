import { serialize } from "node:v8";
import { expect, test } from "vitest";
import { makeEvent } from "../../contract/event/event-family.ts";
import { type NewRunEvent, type RunEvent, runEvents } from "../../contract/run/run-event.ts";
import { chooseAction, coherenceOf, unwatchedBecause } from "./choose-action.ts";
import { findingsOf, idleSteps, shownFindings } from "./detectors.ts";
import { effectOf } from "./effect.ts";
import { foldTrajectory } from "./fold-trajectory.ts";
import { folded, repeated, runBegan, type ScriptedCall, settingsOf, stepEvents, trajectoryAfter } from "./testing-guardian.ts";
import type { Trajectory } from "./trajectory.ts";

const settings = settingsOf();
const make = (events: readonly NewRunEvent[]) => events.map((each) => makeEvent(runEvents, each));
const same: ScriptedCall = { tool: "read", args: { path: "a.ts" }, text: "same" };
const decided = (action: "nudge" | "pause" = "nudge") => ({
  type: "guardian.decided" as const,
  data: {
    decision: "dec_k3v7q2m5x4ab",
    action,
    coherence: 0.5,
    findings: [{ detector: "no_progress" as const, severity: 0.5, text: "", events: [] }],
    text: "",
  },
});

test("the trajectory of a run is bounded, however long the run and its texts are", () => {
  const big = "x".repeat(5_000);
  const call = (n: number): ScriptedCall => ({
    args: { command: `${n.toString(36)} ${big}` },
    text: `${n.toString(36)}${big}`,
    outcome: n % 2 === 0 ? "error" : "ok",
    changes: `${n.toString(36)}/${big}`,
  });
  const sizeAfter = (steps: number) =>
    serialize(folded([...runBegan({ task: big }), ...repeated(steps, (n) => stepEvents(n + 1, [call(n)], { say: big })).flat()])).length;
  const [some, many] = [sizeAfter(600), sizeAfter(1200)];
  expect(many).toBeLessThan(some * 1.05);
  expect(many).toBeLessThan(100_000);
});

test("folding is deterministic, and folding an event twice changes nothing", () => {
  const events = [...runBegan(), ...repeated(20, (n) => stepEvents(n + 1, [same])).flat()];
  const once = folded(events);
  const before = serialize(once);
  expect(serialize(folded(events))).toEqual(before);
  const [again] = make(events.slice(-1));
  foldTrajectory(once, { ...(again as RunEvent), seq: once.seq });
  expect(serialize(once)).toEqual(before);
});

test("a person's message resets a run's idle steps, but is not progress", () => {
  const message = { message: "msg_k3v7q2m5x4ab", source: "user" as const, mode: "steer" as const, text: "go on" };
  const trajectory = trajectoryAfter(repeated(20, () => [same]));
  folded([decided("pause"), { type: "message.received", data: message }], trajectory);
  expect(findingsOf(trajectory, settings)).toEqual([]);
  expect(effectOf(trajectory, settings)).toBeNull();
  folded(repeated(8, (n) => stepEvents(30 + n, [same])).flat(), trajectory);
  expect(effectOf(trajectory, settings)).toMatchObject({ effect: "none" });
});

test("a message from the guardian does not reset a run's idle steps", () => {
  const message = { message: "msg_k3v7q2m5x4ab", source: "guardian" as const, mode: "steer" as const, text: "well?" };
  const trajectory = trajectoryAfter(repeated(20, () => [same]));
  const before = findingsOf(trajectory, settings).length;
  expect(before).toBeGreaterThan(0);
  folded([{ type: "message.received", data: message }], trajectory);
  expect(findingsOf(trajectory, settings)).toHaveLength(before);
});

test("a decision is settled by progress, or by enough steps without it", () => {
  const trajectory = trajectoryAfter(repeated(20, () => [same]));
  folded([decided()], trajectory);
  expect(effectOf(trajectory, settings)).toBeNull();
  const heeded = folded(stepEvents(30, [{ ...same, tool: "edit", changes: "a.ts", args: { new: 1 } }]), structuredClone(trajectory));
  expect(effectOf(heeded, settings)).toMatchObject({ effect: "progress", text: "a file was changed" });
  const unheeded = folded(repeated(8, (n) => stepEvents(30 + n, [same])).flat(), trajectory);
  expect(effectOf(unheeded, settings)).toMatchObject({ effect: "none" });
});

const state = (overrides: Partial<Trajectory> = {}): Trajectory => ({ ...trajectoryAfter([[same]]), ...overrides });

test("a run is nudged, then paused, then stopped, as far as allowed", () => {
  const all = settingsOf({ atMost: "stop" });
  expect(chooseAction(state(), 0.1, all)).toBe("nudge");
  expect(chooseAction(state({ unheeded: 1 }), 0.4, all)).toBe("pause");
  expect(chooseAction(state({ unheeded: 1 }), 0.2, all)).toBe("stop");
  expect(chooseAction(state({ unheeded: 1 }), 0.2, settingsOf())).toBe("pause");
  expect(chooseAction(state({ unheeded: 1 }), 0.2, settingsOf({ atMost: "nudge" }))).toBe("nudge");
  expect(chooseAction(state({ unheeded: 1, asked: { atMost: "nudge" } }), 0.2, all)).toBe("nudge");
  expect(chooseAction(state({ unheeded: 1, asked: { atMost: "stop" } }), 0.2, settingsOf({ atMost: "nudge" })), "a file only narrows").toBe(
    "nudge",
  );
  expect(chooseAction(state({ unheeded: 1, isAttended: false }), 0.4, all), "unattended").toBe("nudge");
  expect(chooseAction(state({ unheeded: 1, parent: "run_aaaaaaaaaaaa" }), 0.1, all)).toBe("nudge");
  expect(chooseAction(state(), 0.8, all)).toBeNull();
  expect(chooseAction(state({ status: "held" }), 0.1, all)).toBeNull();
  expect(chooseAction(state({ status: "queued" }), 0.65, all)).toBe("reprioritize");
  expect(chooseAction(state({ status: "queued" }), 0.65, settingsOf({ atMost: "nudge" }))).toBeNull();
  expect(chooseAction(state(), 0.1, settingsOf({ bands: { nudge: 0 } }))).toBeNull();
});

test("each finding and each ignored decision lowers the coherence", () => {
  const finding = (severity: number) => ({ detector: "cost" as const, severity, text: "", events: [] });
  expect(coherenceOf({ unheeded: 3 }, [])).toBe(1);
  expect(coherenceOf({ unheeded: 0 }, [finding(0.35)])).toBe(0.65);
  expect(coherenceOf({ unheeded: 1 }, [finding(0.35), finding(0.5)])).toBeCloseTo(0.244, 3);
});

test("watches all runs, those that opted in, or none; never one that opted out", () => {
  const why = (enabled: boolean | undefined, watch: "all" | "asked" | "none") =>
    unwatchedBecause({ asked: enabled === undefined ? {} : { enabled } }, { watch }) === null;
  expect([undefined, true, false].map((enabled) => why(enabled, "all"))).toEqual([true, true, false]);
  expect([undefined, true, false].map((enabled) => why(enabled, "asked"))).toEqual([false, true, false]);
  expect([undefined, true, false].map((enabled) => why(enabled, "none"))).toEqual([false, false, false]);
});

test.each(["sleep 1; npm test", "timeout 60 npm test"])("%s that keeps failing counts as idle, not as waiting", (command) => {
  const trajectory = trajectoryAfter(
    repeated(24, () => [{ tool: "bash", args: { command }, text: "1 failed", outcome: "error" as const }]),
  );
  expect(idleSteps(trajectory)).toBeGreaterThanOrEqual(23);
});

test("status shows the findings of a young run, and why its harness paused it", () => {
  const young = { ...settings, workedMsMin: 60_000, stepsMin: 1000 };
  const call: ScriptedCall = { tool: "bash", args: { command: "exit 3" }, text: "Exit code 3.", outcome: "error" };
  const failing = trajectoryAfter(repeated(24, () => [call]));
  expect(findingsOf(failing, young)).toEqual([]);
  expect(coherenceOf(failing, shownFindings(failing, young))).toBeLessThan(0.5);
  const few = trajectoryAfter(repeated(2, () => [call]));
  folded([{ type: "run.paused", data: { why: "stuck", text: "the same call was made 3 times in a row" } }], few);
  expect(shownFindings(few, young)).toMatchObject([{ detector: "repetition", text: "the same call was made 3 times in a row" }]);
  folded([{ type: "run.continued", data: { by: "me" } }], few);
  expect(shownFindings(few, young)).toEqual([]);
});
