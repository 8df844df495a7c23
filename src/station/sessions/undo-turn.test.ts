import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Script } from "../../agent/model/scripted-model.ts";
import { createTestStation, type TestStation } from "../runs/testing.ts";

const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const files = { "a.txt": "old\n", "b.txt": "same\n" };
const script: Script = {
  turns: [
    { calls: [write("a.txt", "one\n")] },
    { say: "One." },
    { calls: [write("a.txt", "two\n"), write("c.txt", "new\n")] },
    { say: "Two." },
    { say: "Three.", expect: { news: ["took back what your last turn changed"] } },
    { say: "Four.", expect: { absent: [] } },
  ],
};

async function turns(station: TestStation, count: number): Promise<string> {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "turn 1", session: { id: "mine" }, source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  for (let turn = 2; turn <= count; turn++) await next(station, run);
  return run;
}

async function next({ verbs: { runs } }: TestStation, run: string): Promise<void> {
  await runs.continue(run, { text: "go on", by: "me" });
  expect(await runs.wait(run)).toMatchObject({ finish: "done" });
}

async function changed({ verbs: { sessions } }: TestStation): Promise<string[]> {
  return (await sessions.diff("mine")).files.map(({ path, kind }) => `${kind} ${path}`);
}

test("turns are taken back one after another, to the files as they were before the first", async () => {
  await using station = await createTestStation({ script, files });
  const run = await turns(station, 2);
  const { sessions } = station.verbs;
  expect(await changed(station)).toEqual(["modified a.txt", "added c.txt"]);
  expect(await sessions.undo(run)).toEqual({ session: "mine", files: ["a.txt", "c.txt"] });
  expect(await changed(station)).toEqual(["modified a.txt"]);
  expect(await sessions.undo(run)).toEqual({ session: "mine", files: ["a.txt"] });
  expect(await changed(station)).toEqual([]);
  await expect(sessions.undo(run)).rejects.toMatchObject({ code: "not_found" });
  expect((await sessions.get("mine")).history.filter(({ type }) => type === "session.undone")).toHaveLength(2);
});

test("the agent is told, once, and what it does then can be taken back alone", async () => {
  await using station = await createTestStation({ script, files });
  const run = await turns(station, 2);
  const { sessions } = station.verbs;
  await sessions.undo(run);
  await next(station, run);
  expect(await sessions.undo(run)).toEqual({ session: "mine", files: [] });
  expect(await changed(station)).toEqual(["modified a.txt"]);
  expect((await sessions.undo(run)).files).toEqual(["a.txt"]);
});

test("what was applied stays applied", async () => {
  await using station = await createTestStation({ script, files });
  const run = await turns(station, 1);
  const { sessions } = station.verbs;
  await sessions.apply(run);
  await sessions.undo(run);
  expect(await readFile(join(station.folder, "a.txt"), "utf8")).toBe("one\n");
});

test("nothing is taken back while the run goes on, or after another has worked on the same files", async () => {
  await using station = await createTestStation({ script, files });
  const run = await turns(station, 1);
  const { sessions, runs } = station.verbs;
  const other = await runs.start({ task: "another", session: { id: "mine" } });
  await runs.wait(other.run);
  await expect(sessions.undo(run)).rejects.toMatchObject({ code: "conflict" });
  await expect(sessions.undo(other.run)).rejects.toMatchObject({ code: "unsupported" });
  const open = await station.start();
  await expect(sessions.undo(open)).rejects.toMatchObject({ code: "conflict" });
});

test("so many turns can be taken back, and no more is kept than they need", async () => {
  const many: Script = {
    turns: Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? { calls: [write("a.txt", `${index}\n`)] } : { say: "Done." })),
  };
  await using station = await createTestStation({ script: many, files });
  const run = await turns(station, 14);
  const { sessions } = station.verbs;
  expect(await station.sessions.restorePoints("mine")).toHaveLength(10);
  expect((await station.runtime.snapshots()).length).toBeLessThanOrEqual(11);
  for (let turn = 0; turn < 10; turn++) expect((await sessions.undo(run)).files).toEqual(["a.txt"]);
  await expect(sessions.undo(run)).rejects.toMatchObject({ code: "unsupported" });
  await sessions.discard("mine");
  expect(await station.runtime.snapshots()).toEqual([]);
});
