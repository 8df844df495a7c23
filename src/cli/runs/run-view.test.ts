import { expect, test } from "vitest";
import { makeEvent } from "../../contract/event-family.ts";
import { type NewRunEvent, runEvents } from "../../contract/run-event.ts";
import { createRunView } from "./run-view.ts";

const shown = (...events: NewRunEvent[]) => {
  const view = createRunView({ columns: () => 80 });
  return events.flatMap((event) => view.lines(makeEvent(runEvents, event))).map(({ text }) => text);
};

test("what a provider said and when it is asked again are told apart", () => {
  const error = { code: "busy", message: "rate limit reached" };
  expect(shown({ type: "model.failed", data: { call: "m1", error, retryInMs: 1000 } })).toEqual([
    "✗ model rate limit reached (asked again in 1 s)",
  ]);
  expect(shown({ type: "model.failed", data: { call: "m1", error, retryInMs: null } })).toEqual(["✗ model rate limit reached"]);
});

test("a run that goes on after its end says by whom, and with which model if that is another", () => {
  expect(shown({ type: "run.reopened", data: { by: "me", budgets: {} } })).toEqual(["", "continued by me"]);
  expect(shown({ type: "run.reopened", data: { by: "me", model: "scripted:x", budgets: {} } })).toEqual([
    "",
    "continued by me with scripted:x",
  ]);
});

test("the figures of a continued run are those of its last turn", () => {
  const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };
  const whole = { inputTokens: 100, outputTokens: 50, cachedInputTokens: 0, reasoningTokens: 0 };
  const rows = shown(
    { type: "run.reopened", data: { by: "me", budgets: {} } },
    { type: "step.started", data: { step: 4 } },
    { type: "model.ended", data: { call: "m1", parts: [], stop: "end", usage, costUsd: 0.5, durationMs: 1 } },
    { type: "run.ended", data: { reason: "done", text: "", steps: 4, usage: whole, costUsd: 2 } },
  );
  expect(rows.at(-1)).toMatch(/^done after 1 step \(4 in all\) · .* · 15 tokens · \$0\.5000$/);
});
