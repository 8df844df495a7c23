import { expect, test } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const files = { "a.txt": "old\n", "b.txt": "same\n" };
/** One run with two turns of two steps each. */
const script: Script = {
  turns: [
    { calls: [write("a.txt", "one\n")] },
    { say: "One." },
    { calls: [write("a.txt", "two\n"), write("c.txt", "new\n")] },
    { say: "Two." },
  ],
};

async function twoTurns(station: TestStation): Promise<string> {
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "turn 1", session: { id: "mine" }, source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  await runs.continue(run, { text: "go on", by: "me" });
  expect(await runs.wait(run)).toMatchObject({ finish: "done", steps: 4 });
  return run;
}

const changed = async ({ verbs: { sessions } }: TestStation, name: string, at?: number) =>
  (await sessions.diff(name, at === undefined ? {} : { at })).files.map(({ path, kind }) => `${kind} ${path}`);

async function content({ verbs: { sessions } }: TestStation, name: string, path: string, at?: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of sessions.readFile(name, { path, ...(at !== undefined && { at }) })) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

test("forks the current files or those after a step, and isolates both sides", async () => {
  await using station = await createTestStation({ script, files });
  const run = await twoTurns(station);
  const { sessions, runs } = station.verbs;
  expect((await sessions.points(run)).map(({ step }) => step)).toEqual([0, 2]);
  const now = await sessions.fork(run, { name: "now" });
  expect(now).toMatchObject({ id: "now", scope: "session", forked: { from: "mine" }, source: { kind: "folder" } });
  await sessions.fork(run, { name: "then", at: 2 });
  await sessions.fork("mine", { name: "begun", at: 0 });
  expect(await changed(station, "now")).toEqual(["modified a.txt", "added c.txt"]);
  expect(await changed(station, "then")).toEqual(["modified a.txt"]);
  expect(await changed(station, "begun")).toEqual([]);
  expect(await content(station, "then", "a.txt")).toBe("one\n");
  // A new run starts at the script's first line.
  const other = await runs.start({ task: "another way", session: { id: "now" } });
  await runs.wait(other.run);
  expect(await content(station, "now", "a.txt")).toBe("one\n");
  expect(await content(station, "mine", "a.txt")).toBe("two\n");
  expect((await sessions.get("then")).history.map(({ type }) => type)).toContain("session.forked");
});

test("shows files and changes as of a step without touching the session", async () => {
  await using station = await createTestStation({ script, files });
  const run = await twoTurns(station);
  const { sessions } = station.verbs;
  expect(await changed(station, run, 2)).toEqual(["modified a.txt"]);
  expect(await changed(station, run, 0)).toEqual([]);
  expect(await content(station, run, "a.txt", 2)).toBe("one\n");
  expect(await content(station, run, "a.txt", 0)).toBe("old\n");
  expect(await content(station, run, "a.txt")).toBe("two\n");
  const names = async (at?: number) => (await sessions.files(run, at === undefined ? {} : { at })).entries.map(({ name }) => name).sort();
  expect(await names()).toEqual(["a.txt", "b.txt", "c.txt"]);
  expect(await names(2)).toEqual(["a.txt", "b.txt"]);
  await expect(sessions.diff(run, { at: 3 })).rejects.toMatchObject({ code: "unsupported", details: { steps: [0, 2] } });
  await expect(sessions.files(run, { path: "../x" })).rejects.toMatchObject({ code: "invalid" });
  await expect(content(station, run, "nothing")).rejects.toMatchObject({ code: "not_found" });
  expect(await station.runtime.list()).toEqual([]);
});

test("undoes several turns at once, back to a step", async () => {
  await using station = await createTestStation({ script, files });
  const run = await twoTurns(station);
  const { sessions } = station.verbs;
  await expect(sessions.undo(run, { to: 1 })).rejects.toMatchObject({ code: "unsupported" });
  expect(await sessions.undo(run, { to: 0 })).toEqual({ session: "mine", files: ["a.txt", "c.txt"] });
  expect(await changed(station, "mine")).toEqual([]);
  await expect(sessions.undo(run)).rejects.toMatchObject({ code: "not_found" });
});

test("starts a run with the files of another run, in a new session", async () => {
  await using station = await createTestStation({ script, files });
  const run = await twoTurns(station);
  const { runs, sessions } = station.verbs;
  const { run: next, session } = await runs.start({ task: "go another way", from: { session: run } });
  expect(session).toBe(next);
  await runs.wait(next);
  expect(await content(station, next, "a.txt")).toBe("one\n");
  expect(await content(station, run, "a.txt")).toBe("two\n");
  expect(await changed(station, next)).toEqual(["modified a.txt", "added c.txt"]);
  expect((await sessions.get(next)).history.map(({ type }) => type)).toEqual([
    "session.created",
    "session.forked",
    "session.run_started",
    "session.run_ended",
  ]);
  const both = { task: "x", from: { session: run }, source: { kind: "empty" as const } };
  await expect(runs.start(both)).rejects.toMatchObject({ code: "invalid" });
  await expect(runs.start({ task: "x", from: { session: "missing" } })).rejects.toMatchObject({ code: "not_found" });
});

test("a fork inherits the record of applied files", async () => {
  await using station = await createTestStation({ script, files });
  const run = await twoTurns(station);
  const { sessions } = station.verbs;
  await sessions.apply(run);
  await sessions.fork(run, { name: "after", at: 2 });
  const applied = await station.sessions.readApplied("mine");
  expect([...applied.keys()]).toEqual(["a.txt", "c.txt"]);
  expect(await station.sessions.readApplied("after")).toEqual(applied);
});

test("rejects forking a session in use, and leaves nothing after a failure", async () => {
  await using station = await createTestStation({ script, files });
  const run = await twoTurns(station);
  const { sessions } = station.verbs;
  {
    await using _ = await station.sessions.lock("mine", "run_bbbbbbbbbbbb");
    await expect(sessions.fork(run, { name: "now" })).rejects.toMatchObject({ code: "conflict" });
    expect(await sessions.fork(run, { name: "then", at: 2 })).toMatchObject({ id: "then" });
  }
  expect((await sessions.list()).sessions.map(({ id }) => id).sort()).toEqual(["mine", "then"]);
  await expect(sessions.fork(run, { name: "then" })).rejects.toMatchObject({ code: "exists" });
  await expect(sessions.fork(run, { at: 7 })).rejects.toMatchObject({ code: "unsupported" });
  expect((await sessions.list()).sessions).toHaveLength(2);
  await sessions.discard("mine");
  expect(await content(station, "then", "a.txt")).toBe("one\n");
  await sessions.discard("then");
  expect(await station.runtime.snapshots()).toEqual([]);
});
