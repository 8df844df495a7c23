import { describe, expect, it } from "vitest";
import { runEvents } from "../../contract/run/run-event.ts";
import { followRun } from "./follow-run.ts";
import type { McpStation } from "./mcp-context.ts";
import type { McpCall } from "./mcp-tool.ts";

type RunEventInput = { type: string; data: Record<string, unknown> };

const askedEvent = (question: string): RunEventInput => ({ type: "permission.asked", data: { question, text: "May I?" } });
const answered = (question: string): RunEventInput => ({ type: "permission.answered", data: { question } });
const paused = (why: string): RunEventInput => ({ type: "run.paused", data: { why, text: "" } });
const continued: RunEventInput = { type: "run.continued", data: { by: "somebody" } };
const ended: RunEventInput = { type: "run.ended", data: { text: "Done.", reason: "completed" } };

/**
 * Follows a run with `past` events in its log and `future` ones to come. Returns its final message and the number of
 * events read.
 */
async function follow(past: readonly RunEventInput[], future: readonly RunEventInput[]) {
  let read = 0;
  const view = { usage: {}, sandbox: null, asked: [], status: "running", seq: past.length };
  async function* events() {
    for (const [index, event] of [...past, ...future].entries()) {
      read += 1;
      yield { ...event, seq: index + 1 };
    }
  }
  const station = { runs: { get: async () => view, events } } as unknown as McpStation;
  const call = { signal: new AbortController().signal, progress: { tell: () => {} } } as unknown as McpCall;
  const { text } = await followRun({ station, run: "run_1", waitSeconds: 60, call });
  return { text, read };
}

describe("followRun", () => {
  it("uses only event types that exist", () => {
    for (const { type } of [askedEvent("q"), answered("q"), paused("user"), continued, ended])
      expect(runEvents.byType.has(type), type).toBe(true);
  });
  it("continues after answered questions and ended pauses", async () => {
    const past = [askedEvent("q1"), paused("permission"), answered("q1"), continued, paused("user"), continued];
    expect(await follow(past, [ended])).toEqual({ text: "Done.", read: 7 });
    // The question was answered, but the run has not continued yet.
    expect(await follow(past.slice(0, 3), [continued, ended])).toEqual({ text: "Done.", read: 5 });
  });
  it("returns for a question that is open or comes later", async () => {
    const past = [askedEvent("q1"), paused("permission"), answered("q1"), continued, askedEvent("q2"), paused("permission")];
    expect(await follow(past, [ended])).toEqual({ text: null, read: 6 });
    expect(await follow(past.slice(0, 4), [askedEvent("q2"), paused("permission"), ended])).toEqual({ text: null, read: 6 });
  });
  it("returns when a person pauses the run, but not for an outage", async () => {
    expect(await follow([paused("user")], [ended])).toEqual({ text: null, read: 1 });
    expect(await follow([paused("outage")], [continued, ended])).toEqual({ text: "Done.", read: 3 });
  });
});
