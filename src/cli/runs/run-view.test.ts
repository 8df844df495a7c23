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
