import { expect, test } from "vitest";
import { emptyTimeline, foldEvent, indexOfSeq, type NumberedEvent, type Timeline } from "./timeline.ts";
import { textOf } from "./timeline-item.ts";

const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };

function folded(...events: readonly { type: string; data: unknown }[]): Timeline {
  const timeline = emptyTimeline();
  for (const [index, event] of events.entries()) {
    foldEvent(timeline, {
      ...event,
      version: 1,
      at: `2026-06-01T12:00:${`${index % 60}`.padStart(2, "0")}.000Z`,
      seq: index + 1,
    } as NumberedEvent);
  }
  return timeline;
}

const streamed = (text: string, kind: "text" | "thought" = "text") => ({ type: "model.streamed", data: { call: "m1", kind, text } });
const ended = (...parts: unknown[]) => ({
  type: "model.ended",
  data: { call: "m1", parts, usage, costUsd: 0.5, stop: "end", durationMs: 1 },
});
const toolRequest = (call: string, name = "bash") => ({
  type: "tool.requested",
  data: { call, step: 1, name, arguments: { command: "ls" } },
});

test("merges streamed text into one item, which the final text replaces", () => {
  const during = folded(streamed("I think", "thought"), streamed("Hel"), streamed("lo"));
  expect(during.items).toMatchObject([
    { kind: "thought", text: "I think", isStreaming: true },
    { kind: "words", text: "Hello", isStreaming: true },
  ]);
  const after = folded(streamed("Hel"), streamed("lo"), ended({ kind: "text", text: "Hello there" }));
  expect(after.items).toMatchObject([{ kind: "words", text: "Hello there", isStreaming: false, seq: 1 }]);
  expect(folded(ended({ kind: "text", text: "At once" })).items).toMatchObject([{ kind: "words", text: "At once" }]);
});

test("shows a call as one card with its files and its sub-run", () => {
  const { items, files } = folded(
    { type: "step.started", data: { step: 3 } },
    toolRequest("t1.1"),
    { type: "tool.started", data: { call: "t1.1" } },
    { type: "tool.streamed", data: { call: "t1.1", text: "a\n" } },
    { type: "tool.streamed", data: { call: "t1.1", text: "b\n" } },
    { type: "file.changed", data: { call: "t1.1", path: "x.ts", kind: "modified", linesAdded: 1, linesRemoved: 2 } },
    {
      type: "tool.ended",
      data: { call: "t1.1", outcome: "ok", text: "a\nb", durationMs: 7, details: { run: "run_aaaaaaaaaaaa", usage, costUsd: 1 } },
    },
  );
  expect(items).toHaveLength(2);
  expect(items[1]).toMatchObject({
    kind: "tool",
    state: "ok",
    output: "a\nb",
    durationMs: 7,
    subRun: "run_aaaaaaaaaaaa",
    files: [{ path: "x.ts" }],
  });
  expect(files.get("x.ts")).toMatchObject({ atStep: 3, linesRemoved: 2 });
});

test("keeps the end of long output, within its bound", () => {
  const pieces = Array.from({ length: 30 }, (_, index) => ({
    type: "tool.streamed",
    data: { call: "t1.1", text: `${index}`.repeat(5_000) },
  }));
  const [item] = folded(toolRequest("t1.1"), ...pieces).items;
  if (item?.kind !== "tool") throw new Error("no tool");
  expect(item.output.length).toBe(60_000);
  expect(item.output.endsWith("29")).toBe(true);
  expect(item.cutCharacters).toBeGreaterThan(0);
});

test("shows when messages were read, and only the first answer", () => {
  const { items } = folded(
    { type: "message.received", data: { message: "msg_a", source: "user", mode: "steer", text: "left" } },
    { type: "message.received", data: { message: "msg_b", source: "user", mode: "queue", text: "right" } },
    { type: "model.requested", data: { call: "m2", step: 4, attempt: 1, model: "x", digest: "", messages: ["msg_a"], contextTokens: 1 } },
    { type: "permission.asked", data: { question: "ask_a", call: null, kind: "tool", text: "May I?", pattern: "bash:ls" } },
    { type: "permission.answered", data: { question: "ask_a", answer: "deny", by: "me", text: "no" } },
    { type: "permission.answered", data: { question: "ask_a", answer: "allow", by: "you" } },
  );
  expect(items[0]).toMatchObject({ kind: "message", seenAtStep: 4 });
  expect(items[1]).toMatchObject({ kind: "message", seenAtStep: null });
  expect(items[2]).toMatchObject({ kind: "note", isQuiet: true });
  expect(items[3]).toMatchObject({ kind: "question", answer: { answer: "deny", by: "me", text: "no" } });
  expect(items).toHaveLength(4);
});

test("groups consecutive denials of one host", () => {
  const denied = (host: string) => ({
    type: "network.denied",
    data: { host, port: 443, reason: "host_not_allowed", text: "no", count: 2 },
  });
  const { items } = folded(denied("a.example"), denied("a.example"), denied("b.example"));
  expect(items).toMatchObject([
    { kind: "denied", host: "a.example", count: 4 },
    { kind: "denied", host: "b.example", count: 2 },
  ]);
});

test("shows an incident with its outcome, and hides heartbeats", () => {
  const subject = { kind: "sandbox", id: "sb_aaaaaaaaaaaa" };
  const { items } = folded(
    { type: "health.changed", data: { subject, level: "late", misses: 1, condition: "running" } },
    { type: "health.restart_started", data: { subject, incident: "inc_a", why: "silent" } },
    { type: "health.restart_ended", data: { subject, incident: "inc_a", outcome: "restarted", text: "works again", durationMs: 3 } },
  );
  expect(items).toMatchObject([
    { kind: "note", isQuiet: true },
    { kind: "incident", outcome: "restarted", text: "works again" },
  ]);
});

test("shows duplicate and late events once", () => {
  const timeline = folded(streamed("a"), streamed("b"));
  foldEvent(timeline, { ...streamed("b"), version: 1, at: "2026-06-01T12:00:01.000Z", seq: 2 } as NumberedEvent);
  expect(timeline.items.map(textOf)).toEqual(["ab"]);
});

test("finds an item for every event", () => {
  const timeline = folded(
    toolRequest("t1.1"),
    toolRequest("t1.2"),
    { type: "tool.started", data: { call: "t1.1" } },
    { type: "unheard.of", data: {} },
  );
  expect([1, 2, 3, 4, 99].map((seq) => indexOfSeq(timeline, seq))).toEqual([0, 1, 0, 0, 0]);
  expect(indexOfSeq(emptyTimeline(), 5)).toBeNull();
});

test("adds up tokens and cost", () => {
  const { spent } = folded(ended(), ended());
  expect(spent.map(({ tokens, costUsd }) => [tokens, costUsd])).toEqual([
    [15, 0.5],
    [30, 1],
  ]);
});

test("folds fifty thousand events without storing them", () => {
  const timeline = emptyTimeline();
  for (let seq = 1; seq <= 50_000; seq += 1) {
    const event =
      seq % 100 === 1
        ? toolRequest(`t${seq}.1`)
        : { type: "tool.streamed", data: { call: `t${seq - ((seq - 1) % 100)}.1`, text: "line\n" } };
    foldEvent(timeline, { ...event, version: 1, at: "2026-06-01T12:00:00.000Z", seq } as NumberedEvent);
  }
  expect(timeline.items).toHaveLength(500);
  expect(indexOfSeq(timeline, 49_999)).toBe(499);
});
