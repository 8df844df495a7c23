import { expect, test } from "vitest";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import { spanIdOf, traceIdOf } from "../../lib/trace-ids.ts";
import { createRunSpans } from "./run-spans.ts";

const parent = "run_aaaaaaaaaaaa";
const fork = "run_bbbbbbbbbbbb";
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };
const from = { run: parent, step: 1, seq: 3 };
const started = (step: number): NewRunEvent => ({ type: "step.started", data: { step } });
const end: NewRunEvent = { type: "run.ended", data: { reason: "done", text: "", steps: 2, usage, costUsd: 0 } };

test("a fork has a trace and spans apart from those of the run it began with", () => {
  const spans = createRunSpans(fork);
  const data = { run: fork, from, by: "me", session: fork, agent: "coder", model: "scripted:x", budgets: {} };
  const inherited = [started(1), { type: "model.requested", data: { call: "m1", model: "scripted:x", attempt: 1 } } as NewRunEvent];
  expect([...inherited, { type: "run.forked", data } as NewRunEvent, started(2)].flatMap((event) => spans.take(event, 5))).toEqual([]);
  const ended = spans.take(end, 9);
  expect(ended.map(({ name, error }) => [name, error])).toEqual([
    ["step 2", null],
    ["invoke_agent coder", null],
  ]);
  expect(ended.map(({ traceId }) => traceId)).toEqual([traceIdOf(fork), traceIdOf(fork)]);
  expect(ended[1]).toMatchObject({ spanId: spanIdOf(fork, "run"), parentSpanId: null });
  expect(ended[1]?.attributes).toMatchObject({ "caisson.forked_from": `${parent}@1` });
});

test("a rewind ends the spans of the steps that it takes back", () => {
  const spans = createRunSpans(parent);
  spans.take(started(2), 1);
  const rewound = { by: "me", toStep: 1, toSeq: 3, tail: fork, model: "scripted:x", budgets: {} };
  expect(spans.take({ type: "run.rewound", data: rewound }, 4)).toMatchObject([{ name: "step 2", error: "rewound" }]);
  // The next step of the same number gets another id.
  spans.take(started(2), 5);
  expect(spans.take(end, 9).map(({ spanId }) => spanId)).not.toContain(spanIdOf(parent, "step 2"));
});
