import { describe, expect, test } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import type { Model, ModelMessage } from "../../agent/model/model.ts";
import { createScriptedModel, type Script } from "../../agent/model/scripted-model.ts";

const write = (path: string, content = "x") => ({ tool: "write", arguments: { path, content } });
const read = (path: string) => ({ tool: "read", arguments: { path } });

/** Wraps a scripted model and records the messages of each call. */
function listening(script: Script): { model: Model; sent: ModelMessage[][] } {
  const scripted = createScriptedModel(script);
  const sent: ModelMessage[][] = [];
  return {
    sent,
    model: {
      ...scripted,
      stream(request, options) {
        sent.push([...request.messages]);
        return scripted.stream(request, options);
      },
    },
  };
}

async function ended(station: TestStation, request: Partial<Parameters<TestStation["verbs"]["runs"]["start"]>[0]> = {}) {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder }, ...request });
  return await runs.wait(run);
}

const continued = async ({ verbs: { runs } }: TestStation, run: string, request: { text: string; model?: string }) => {
  await runs.continue(run, { by: "me", ...request });
  return await runs.wait(run);
};

const toolsEnded = async (station: TestStation, run: string) =>
  (await station.events(run)).flatMap((event) => (event.type === "tool.ended" ? [event.data] : []));

describe("continuing a run that is done", () => {
  test("sends the message after the whole conversation, on the files of the last turn", async () => {
    const { model, sent } = listening({
      turns: [{ calls: [write("a.txt", "first\n")] }, { say: "Written." }, { calls: [read("a.txt")] }, { say: "Read." }],
    });
    await using station = await createTestStation({ script: model });
    const first = await ended(station);
    expect(first).toMatchObject({ finish: "done", steps: 2 });
    const before = sent[1]?.length ?? 0;
    const second = await continued(station, first.run, { text: "now read it" });
    expect(second).toMatchObject({ run: first.run, status: "ended", finish: "done", steps: 4 });
    const [, lastOfFirst = [], firstOfSecond = []] = sent;
    // The whole conversation so far, the last answer, our note, and the message.
    expect(firstOfSecond.slice(0, before)).toEqual(lastOfFirst);
    expect(firstOfSecond.slice(before)).toEqual([
      { role: "assistant", parts: [{ kind: "text", text: "Written." }] },
      { role: "user", text: expect.stringMatching(/^\[system\] This run had ended \(done\)/) },
      { role: "user", text: "now read it" },
    ]);
    expect((await toolsEnded(station, first.run)).at(-1)).toMatchObject({ outcome: "ok", text: expect.stringContaining("first") });
    expect(await station.runtime.list()).toEqual([]);
  });

  test("grants the agent's full steps and time, but keeps the run's cost limit", async () => {
    const turns = Array.from({ length: 6 }, (_, n) => ({ calls: [write(`f${n}.txt`)] }));
    const script = { turns: [{ say: "One." }, { say: "Two." }, ...turns], costUsdPerCall: 1 };
    await using station = await createTestStation({ script, agents: { coder: { harness: { maxSteps: 1 } } } });
    const { run } = await ended(station, { budgets: { costUsd: 2 } });
    const second = await continued(station, run, { text: "two" });
    expect(second).toMatchObject({ finish: "done", steps: 2, costUsd: 2, budgets: { costUsd: 2, steps: 2 } });
    await expect(continued(station, run, { text: "three" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("spent $2.0000; the limit is $2"),
      hint: expect.stringContaining("--max-cost"),
    });
    // Budgets in the request are for the next turn alone.
    await station.verbs.runs.continue(run, { text: "three", by: "me", budgets: { costUsd: 2, steps: 5 } });
    expect(await station.verbs.runs.wait(run)).toMatchObject({ finish: "budget", steps: 4, costUsd: 4, budgets: { costUsd: 4, steps: 7 } });
  });

  test("can change the run's model for good", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "One." }, { say: "Two." }] } });
    const { run, model } = await ended(station);
    expect(await continued(station, run, { text: "two", model: "scripted:other" })).toMatchObject({ model: "scripted:other" });
    expect(model).toBe("scripted");
  });

  test("is refused for unknown runs and sub-runs, and leaves no trace", async () => {
    const script = {
      turns: [{ calls: [{ tool: "agent", arguments: { agent: "helper", task: "help" } }] }, { say: "Done." }],
      agents: { helper: [{ say: "Helped." }] },
    };
    await using station = await createTestStation({ script, agents: { coder: { agents: ["helper"] }, helper: {} } });
    const { runs, sessions } = station.verbs;
    const { run } = await ended(station);
    const [sub] = (await runs.list({ parent: run })).runs;
    const before = (await station.events(run)).length;
    await expect(continued(station, run, { text: "  " })).rejects.toMatchObject({ code: "invalid" });
    await expect(continued(station, "run_aaaaaaaaaaaa", { text: "more" })).rejects.toMatchObject({ code: "not_found" });
    await expect(continued(station, sub?.run ?? "", { text: "more" })).rejects.toMatchObject({
      code: "invalid",
      hint: expect.stringContaining(run),
    });
    const open = await runs.start({ task: "later", detached: true });
    await expect(continued(station, open.run, { text: "more" })).rejects.toMatchObject({
      code: "conflict",
      hint: expect.stringContaining(`caisson send ${open.run}`),
    });
    const lock = await station.sessions.lock(run, "run_bbbbbbbbbbbb");
    await expect(continued(station, run, { text: "more" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("in use"),
    });
    await lock[Symbol.asyncDispose]();
    await sessions.discard(run, { force: false });
    await expect(continued(station, run, { text: "more" })).rejects.toMatchObject({ code: "gone" });
    expect(await station.events(run)).toHaveLength(before);
  });

  test("followers from the start see both turns; waiters wait for the second end", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "One." }, { say: "Two." }] } });
    const { runs } = station.verbs;
    const { run } = await ended(station);
    await continued(station, run, { text: "two" });
    const ends: string[] = [];
    for await (const event of runs.events(run, { follow: true })) if (event.type === "run.ended") ends.push(event.data.text);
    expect(ends).toEqual(["One.", "Two."]);
  });
});

describe("a run that ended before it was done", () => {
  test("continues only when resumed with a higher limit", async () => {
    const turns = [{ calls: [write("a.txt")] }, { calls: [write("b.txt")] }, { say: "Done." }];
    await using station = await createTestStation({ script: { turns }, agents: { coder: { harness: { maxSteps: 1 } } } });
    const { runs } = station.verbs;
    const { run, finish } = await ended(station);
    expect(finish).toBe("max_steps");
    await expect(runs.resume(run, { by: "me" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("took 1 steps; the limit is 1"),
      hint: "Raise it with --max-steps.",
    });
    await runs.resume(run, { by: "me", budgets: { steps: 10 } });
    expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 3 });
    await expect(runs.resume(run, { by: "me" })).rejects.toMatchObject({ code: "conflict", hint: expect.stringContaining("caisson send") });
  });

  test("that ended with a model error asks the model again when resumed", async () => {
    const turns = [{ calls: [write("a.txt")] }, { fail: { code: "invalid" as const }, say: "unreached" }, { say: "Done." }];
    await using station = await createTestStation({ script: { turns } });
    const { runs } = station.verbs;
    const { run, finish } = await ended(station);
    expect(finish).toBe("error");
    await runs.resume(run, { by: "me" });
    expect(await runs.wait(run)).toMatchObject({ finish: "done" });
  });

  test("that was stopped at a question repeats neither the question nor the call", async () => {
    const turns = [{ calls: [write("secret.txt"), write("other.txt")] }, { say: "I see.", expect: { news: ["has not been made since"] } }];
    await using station = await createTestStation({ script: { turns }, agents: { coder: { permissions: { "write:secret*": "ask" } } } });
    const { runs } = station.verbs;
    const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder }, attended: true });
    await station.until(run, "permission.asked");
    await runs.stop(run, { by: "me" });
    expect(await runs.get(run)).toMatchObject({ finish: "cancelled", status: "ended" });
    expect(await continued(station, run, { text: "leave that" })).toMatchObject({ finish: "done", asked: [] });
    expect((await toolsEnded(station, run)).map(({ outcome }) => outcome)).toEqual(["interrupted", "interrupted"]);
  });

  test("that ended as stuck is not stuck again at once", async () => {
    const same = { calls: [read("none.txt")] };
    const turns = [...Array.from({ length: 6 }, () => same), { say: "Done." }];
    await using station = await createTestStation({ script: { turns } });
    const { run, finish } = await ended(station);
    expect(finish).toBe("stuck");
    expect(await continued(station, run, { text: "do something else" })).toMatchObject({ finish: "done" });
  });
});
