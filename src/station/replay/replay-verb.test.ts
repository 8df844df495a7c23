import { describe, expect, test } from "vitest";
import { createTestStation, never, read, type TestStation, write } from "../../../test/support/testing-runs.ts";
import type { Model } from "../../agent/model/model.ts";
import { createScriptedModel, type Script } from "../../agent/model/scripted-model.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { ReplayEvent, ReplayResult, ReplayRunInput } from "../../contract/run/run-replay.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { runStream } from "../vocabulary/station-names.ts";

async function replay(station: TestStation, run: string, request: ReplayRunInput = {}) {
  const events: ReplayEvent[] = [];
  for await (const event of station.verbs.runs.replay(run, request)) events.push(event);
  const { result } = events.at(-1) as { result: ReplayResult };
  return { result, steps: events.flatMap((event) => ("step" in event ? [event.step] : [])) };
}

async function ended(station: TestStation): Promise<string> {
  const { run } = await station.verbs.runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await station.verbs.runs.wait(run);
  return run;
}

/** Returns a station whose log has the run's events after `change`. */
async function withEvents(run: string, events: readonly RunEvent[], change: (event: RunEvent) => RunEvent | null) {
  const log = createMemoryLog();
  await log.append(
    runStream(run),
    events.flatMap((event) => change(structuredClone(event)) ?? []),
  );
  return await createTestStation({ log, script: { turns: [] }, isReplayed: false });
}

/** A model that fails the test if a replay calls it. */
function onlyOnce(script: Script): { model: Model; forbid: () => void } {
  const model = createScriptedModel(script);
  let isForbidden = false;
  const stream: Model["stream"] = (...call) => {
    if (isForbidden) throw new Error("a replay called the model");
    return model.stream(...call);
  };
  const forbid = () => {
    isForbidden = true;
  };
  return { model: { ...model, stream }, forbid };
}

const script = {
  turns: [
    { think: "hm", say: "first", calls: [write("a.txt", "1\n"), read("a.txt"), read("b.txt"), read("AGENTS.md")] },
    { calls: [{ tool: "todo_write", arguments: { todo: [{ id: "1", text: "x", status: "pending" as const }] } }, { tool: "nope" }] },
    { calls: [{ tool: "edit", arguments: { wrong: true } }] },
    { say: "done" },
  ],
  costUsdPerCall: 0.25,
} satisfies Script;
const files = { "AGENTS.md": "Be kind.\n", "b.txt": "b\n" };

describe("a replay with recorded tools", () => {
  test("repeats every event, with neither model nor sandbox", async () => {
    const { model, forbid } = onlyOnce(script);
    let isForbidden = false;
    await using station = await createTestStation({
      script: model,
      files,
      wrapRuntime: (runtime) => ({
        ...runtime,
        create: async (...call) => {
          if (isForbidden) throw new Error("a replay created a sandbox");
          return await runtime.create(...call);
        },
      }),
    });
    const run = await ended(station);
    forbid();
    isForbidden = true;
    const before = await station.log.lastPosition();
    const { result, steps } = await replay(station, run);
    expect(result).toMatchObject({ isSame: true, difference: null, steps: 4, tools: "recorded", notCompared: [], session: null });
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(result.events).toBeGreaterThan(20);
    expect(await station.log.lastPosition()).toBe(before);
  });

  test("names the first event that differs, and how", async () => {
    await using station = await createTestStation({ script, files });
    const run = await ended(station);
    const events = await station.events(run);
    await using changed = await withEvents(run, events, (event) => {
      if (event.type === "tool.ended" && event.data.call === "t2.2") event.data.text = "There is such a tool.";
      return event;
    });
    const { result, steps } = await replay(changed, run);
    expect(result).toMatchObject({ isSame: false, difference: { step: 2, fields: ["text"] } });
    expect(result.difference?.recorded).toContain("There is such a tool.");
    expect(result.difference?.replayed).toContain('There is no tool \\"nope\\"');
    expect(steps.map(({ step }) => step)).toEqual([1]);
  });

  test("notices a request to the model that differs only in its conversation", async () => {
    await using station = await createTestStation({ script, files });
    const run = await ended(station);
    await using changed = await withEvents(run, await station.events(run), (event) => {
      if (event.type === "tool.ended" && event.data.call === "t1.3") event.data.text = "c";
      return event;
    });
    expect((await replay(changed, run)).result.difference).toMatchObject({ step: 2, fields: ["contextTokens", "digest"] });
  });

  test.each<[string, (event: RunEvent) => boolean]>([
    ["step 2 has no answer to the model call m2", (event) => event.type === "model.ended" && event.data.call === "m2"],
    ["step 2 has no result of the tool call t2.1 (todo_write)", (event) => event.type === "tool.ended" && event.data.call === "t2.1"],
    ["it does not begin with the creation of the run", (event) => event.type === "run.created"],
    ["step 2 is missing", (event) => event.type === "step.started" && event.data.step === 2],
  ])("fails by name: %s", async (message, isMissing) => {
    await using station = await createTestStation({ script, files });
    const run = await ended(station);
    await using damaged = await withEvents(run, await station.events(run), (event) => (isMissing(event) ? null : event));
    await expect(replay(damaged, run)).rejects.toMatchObject({ code: "gone", message: expect.stringContaining(message) });
  });

  test("of a run of an older version does not compare its requests, and says so", async () => {
    await using station = await createTestStation({ script, files });
    const run = await ended(station);
    await using older = await withEvents(run, await station.events(run), (event) => (event.type === "rules.loaded" ? null : event));
    const { result } = await replay(older, run);
    expect(result).toMatchObject({ isSame: true, notCompared: [expect.stringContaining("did not record the workspace's instructions")] });
  });

  test("repeats failures, pauses, interruptions and answers of people at once", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { say: "one two", fail: { code: "unavailable", times: 2 }, calls: [write("secret.txt", "y")] },
          { say: "Counting: one two three", pauseMs: 300 },
          { say: "All right." },
        ],
      },
    });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" }, harness: { retries: 1 } } });
    const driven = station.runs.drive(run, { signal: never });
    // Two failures exceed the retries, and the run waits for its provider.
    await station.until(run, "run.paused", ({ data }) => data.why === "outage");
    await station.runs.resume(run, { by: "me" });
    await station.until(run, "permission.asked");
    await station.runs.answer(run, { answer: "allow", by: "me" });
    await station.until(run, "model.streamed", ({ data }) => data.call === "m2");
    await station.runs.send(run, { text: "stop that", mode: "interrupt", source: "user" });
    expect((await driven).ended?.text).toBe("All right.");
    expect((await replay(station, run)).result).toMatchObject({ isSame: true, steps: 3 });
  });

  test("supplies a message after the request that was decided without it", async () => {
    await using station = await createTestStation({ script: { turns: [{ calls: [write("secret.txt", "y")] }, { say: "All right." }] } });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" } } });
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "permission.asked");
    await station.runs.send(run, { text: "be quick", mode: "steer", source: "user" });
    await station.runs.answer(run, { answer: "allow", by: "me" });
    await driven;
    const events = await station.events(run);
    const message = events.find(({ type }) => type === "message.received");
    const rest = events.filter((event) => event !== message);
    const first = rest.findIndex(({ type }) => type === "step.started");
    // As if it had come while the loop appended the first request.
    const raced = message === undefined ? [] : rest.toSpliced(first, 0, message);
    await using other = await withEvents(run, raced, (event) => event);
    expect((await replay(other, run)).result).toMatchObject({ isSame: true, steps: 2 });
  });

  test("refuses what only live tools have", async () => {
    await using station = await createTestStation({ script, files });
    const run = await ended(station);
    await expect(replay(station, run, { keep: true })).rejects.toMatchObject({ code: "invalid" });
    await expect(replay(station, run, { ignore: ["x"] })).rejects.toMatchObject({ code: "invalid" });
    await expect(replay(station, "run_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a replay that continues live", () => {
  test("replays up to the step, and then forks the run there", async () => {
    const forks: unknown[] = [];
    const forkAt = async (...call: unknown[]) => {
      forks.push(call);
      return { run: "run_bbbbbbbbbbbb" };
    };
    await using station = await createTestStation({ script, files, forkAt });
    const run = await ended(station);
    const { result, steps } = await replay(station, run, { liveFrom: 2 });
    expect(steps.map(({ step }) => step)).toEqual([1, 2]);
    expect(result).toMatchObject({ isSame: true, steps: 2, fork: "run_bbbbbbbbbbbb" });
    expect(forks).toEqual([[run, 2, { labels: { "replay-of": run } }]]);
    await expect(replay(station, run, { liveFrom: 5 })).rejects.toMatchObject({ code: "not_found", hint: "It took 4 steps." });
    await expect(replay(station, run, { liveFrom: 1, tools: "live" })).rejects.toMatchObject({ code: "invalid" });
  });
});

describe("a replay with live tools", () => {
  const count: Script = {
    turns: [
      { calls: [write("a.txt", "1\n"), read("b.txt")] },
      { calls: [read("a.txt"), { tool: "edit", arguments: { path: "b.txt", old: "b", new: "c" } }] },
      { say: "done" },
    ],
  };

  test("runs them on a copy of the files that the run began with, and removes it", async () => {
    await using station = await createTestStation({ script: count, files });
    const run = await ended(station);
    const { result, steps } = await replay(station, run, { tools: "live" });
    expect(result).toMatchObject({ isSame: true, drift: [], session: null, steps: 3 });
    expect(steps[1]).toEqual({
      step: 2,
      calls: [
        { call: "t2.1", name: "read", outcome: "ok", isSame: true },
        { call: "t2.2", name: "edit", outcome: "ok", isSame: true },
      ],
    });
    expect(await station.runtime.list()).toEqual([]);
    expect((await station.verbs.sessions.list()).sessions.map(({ id }) => id)).toEqual([run]);
  });

  test("stops after the first step with another result, and shows the lines", async () => {
    await using station = await createTestStation({ script: count, files });
    const run = await ended(station);
    const events = await station.events(run);
    const { writeFile } = await import("node:fs/promises");
    await writeFile(`${station.folder}/b.txt`, "other\n");
    const { result, steps } = await replay(station, run, { tools: "live" });
    expect(events.length).toBeGreaterThan(0);
    expect(steps.map(({ step }) => step)).toEqual([1]);
    expect(result).toMatchObject({ isSame: false, difference: null, drift: [{ step: 1, call: "t1.2", name: "read" }] });
    expect(result.drift[0]?.diff).toMatch(/^-.*b\n\+.*other/m);
    const ignoring = await replay(station, run, { tools: "live", ignore: ["(b|other)$", "^Replaced", "not found"] });
    expect(ignoring.result.drift.map(({ call }) => call)).toEqual(["t2.2"]);
    expect(await station.runtime.list()).toEqual([]);
  });

  test("keeps the copy if it should, and refuses malformed patterns first", async () => {
    await using station = await createTestStation({ script: count, files });
    const run = await ended(station);
    await expect(replay(station, run, { tools: "live", ignore: ["("] })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining('cannot ignore "("'),
    });
    const { result } = await replay(station, run, { tools: "live", keep: true });
    const { sessions } = await station.verbs.sessions.list();
    expect(sessions.map(({ id }) => id).sort()).toEqual([run, result.session].sort());
    expect(await station.runtime.list()).toEqual([]);
  });
});
