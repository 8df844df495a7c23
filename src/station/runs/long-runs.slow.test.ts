import { describe, expect, test } from "vitest";
import { createTestStation } from "../../../test/support/testing-runs.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import { createScriptedModel, type Script } from "../../agent/model/scripted-model.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";

const of = <Type extends RunEvent["type"]>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const readMissing = { tool: "read", arguments: { path: "missing.txt" } };

/** Wraps a scripted model and records the requests. */
function listening(script: Script): Model & { requests: ModelRequest[] } {
  const model = createScriptedModel(script);
  const requests: ModelRequest[] = [];
  return {
    ...model,
    requests,
    stream(request, options) {
      requests.push(structuredClone(request));
      return model.stream(request, options);
    },
  };
}

describe("a long run", () => {
  const big = (number: number) => ({ say: `fact ${number}`, calls: [write(`f${number}.txt`, "x".repeat(3000))] });
  const compaction = { threshold: 0.85, protectTokens: 500, enabled: true };

  test("compacts repeatedly, keeps task, rules and summary, and recalls the rest", async () => {
    const turns = [
      ...Array.from({ length: 12 }, (_, number) => big(number)),
      { calls: [{ tool: "recall", arguments: { query: "fact 0" } }] },
      { say: "Done.", expect: { news: ["m1: fact 0"] } },
    ];
    const model = listening({ turns, summary: "SUMMARY", contextTokens: 4000, costUsdPerCall: 1 });
    await using station = await createTestStation({ script: model, files: { "AGENTS.md": "RULE ONE" } });
    const { state, events } = await station.finish({ task: "THE TASK", definition: { harness: { compaction } } });
    expect(state.ended).toEqual({ reason: "done", text: "Done." });
    const compacted = of(events, "context.compacted");
    expect(compacted.length).toBeGreaterThan(1);
    expect(compacted.every((event) => event.data.how === "model" && event.data.tokensAfter < event.data.tokensBefore)).toBe(true);
    const summaries = model.requests.filter((request) => request.from.purpose === "summary");
    expect(JSON.stringify(summaries[0])).toContain("fact 0");
    expect(JSON.stringify(summaries[1])).toContain("SUMMARY");
    expect(summaries.every((request) => request.messages.every((message) => message.role !== "tool"))).toBe(true);
    for (const request of model.requests) expect(JSON.stringify(request.messages)).toMatch(/RULE ONE.*THE TASK/s);
    expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("SUMMARY");
    // Summaries cost money like other calls.
    expect(state.costUsd).toBe(model.requests.length);
  });

  test("lists its steps if no model can summarize them, and keeps earlier lists", async () => {
    const turns = [...Array.from({ length: 7 }, (_, number) => big(number)), { say: "Done." }];
    await using station = await createTestStation({ script: { turns, contextTokens: 4000, summary: { fail: "invalid" } } });
    const { state, events } = await station.finish({ definition: { harness: { compaction } } });
    expect(state.ended?.reason).toBe("done");
    const compacted = of(events, "context.compacted");
    expect(compacted.every((event) => event.data.how === "cut")).toBe(true);
    expect(compacted.at(-1)?.data.summary).toMatch(/Said: fact 0.*Called write.*→ Wrote/s);
  });

  test("compacts when the provider rejects its length, and ends the second time", async () => {
    const turns = (times: number) => [big(0), big(1), big(2), { say: "Done.", fail: { code: "too_large" as const, times } }];
    const long = { harness: { compaction: { ...compaction, protectTokens: 40_000 } } };
    await using station = await createTestStation({ script: { turns: turns(1) } });
    const { state, events } = await station.finish({ definition: long });
    expect(state.ended).toEqual({ reason: "done", text: "Done." });
    expect(of(events, "context.compacted")).toHaveLength(1);
    expect(of(events, "model.failed").map((event) => event.data.retryInMs)).toEqual([0]);
    await using hopeless = await createTestStation({ script: { turns: turns(2) } });
    const after = await hopeless.finish({ definition: long });
    expect(after.state.ended).toMatchObject({ reason: "error" });
    expect(of(after.events, "context.compacted")).toHaveLength(1);
    await using off = await createTestStation({ script: { turns: turns(1) } });
    expect((await off.finish({ definition: { harness: { compaction: { ...compaction, enabled: false } } } })).state.ended?.reason).toBe(
      "error",
    );
  });
});

describe("a looping run", () => {
  const turns = (count: number) => Array.from({ length: count }, () => ({ calls: [readMissing] }));
  const actions = (events: readonly RunEvent[]) => of(events, "loop.noticed").map((event) => event.data.action);
  const harness = (action: "fail" | "pause" | "summarize", more: { onAsk?: "deny" | "wait" } = {}) => ({
    definition: { harness: { doomLoop: { threshold: 3, action }, ...more } },
  });

  test("is nudged first, and continues if the agent reacts", async () => {
    const listens = { say: "I see. Done.", expect: { news: ["This is not making progress"] } };
    await using station = await createTestStation({ script: { turns: [...turns(3), listens] } });
    const { state, events } = await station.finish(harness("fail"));
    expect([state.ended?.reason, actions(events)]).toEqual(["done", ["nudged"]]);
  });

  test("then fails, pauses or summarizes, as configured", async () => {
    await using failing = await createTestStation({ script: { turns: turns(20) } });
    const failed = await failing.finish(harness("fail"));
    expect([failed.state.ended?.reason, failed.state.step, actions(failed.events)]).toEqual(["stuck", 6, ["nudged", "failed"]]);

    await using unattended = await createTestStation({ script: { turns: turns(20) } });
    const alone = await unattended.finish(harness("pause", { onAsk: "deny" }));
    expect([alone.state.ended?.reason, actions(alone.events)]).toEqual(["stuck", ["nudged", "failed"]]);

    await using asking = await createTestStation({ script: { turns: [...turns(6), { say: "Done." }] } });
    const run = await asking.start(harness("pause"));
    const driven = asking.runs.drive(run, { signal: new AbortController().signal });
    expect((await asking.until(run, "permission.asked")).data.kind).toBe("stuck");
    await asking.runs.answer(run, { answer: "allow", by: "me" });
    expect((await driven).ended?.reason).toBe("done");

    await using telling = await createTestStation({ script: { turns: turns(40) } });
    const result = await telling.finish(harness("summarize"));
    expect([result.state.ended?.reason, actions(result.events)]).toEqual([
      "stuck",
      ["nudged", "summarised", "summarised", "summarised", "failed"],
    ]);
  });
});

describe("hooks in a run", () => {
  test("block a call, object to a result, or stop the run", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [write("a.txt", "1"), write("b.txt", "2")] },
          { say: "Done.", expect: { news: ["blocked this call: not a.txt", "objects to the result: look again"] } },
        ],
      },
      hooks: {
        before: [
          ({ arguments: args }) =>
            (args as { path: string }).path === "a.txt" ? { kind: "block", reason: "not a.txt" } : { kind: "continue" },
        ],
        after: [({ outcome }) => (outcome === "ok" ? { kind: "block", reason: "look again" } : { kind: "continue" })],
      },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(of(events, "tool.ended").map((event) => event.data.outcome)).toEqual(["blocked", "ok"]);
    await using stopping = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "1")] }, { say: "Never." }] },
      hooks: { before: [() => ({ kind: "interrupt", reason: "enough" })] },
    });
    expect((await stopping.finish()).state.ended).toMatchObject({ reason: "cancelled", text: expect.stringContaining("enough") });
  });
});

describe("a long provider outage", () => {
  const failing = (times: number) => ({ turns: [{ fail: { code: "unavailable" as const, times }, say: "Here again." }] });
  const harness = (settings: object) => ({ definition: { harness: { retries: 1, ...settings } as never } });

  test("pauses the run, and a resume sends the whole conversation again", async () => {
    await using station = await createTestStation({ script: failing(2) });
    const run = await station.start(harness({}));
    const startedMs = performance.now();
    const driven = station.runs.drive(run, { signal: new AbortController().signal });
    const paused = await station.until(run, "run.paused");
    expect(paused.data).toMatchObject({ why: "outage", text: expect.stringContaining("The model does not answer") });
    await station.runs.resume(run, { by: "test" });
    const state = await driven;
    expect(state).toMatchObject({ ended: { reason: "done", text: "Here again." }, step: 1 });
    // The pause between two attempts is half a second and does not count as work.
    expect(state.workedMs).toBeLessThanOrEqual(performance.now() - startedMs - 490);
  });

  test("ends the drive of an unattended run, which continues later", async () => {
    await using station = await createTestStation({ script: failing(2) });
    const run = await station.start(harness({ onAsk: "deny" }));
    await expect(station.runs.drive(run, { signal: new AbortController().signal })).rejects.toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining(`caisson resume ${run}`),
    });
    expect((await station.runs.state(run)).status).toBe("paused");
    await station.runs.resume(run, { by: "test" });
    expect((await station.runs.drive(run, { signal: new AbortController().signal })).ended?.reason).toBe("done");
  });

  test("ends the run if configured, and at once for errors that are not retryable", async () => {
    await using stopping = await createTestStation({ script: failing(9) });
    expect((await stopping.finish(harness({ onOutage: "stop" }))).state.ended?.reason).toBe("error");
    await using refused = await createTestStation({ script: { turns: [{ fail: { code: "invalid" as const }, say: "Never." }] } });
    expect((await refused.finish(harness({}))).state.ended?.reason).toBe("error");
  });
});

test("waits until the time that a provider names before it asks again", async () => {
  const scripted = createScriptedModel({ turns: [{ say: "Done." }] });
  let calls = 0;
  const busy: Model = {
    ...scripted,
    async *stream(request, options) {
      calls += 1;
      if (calls < 3) throw new CaissonError("busy", "Come back later.", { details: { retryAfterMs: calls === 1 ? 20 : 90_000 } });
      yield* scripted.stream(request, options);
    },
  };
  await using station = await createTestStation({ script: busy });
  const run = await station.start();
  const driven = station.runs.drive(run, { signal: new AbortController().signal });
  expect((await station.until(run, "model.failed")).data.retryInMs).toBe(20);
  await station.until(run, "model.failed", (event) => event.data.retryInMs === 90_000);
  await station.runs.stop(run, { by: "test" });
  expect((await driven).ended?.reason).toBe("cancelled");
});
