import { expect, test } from "vitest";
import { createTestStation, type TestStation, write } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

const script: Script = {
  turns: [
    { calls: [write("a.txt", "one\n")] },
    { say: "One." },
    { calls: [write("a.txt", "two\n"), write("b.txt", "new\n")], expect: { absent: ["the wrong way"] } },
    { say: "Two." },
  ],
  costUsdPerCall: 1,
};
const strayed: Script = {
  turns: [...script.turns.slice(0, 2), { calls: [write("a.txt", "wrong\n")] }, { say: "Wrong." }],
  costUsdPerCall: 1,
};

const by = "me";

async function content({ verbs: { sessions } }: TestStation, name: string, path: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of sessions.readFile(name, { path })) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

async function twoTurns(station: TestStation): Promise<string> {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  await runs.continue(run, { text: "the wrong way", by });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4 });
  return run;
}

test("takes a run back to a step, and preserves what came after as a fork", async () => {
  await using station = await createTestStation({ script: strayed, files: { "a.txt": "old\n" } });
  const { runs } = station.verbs;
  const run = await twoTurns(station);
  const { run: view, tail, files } = await runs.rewind(run, { to: 2, by });
  expect(view).toMatchObject({ status: "paused", paused: { why: "rewound" }, finish: null, steps: 2, costUsd: 4 });
  expect(files).toEqual(["a.txt"]);
  expect(await content(station, run, "a.txt")).toBe("one\n");
  expect(await runs.get(tail)).toMatchObject({ status: "ended", finish: "done", steps: 4, costUsd: 0, forked: { run, step: 4 } });
  expect(await content(station, tail, "a.txt")).toBe("wrong\n");
  expect((await station.runs.state(tail)).lastText).toBe("Wrong.");
  await expect(runs.rewind(run, { to: 2, by })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("is as it was"),
  });
  // The state is folded as after the step, however often it is read; only what was spent counts on.
  const state = await station.runs.state(run);
  expect(state).toMatchObject({ step: 2, position: 2, lastText: "One.", ended: null, costUsd: 4, rewinds: 1 });
  expect(JSON.stringify(state.conversation.messages())).not.toContain("the wrong way");
  // The head has the same facts as the fold.
  for (const each of [run, tail]) {
    const facts = await station.runs.facts(each);
    const folded = await station.runs.state(each);
    expect(Object.fromEntries(Object.keys(facts).map((key) => [key, folded[key as keyof typeof facts]]))).toEqual(facts);
  }
});

test("a rewound run continues from the step, and can be rewound again", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  for (const costUsd of [4, 6, 8]) {
    await runs.continue(run, { text: "go on", by });
    expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4, costUsd });
    expect(await content(station, run, "a.txt")).toBe("two\n");
    expect(await runs.rewind(run, { to: 2, by })).toMatchObject({ run: { steps: 2, status: "paused" } });
    expect(await content(station, run, "a.txt")).toBe("one\n");
  }
  expect(await runs.rewind(run, { to: 0, by })).toMatchObject({ run: { steps: 0 } });
  await runs.resume(run, { by });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 2 });
  expect((await station.runs.state(run)).filesChanged).toEqual(new Set(["a.txt"]));
  // Each rewind left a fork, and each can be read and forked itself.
  const tails = (await runs.list()).runs.filter(({ forked }) => forked?.run === run);
  expect(tails.map(({ steps }) => steps).sort()).toEqual([2, 4, 4, 4]);
  const [fork] = await runs.fork(tails.find(({ steps }) => steps === 4)?.run ?? "", { by });
  expect(fork).toMatchObject({ steps: 4 });
});

test("what the agent recalls ends with the step that it was taken back to", async () => {
  const recall = { tool: "recall", arguments: { query: "needle" } };
  const turns = [{ say: "One." }, { calls: [write("needle.txt", "x\n")] }, { say: "Two." }];
  await using station = await createTestStation({ script: { turns: [...turns] } });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  await runs.continue(run, { text: "go on", by });
  await runs.wait(run);
  await runs.rewind(run, { to: 1, by });
  const { createScriptedModel } = await import("../../agent/model/scripted-model.ts");
  const model = createScriptedModel({ turns: [{ say: "One." }, { calls: [recall] }, { say: "Done." }] });
  await station.runs.send(run, { text: "look", mode: "steer", source: "user" });
  await station.runs.drive(run, { signal: new AbortController().signal, model: async () => model });
  const found = (await station.events(run)).findLast(({ type }) => type === "tool.ended");
  expect(found).toMatchObject({ data: { text: "No matches in the history." } });
});

test("refuses what it could not restore, before it changes anything", async () => {
  await using station = await createTestStation({ script: strayed });
  const { runs, sessions } = station.verbs;
  const run = await twoTurns(station);
  const { seq } = await runs.get(run);
  await expect(runs.rewind(run, { to: 9, by })).rejects.toMatchObject({ code: "not_found" });
  await expect(runs.rewind(run, { to: 1, by })).rejects.toMatchObject({ code: "unsupported" });
  await expect(runs.rewind("run_bbbbbbbbbbbb", { to: 0, by })).rejects.toMatchObject({ code: "not_found" });
  const { session } = await runs.get(run);
  const other = await runs.start({ task: "do it", session: { id: session } });
  await runs.wait(other.run);
  await expect(runs.rewind(run, { to: 0, by })).rejects.toMatchObject({ code: "conflict", hint: expect.stringContaining("fork") });
  expect(await runs.get(run)).toMatchObject({ seq });
  await sessions.discard(session);
  await expect(runs.rewind(run, { to: 0, by })).rejects.toMatchObject({ code: "gone" });
});
