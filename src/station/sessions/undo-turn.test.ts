import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const files = { "a.txt": "old\n", "b.txt": "same\n" };
const script: Script = {
  turns: [
    { calls: [write("a.txt", "one\n")] },
    { say: "One." },
    { calls: [write("a.txt", "two\n"), write("c.txt", "new\n")] },
    { say: "Two." },
    { say: "Three.", expect: { news: ["undid the file changes of your last turn"] } },
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

test("undoes turns one after another, back to the original files", async () => {
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

test("tells the agent once, and its next turn can be undone alone", async () => {
  await using station = await createTestStation({ script, files });
  const run = await turns(station, 2);
  const { sessions } = station.verbs;
  await sessions.undo(run);
  await next(station, run);
  expect(await sessions.undo(run)).toEqual({ session: "mine", files: [] });
  expect(await changed(station)).toEqual(["modified a.txt"]);
  expect((await sessions.undo(run)).files).toEqual(["a.txt"]);
});

test("does not undo applied changes", async () => {
  await using station = await createTestStation({ script, files });
  const run = await turns(station, 1);
  const { sessions } = station.verbs;
  await sessions.apply(run);
  await sessions.undo(run);
  expect(await readFile(join(station.folder, "a.txt"), "utf8")).toBe("one\n");
});

test("rejects undo during a run, or after another run in the same session", async () => {
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

test("undoes up to ten turns, and stores no more than they need", async () => {
  const many: Script = {
    turns: Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? { calls: [write("a.txt", `${index}\n`)] } : { say: "Done." })),
  };
  await using station = await createTestStation({ script: many, files });
  const run = await turns(station, 14);
  const { sessions } = station.verbs;
  expect(await station.sessions.points("mine")).toHaveLength(10);
  expect((await station.runtime.snapshots()).length).toBeLessThanOrEqual(11);
  for (let turn = 0; turn < 10; turn++) expect((await sessions.undo(run)).files).toEqual(["a.txt"]);
  await expect(sessions.undo(run)).rejects.toMatchObject({ code: "unsupported" });
  await sessions.discard("mine");
  expect(await station.runtime.snapshots()).toEqual([]);
});
