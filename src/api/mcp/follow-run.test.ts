import { describe, expect, it } from "vitest";
import { runEvents } from "../../contract/run-event.ts";
import { followRun } from "./follow-run.ts";
import type { McpStation } from "./mcp-context.ts";
import type { McpCall } from "./mcp-tool.ts";

type Told = { type: string; data: Record<string, unknown> };

const asked = (question: string): Told => ({ type: "permission.asked", data: { question, text: "May I?" } });
const answered = (question: string): Told => ({ type: "permission.answered", data: { question } });
const paused = (why: string): Told => ({ type: "run.paused", data: { why, text: "" } });
const continued: Told = { type: "run.continued", data: { by: "somebody" } };
const ended: Told = { type: "run.ended", data: { text: "Done.", reason: "completed" } };

/** Follows a run of which `past` has happened and `future` comes: its last words, and how many events were read. */
async function follow(past: readonly Told[], future: readonly Told[]) {
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
  it("names only events that there are", () => {
    for (const { type } of [asked("q"), answered("q"), paused("user"), continued, ended])
      expect(runEvents.byType.has(type), type).toBe(true);
  });
  it("goes on after questions that were answered and pauses that are over", async () => {
    const past = [asked("q1"), paused("permission"), answered("q1"), continued, paused("user"), continued];
    expect(await follow(past, [ended])).toEqual({ text: "Done.", read: 7 });
    // Answered, and not yet continued.
    expect(await follow(past.slice(0, 3), [continued, ended])).toEqual({ text: "Done.", read: 5 });
  });
  it("returns for the question that is open now, or for one to come", async () => {
    const past = [asked("q1"), paused("permission"), answered("q1"), continued, asked("q2"), paused("permission")];
    expect(await follow(past, [ended])).toEqual({ text: null, read: 6 });
    expect(await follow(past.slice(0, 4), [asked("q2"), paused("permission"), ended])).toEqual({ text: null, read: 6 });
  });
  it("returns when somebody paused it, and not for an outage", async () => {
    expect(await follow([paused("user")], [ended])).toEqual({ text: null, read: 1 });
    expect(await follow([paused("outage")], [continued, ended])).toEqual({ text: "Done.", read: 3 });
  });
});
