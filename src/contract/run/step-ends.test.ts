import { expect, test } from "vitest";
import { foldStepEnds, noStepEnds, stepEndTypes } from "./step-ends.ts";

const call = (name: string) => ({ kind: "toolCall", call: name });
const created = { type: "run.created" };
const started = (step: number) => ({ type: "step.started", data: { step } });
const answered = (...calls: string[]) => ({ type: "model.ended", data: { parts: [{ kind: "text", text: "" }, ...calls.map(call)] } });
const ended = (name: string) => ({ type: "tool.ended", data: { call: name } });
const message = { type: "message.received" };

/** Returns where the steps end; the first event has the number 1. */
function endsOf(events: readonly { type: string; data?: object }[]) {
  const steps = noStepEnds();
  for (const [index, event] of events.entries()) foldStepEnds(steps, { ...event, seq: index + 1 } as never);
  return steps.ends;
}

test("a step ends with its answer and the results of all its calls", () => {
  const first = [created, { type: "run.claimed" }, started(1), answered("t1.1", "t1.2"), ended("t1.2"), { type: "file.changed" }];
  expect(endsOf(first)).toEqual([2, null]);
  expect(endsOf([...first, ended("t1.1")])).toEqual([2, 7]);
  // What the step itself records afterwards is part of it; what a user says is not.
  expect(endsOf([...first, ended("t1.1"), { type: "todo.changed" }, { type: "step.ended" }, message])).toEqual([2, 9]);
  expect(endsOf([...first, ended("t1.1"), message, started(2), answered()])).toEqual([2, 7, 10]);
});

test("a run that has taken no step ends before its first", () => {
  expect(endsOf([created])).toEqual([1]);
  expect(endsOf([created, message, { type: "run.ended" }])).toEqual([1]);
});

test("a rewind takes steps back, and the next ones get their numbers", () => {
  const two = [created, started(1), answered(), started(2), answered("t2.1"), ended("t2.1")];
  expect(endsOf(two)).toEqual([1, 3, 6]);
  const rewound = [...two, { type: "run.rewound", data: { toStep: 1 } }];
  expect(endsOf(rewound)).toEqual([1, 3]);
  expect(endsOf([...rewound, { type: "file.changed" }, started(2), answered()])).toEqual([1, 3, 10]);
});

test("no event of another type matters", () => {
  const steps = noStepEnds();
  for (const type of ["model.requested", "run.paused", "context.compacted"]) {
    expect(stepEndTypes.has(type)).toBe(false);
    foldStepEnds(steps, { type, seq: 9, data: {} } as never);
  }
  expect(steps.ends).toEqual([]);
});
