import { expect, test } from "vitest";
import { createTestStation, type TestStation, write } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

/** A turn of two steps, then a second one of two. Each call costs a dollar. */
const script: Script = {
  turns: [
    { calls: [write("a.txt", "one\n")] },
    { say: "One." },
    { calls: [write("a.txt", "two\n")], expect: { contains: ["do it", "One."] } },
    { say: "Two." },
  ],
  costUsdPerCall: 1,
};

const by = "me";

async function oneTurn(station: TestStation, request: Partial<Parameters<TestStation["verbs"]["runs"]["start"]>[0]> = {}) {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder }, ...request });
  return await runs.wait(run);
}

async function content({ verbs: { sessions } }: TestStation, name: string, path: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of sessions.readFile(name, { path })) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("a fork of a finished run waits for a message, and continues its story", async () => {
  await using station = await createTestStation({ script, files: { "a.txt": "old\n" } });
  const { runs, sessions } = station.verbs;
  const parent = await oneTurn(station, { budgets: { costUsd: 5 }, labels: { team: "parsers" } });
  const [fork] = await runs.fork(parent.run, { by, name: "second-try" });
  expect(fork).toMatchObject({
    forked: { run: parent.run, step: 2 },
    ...{ status: "paused", paused: { why: "forked" }, steps: 2, costUsd: 0, workedMs: 0, name: "second-try", labels: { team: "parsers" } },
    ...{ session: fork?.run, budgets: { costUsd: 3 }, title: "do it" },
  });
  const run = fork?.run ?? "";
  await expect(runs.resume(run, { by })).rejects.toMatchObject({ code: "conflict", hint: expect.stringContaining("caisson send") });
  await runs.send(run, { text: "go on" });
  await runs.resume(run, { by });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4, costUsd: 2 });
  expect([await content(station, run, "a.txt"), await content(station, parent.run, "a.txt")]).toEqual(["two\n", "one\n"]);
  expect(await runs.get(parent.run)).toMatchObject({ costUsd: 2, steps: 2 });
  const events = await station.events(run);
  expect(events.map(({ type }) => type)).toContain("run.forked");
  expect(events[0]).toMatchObject({ type: "run.created", data: { run: parent.run } });
  expect((await sessions.get(run)).forked).toMatchObject({ from: parent.session });
});

test("forks in the middle of a turn continue at once, also several", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const parent = await oneTurn(station);
  await runs.continue(parent.run, { text: "go on", by });
  expect(await runs.wait(parent.run)).toMatchObject({ steps: 4 });
  // Before the first model call: the files are those of the beginning.
  const [begun] = await runs.fork(parent.run, { by, at: 0 });
  expect(await runs.wait(begun?.run ?? "")).toMatchObject({ finish: "done", steps: 2, forked: { step: 0 } });
  expect(await content(station, begun?.run ?? "", "a.txt")).toBe("one\n");
  const forks = await runs.fork(parent.run, { by, at: 2, count: 3, text: "differently", name: "try" });
  expect(forks.map(({ name }) => name)).toEqual(["try-1", "try-2", "try-3"]);
  for (const { run } of forks) expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4 });
  expect(await content(station, forks[2]?.run ?? "", "a.txt")).toBe("two\n");
});

test("a message starts a fork, on the files after the step", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const parent = await oneTurn(station);
  const [fork] = await runs.fork(parent.run, { by, text: "go on" });
  expect(await runs.wait(fork?.run ?? "")).toMatchObject({ finish: "done", steps: 4 });
  expect(await content(station, fork?.run ?? "", "a.txt")).toBe("two\n");
  // A fork of the fork, at the step that it inherited.
  const [again] = await runs.fork(fork?.run ?? "", { by, at: 2, text: "once more" });
  expect(await runs.wait(again?.run ?? "")).toMatchObject({ finish: "done", steps: 4, forked: { run: fork?.run, step: 2 } });
});

test("forks outlive the run that they began with", async () => {
  await using station = await createTestStation({ script });
  const { runs, sessions } = station.verbs;
  const parent = await oneTurn(station);
  const [fork] = await runs.fork(parent.run, { by });
  await sessions.discard(parent.session);
  await runs.remove(parent.run);
  const run = fork?.run ?? "";
  await runs.continue(run, { by, text: "go on" });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4 });
  const [next] = await runs.fork(run, { by });
  expect(next).toMatchObject({ steps: 4, forked: { run } });
  await expect(runs.fork(run, { by, at: 1 })).rejects.toMatchObject({ code: "unsupported" });
  await expect(runs.fork(parent.run, { by })).rejects.toMatchObject({ code: "not_found" });
});

test("forks of forks continue in a row", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  let { run } = await oneTurn(station);
  for (let depth = 0; depth < 20; depth++) {
    const [fork] = await runs.fork(run, { by });
    run = fork?.run ?? "";
  }
  await runs.continue(run, { by, text: "go on" });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4, costUsd: 2 });
});

test("refuses steps that do not exist or have no files, and leaves nothing behind", async () => {
  await using station = await createTestStation({ script });
  const { runs, sessions } = station.verbs;
  const parent = await oneTurn(station, { labels: { team: "a" } });
  const before = [(await runs.list()).total, (await sessions.list()).sessions.length];
  await expect(runs.fork(parent.run, { by, at: 7 })).rejects.toMatchObject({ code: "not_found", details: { steps: 2 } });
  await expect(runs.fork(parent.run, { by, at: 1 })).rejects.toMatchObject({ code: "unsupported" });
  await expect(runs.fork("run_bbbbbbbbbbbb", { by })).rejects.toMatchObject({ code: "not_found" });
  await expect(runs.fork(parent.run, { by, count: 0 })).rejects.toMatchObject({ code: "invalid" });
  await runs.fork(parent.run, { by, name: "taken" });
  await expect(runs.fork(parent.run, { by, count: 2, name: "taken" })).resolves.toHaveLength(2);
  await expect(runs.fork(parent.run, { by, name: "taken" })).rejects.toMatchObject({ code: "exists" });
  await expect(runs.fork(parent.run, { by, count: 3, name: "taken" })).rejects.toMatchObject({ code: "exists" });
  expect([(await runs.list()).total, (await sessions.list()).sessions.length]).toEqual(before.map((count) => count + 3));
  await sessions.discard(parent.session);
  await expect(runs.fork(parent.run, { by })).rejects.toMatchObject({ code: "gone" });
});

test("refuses a fork whose steps are used up, unless it gets more", async () => {
  await using station = await createTestStation({ script, agents: { coder: { harness: { maxSteps: 2 } } } });
  const { runs } = station.verbs;
  const parent = await oneTurn(station);
  await expect(runs.fork(parent.run, { by, text: "go on" })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("the limit is 2"),
  });
  const [fork] = await runs.fork(parent.run, { by, text: "go on", budgets: { steps: 2 } });
  expect(await runs.wait(fork?.run ?? "")).toMatchObject({ finish: "done", steps: 4 });
});
