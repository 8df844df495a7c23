import { expect, test } from "vitest";
import { createTestStation, type TestStation, write } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

/** The third step takes as long as the test needs. */
const script: Script = {
  turns: [
    { calls: [write("a.txt", "one\n")] },
    { say: "One." },
    { say: "a very long answer ".repeat(200), pauseMs: 500 },
    { say: "Three." },
  ],
};
const by = "me";

async function atWork(station: TestStation): Promise<string> {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  await runs.continue(run, { text: "go on", by });
  await station.until(run, "model.requested", ({ data }) => data.step === 3);
  return run;
}

test("a fork of a run at work begins after its last finished step", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const run = await atWork(station);
  const [fork] = await runs.fork(run, { by });
  expect(fork).toMatchObject({ steps: 2, forked: { run, step: 2 }, paused: { why: "forked" } });
  await expect(runs.fork(run, { by, at: 3 })).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("not finished") });
  await expect(runs.rewind(run, { by, to: 3 })).rejects.toMatchObject({ code: "conflict" });
  await runs.stop(run, { by });
});

test("a run at work is interrupted, and then rewound", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const run = await atWork(station);
  const { tail } = await runs.rewind(run, { by, to: 2 });
  expect(await runs.get(run)).toMatchObject({ status: "paused", paused: { why: "rewound" }, steps: 2, finish: null, sandbox: null });
  expect(await runs.get(tail)).toMatchObject({ status: "paused", paused: { why: "forked" }, steps: 3 });
  expect(await station.runtime.list()).toEqual([]);
  await expect(runs.wait(run)).rejects.toMatchObject({ code: "superseded", details: { rewinding: true } });
});

test("of two rewinds at once, one is refused or finds the other's result", async () => {
  await using station = await createTestStation({ script });
  const { runs, sessions } = station.verbs;
  const run = await atWork(station);
  const outcomes = await Promise.allSettled([
    runs.rewind(run, { by, to: 2 }),
    runs.rewind(run, { by, to: 2 }),
    runs.fork(run, { by, at: 2 }),
    sessions.apply(run),
    runs.send(run, { text: "meanwhile" }),
  ]);
  const codes = outcomes.map((outcome) => (outcome.status === "fulfilled" ? "done" : (outcome.reason as { code: string }).code));
  expect(codes.slice(0, 2).sort()).toEqual(["conflict", "done"]);
  for (const code of codes.slice(2)) expect(["done", "conflict", "lost", "unsupported"]).toContain(code);
  expect(await runs.get(run)).toMatchObject({ steps: 2, paused: { why: "rewound" } });
  const { rewinding, rewinds } = await station.runs.facts(run);
  expect([rewinding, rewinds]).toEqual([null, 1]);
});

test("a rewind whose process died is finished by the next", async () => {
  await using station = await createTestStation({ script: { turns: [...(script.turns ?? []).slice(0, 2), { say: "Two." }] } });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  await runs.continue(run, { text: "go on", by });
  await runs.wait(run);
  const ends = (await station.events(run)).findIndex(
    ({ type, data }) => type === "model.ended" && (data as { call?: string }).call === "m2",
  );
  const intent = { type: "run.rewind_started", version: 1, data: { by, toStep: 2, toSeq: ends + 1, tail: "run_bbbbbbbbbbbb" } };
  await station.log.append(`run/${run}`, [intent]);
  await expect(runs.continue(run, { by, text: "x" })).rejects.toMatchObject({
    code: "conflict",
    hint: expect.stringContaining("caisson rewind"),
  });
  await expect(runs.fork(run, { by })).rejects.toMatchObject({ code: "conflict" });
  expect(await runs.rewind(run, { by, to: 2 })).toMatchObject({ tail: "run_bbbbbbbbbbbb", run: { steps: 2 } });
  expect(await runs.get("run_bbbbbbbbbbbb")).toMatchObject({ finish: "done", steps: 3 });
});
