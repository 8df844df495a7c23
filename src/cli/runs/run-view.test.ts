import { expect, test } from "vitest";
import { makeEvent } from "../../contract/event/event-family.ts";
import { type NewRunEvent, runEvents } from "../../contract/run/run-event.ts";
import { createRunView } from "./run-view.ts";

const renderLines = (...events: NewRunEvent[]) => {
  const view = createRunView({ columns: () => 80 });
  return events.flatMap((event) => view.lines(makeEvent(runEvents, event))).map(({ text }) => text);
};

test("separates a provider's message from the time of the retry", () => {
  const error = { code: "busy", message: "rate limit reached" };
  expect(renderLines({ type: "model.failed", data: { call: "m1", error, retryInMs: 1000 } })).toEqual([
    "✗ model rate limit reached (retrying in 1 s)",
  ]);
  expect(renderLines({ type: "model.failed", data: { call: "m1", error, retryInMs: null } })).toEqual(["✗ model rate limit reached"]);
});

test("shows a ready MCP server with the number of its tools", () => {
  const data = { server: "github", tools: ["github__create_issue"], durationMs: 412 };
  expect(renderLines({ type: "mcp.connected", data })).toEqual(["MCP server github: 1 tool, ready after 412 ms"]);
});

test("shows who continued a run, and a changed model", () => {
  expect(renderLines({ type: "run.reopened", data: { by: "me", budgets: {} } })).toEqual(["", "continued by me"]);
  expect(renderLines({ type: "run.reopened", data: { by: "me", model: "scripted:x", budgets: {} } })).toEqual([
    "",
    "continued by me with scripted:x",
  ]);
});

test("shows the figures of the last turn for a continued run", () => {
  const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };
  const whole = { inputTokens: 100, outputTokens: 50, cachedInputTokens: 0, reasoningTokens: 0 };
  const rows = renderLines(
    { type: "run.reopened", data: { by: "me", budgets: {} } },
    { type: "step.started", data: { step: 4 } },
    { type: "model.ended", data: { call: "m1", parts: [], stop: "end", usage, costUsd: 0.5, durationMs: 1 } },
    { type: "run.ended", data: { reason: "done", text: "", steps: 4, usage: whole, costUsd: 2 } },
  );
  expect(rows.at(-1)).toMatch(/^done after 1 step \(4 in all\) · .* · 15 tokens · \$0\.5000$/);
});

test("shows what a run was forked from, and counts only its own steps", () => {
  const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };
  const from = { run: "run_aaaaaaaaaaaa", step: 3, seq: 9 };
  const forked = { run: "run_bbbbbbbbbbbb", from, by: "me", session: "run_bbbbbbbbbbbb", agent: "coder", model: "scripted:x", budgets: {} };
  const rows = renderLines(
    { type: "model.ended", data: { call: "m1", parts: [], stop: "end", usage, costUsd: 0.5, durationMs: 1 } },
    { type: "run.forked", data: forked },
    { type: "step.started", data: { step: 4 } },
    { type: "run.ended", data: { reason: "done", text: "", steps: 4, usage, costUsd: 0 } },
  );
  expect(rows).toContain("coder · scripted:x · run_bbbbbbbbbbbb");
  expect(rows).toContain("a fork of run_aaaaaaaaaaaa after step 3");
  expect(rows.at(-1)).toMatch(/^done after 1 step \(4 in all\) · .* · 0 tokens · \$0\.0000$/);
});

test("shows where a run was taken back to, and where the rest is", () => {
  const tail = "run_bbbbbbbbbbbb";
  expect(
    renderLines(
      { type: "run.rewind_started", data: { by: "me", toStep: 2, toSeq: 7, tail } },
      { type: "run.rewound", data: { by: "me", toStep: 2, toSeq: 7, tail, model: "scripted:x", budgets: {} } },
      { type: "run.rewind_failed", data: { text: "the disk is full" } },
    ),
  ).toEqual([
    "rewinding to step 2",
    "rewound to step 2 by me; run_bbbbbbbbbbbb has the rest",
    "✗ not rewound the disk is full the run stays as it is",
  ]);
});
