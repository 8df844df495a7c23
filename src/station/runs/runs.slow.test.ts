import { describe, expect, test } from "vitest";
import { createTestStation, ended, never, read, write } from "../../../test/support/testing-runs.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";

const types = (events: readonly RunEvent[]) => events.map((event) => event.type);

describe("a run", () => {
  test("records an intent before and an outcome after each effect, from task to end", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { say: "Writing.", calls: [write("a.txt", "hello\n")], expect: { contains: ["You are coder.", "do it"] } },
          { calls: [read("a.txt")], expect: { news: ["Wrote 6 bytes"] } },
          { say: "Done.", expect: { news: ["hello"], contains: ["do it"] } },
        ],
      },
    });
    const { state, events } = await station.finish();
    expect(state.ended).toEqual({ reason: "done", text: "Done." });
    const eventTypes = types(events).filter((type) => type !== "model.streamed");
    expect(eventTypes.slice(0, 9)).toEqual([
      "run.created",
      "run.claimed",
      "run.sandboxed",
      "step.started",
      "model.requested",
      "model.ended",
      "tool.requested",
      "tool.started",
      "file.changed",
    ]);
    expect(eventTypes.at(-1)).toBe("run.ended");
    expect(eventTypes.filter((type) => type === "run.ended")).toHaveLength(1);
    expect(await station.runtime.list()).toEqual([]);
  });

  test("reports invalid tool calls to the model instead of failing", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [{ tool: "fly", arguments: {} }, { tool: "read", arguments: { pth: 1 } }, read("missing.txt")] },
          { say: "I see.", expect: { news: ["There is no tool", "are invalid", "missing.txt"] } },
        ],
      },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(ended(events).map((each) => each.outcome)).toEqual(["error", "error", "error"]);
  });

  test("retries transient model failures, and gives up on others", async () => {
    await using station = await createTestStation({
      script: { turns: [{ say: "There.", fail: { code: "unavailable", times: 1 } }] },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(events.filter((event) => event.type === "model.requested").map((event) => event.data.attempt)).toEqual([1, 2]);
    await using broken = await createTestStation({ script: { turns: [{ say: "There.", fail: { code: "invalid", times: 1 } }] } });
    expect((await broken.finish()).state.ended).toMatchObject({ reason: "error", text: expect.stringContaining("Scripted failure") });
  });

  test("prompts a model that returns nothing once more, then ends", async () => {
    await using station = await createTestStation({ script: { turns: [{}, { say: "Sorry. Done." }] } });
    const { state } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    await using mute = await createTestStation({ script: { turns: [{}, {}, {}, {}] } });
    expect((await mute.finish()).state.ended?.reason).toBe("error");
  });
});

describe("messages", () => {
  test("reach the next model call if steered, or the end of the turn if queued", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [write("secret.txt", "y")] },
          { calls: [read("secret.txt")], expect: { news: ["look at b"], absent: ["later"] } },
          { say: "First part done." },
          { say: "All done.", expect: { news: ["later"] } },
        ],
      },
    });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" } } });
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "permission.asked");
    const steer = await station.runs.send(run, { text: "look at b", mode: "steer", source: "user" });
    const queued = await station.runs.send(run, { text: "later", mode: "queue", source: "user" });
    await station.runs.answer(run, { answer: "allow", by: "me" });
    const state = await driven;
    expect(state.ended).toEqual({ reason: "done", text: "All done." });
    expect(state.receipts.get(steer)).toBe("m2");
    expect(state.receipts.get(queued)).toBe("m4");
  });

  test("interrupt the model's answer, and the conversation keeps its beginning", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { say: "Counting: one two three", pauseMs: 300 },
          { say: "All right.", expect: { contains: ["Counting:"], news: ["stop that"] } },
        ],
      },
    });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "model.streamed");
    await station.runs.send(run, { text: "stop that", mode: "interrupt", source: "user" });
    const state = await driven;
    expect(state.ended?.text).toBe("All right.");
    expect((await station.events(run)).find((event) => event.type === "model.ended")?.data).toMatchObject({ stop: "interrupted" });
  });

  test("that stop a run end it as cancelled, even without a driver", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "word ".repeat(50), pauseMs: 1000 }] } });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "model.requested");
    await station.runs.stop(run, { by: "me" });
    expect((await driven).ended?.reason).toBe("cancelled");
    const idle = await station.start();
    await station.runs.stop(idle, { by: "me" });
    expect((await station.runs.state(idle)).ended?.reason).toBe("cancelled");
  });
});

describe("compaction", () => {
  test("keeps the task, the rules and the latest steps, and the complete log", async () => {
    const long = "x".repeat(2000);
    const turns = [
      ...Array.from({ length: 8 }, (_, n) => ({ calls: [write(`f${n}.txt`, `${n} ${long}`)] })),
      { say: "Done.", expect: { contains: ["do it", "Always use tabs", "(scripted summary)"], absent: ["0 xxx"] } },
    ];
    await using station = await createTestStation({
      script: { contextTokens: 3000, turns, summary: "(scripted summary)" },
      files: { "AGENTS.md": "Always use tabs.\n" },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(events.filter((event) => event.type === "context.compacted").length).toBeGreaterThan(0);
    expect(events.filter((event) => event.type === "tool.requested")).toHaveLength(8);
  });
});

describe("hooks", () => {
  test("block a call with a reason for the model, or interrupt the run", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "x")] }, { say: "Done.", expect: { news: ["not on Sundays"] } }] },
      hooks: { before: [(call) => (call.tool === "write" ? { kind: "block", reason: "not on Sundays" } : { kind: "continue" })] },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(ended(events)).toMatchObject([{ outcome: "blocked" }]);
    await using strict = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "x")] }, { say: "Done." }] },
      hooks: { before: [() => ({ kind: "block", reason: "x" }), () => ({ kind: "interrupt", reason: "enough" })] },
    });
    expect((await strict.finish()).state.ended).toMatchObject({ reason: "cancelled", text: expect.stringContaining("enough") });
  });
});

describe("sub-agents", () => {
  test("work in the same workspace and count towards the parent's budgets", async () => {
    await using station = await createTestStation({
      script: {
        costUsdPerCall: 1,
        turns: [
          { calls: [{ tool: "agent", arguments: { agent: "helper", task: "write b" } }] },
          { calls: [read("b.txt")], expect: { news: ["b is written"] } },
          { say: "Done.", expect: { news: ["from the helper"] } },
        ],
        agents: {
          helper: [
            { calls: [write("b.txt", "from the helper")], expect: { contains: ["write b"], absent: ["do it"] } },
            { say: "b is written" },
          ],
        },
      },
      agents: { helper: { description: "helps" } },
    });
    const { state } = await station.finish({ definition: { agents: ["helper"] } });
    expect(state.ended?.reason).toBe("done");
    expect(state.costUsd).toBe(5);
    const { runs } = await station.verbs.runs.list();
    expect(runs).toHaveLength(2);
    expect(runs.find(({ parent }) => parent !== null)).toMatchObject({ parent: { run: state.run, call: "t1.1" } });
  });
});

describe("ownership", () => {
  test("allows one holder at a time, and lets another take over from a dead one", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "x")] }, { say: "slow words here", pauseMs: 500 }] },
    });
    const run = await station.start();
    const releaseController = new AbortController();
    const driven = station.runs.drive(run, { signal: releaseController.signal }).catch((error: unknown) => error);
    await station.until(run, "tool.ended");
    releaseController.abort();
    await driven;
    const state = await station.second().drive(run, { signal: never });
    expect(state.ended?.reason).toBe("done");
    const events = await station.events(run);
    expect(events.filter((event) => event.type === "tool.started")).toHaveLength(1);
    expect(events.filter((event) => event.type === "run.claimed").map((event) => event.data.epoch)).toEqual([1, 2]);
  });

  test("refuses a second run in a session, and names the first", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "word word word", pauseMs: 2000 }] } });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "model.requested");
    const { session, definition } = await station.runs.state(run);
    const other = await station.runs.create({ definition, task: "also", model: "scripted", session });
    await expect(station.runs.drive(other, { signal: never })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(run),
    });
    await station.runs.stop(run, { by: "me" });
    await driven;
  });
});
