import { readFile, rm, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { DiffPiece } from "../../contract/session/session-verbs.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { createStore } from "../../sandbox/store.ts";

const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const files = { "a.txt": "old\n", "b.txt": "same\n" };
const script = { turns: [{ calls: [write("a.txt", "new\n"), write("c.txt", "one\ntwo\n"), write(".envrc", "x\n")] }, { say: "Done." }] };

async function run(station: TestStation, id = "mine"): Promise<void> {
  const { runs } = station.verbs;
  const started = await runs.start({ task: "do it", session: { id }, source: { kind: "folder", path: station.folder } });
  expect(await runs.wait(started.run)).toMatchObject({ finish: "done" });
}

async function pieces(diff: AsyncIterable<DiffPiece>): Promise<{ names: string[]; patch: string }> {
  const names: string[] = [];
  let patch = "";
  for await (const piece of diff) {
    if (piece.kind === "file") names.push(`${piece.file.kind} ${piece.file.path}`);
    if (piece.kind === "patch") patch += Buffer.from(piece.bytes).toString();
  }
  return { names, patch };
}

test("returns the diff as data and the patch in pieces, limited to given paths", async () => {
  await using station = await createTestStation({ script, files });
  await run(station);
  const { sessions } = station.verbs;
  const { files: changed, ...rest } = await sessions.diff("mine");
  expect(rest).toEqual({ session: "mine", leftOut: [], ignored: 0 });
  const figures = changed.map(({ path, kind, linesAdded, linesRemoved, heldBack }) => [
    path,
    kind,
    linesAdded,
    linesRemoved,
    heldBack !== null,
  ]);
  expect(figures).toEqual([
    [".envrc", "added", 1, 0, true],
    ["a.txt", "modified", 1, 1, false],
    ["c.txt", "added", 2, 0, false],
  ]);
  expect((await sessions.diff("mine", { paths: ["c.txt"] })).files.map(({ path }) => path)).toEqual(["c.txt"]);
  const { names, patch } = await pieces(sessions.patch("mine", { paths: ["a.txt"] }));
  expect(names).toEqual(["modified a.txt"]);
  expect(patch).toContain("-old\n+new\n");
  await expect(pieces(sessions.patch("mine", { signal: AbortSignal.abort() }))).rejects.toMatchObject({ code: "cancelled" });
});

test("applies changes and records it, but holds back files that tools act on", async () => {
  await using station = await createTestStation({ script, files });
  await run(station);
  const { sessions } = station.verbs;
  const { applied, skipped, folder } = await sessions.apply("mine");
  expect([applied, skipped.map(({ path }) => path), folder]).toEqual([["a.txt", "c.txt"], [".envrc"], station.folder]);
  expect(await readFile(join(station.folder, "a.txt"), "utf8")).toBe("new\n");
  expect((await sessions.get("mine")).history.map(({ type }) => type)).toEqual([
    "session.created",
    "session.run_started",
    "session.run_ended",
    "session.applied",
  ]);
  await expect(sessions.apply("mine", { folder: 7 as never })).rejects.toMatchObject({ code: "invalid" });
});

test("shows the diff of each apply afterwards", async () => {
  await using station = await createTestStation({ script, files });
  await run(station);
  const { sessions } = station.verbs;
  expect(await sessions.applied("mine")).toEqual({ session: "mine", applies: [], diff: null });
  await sessions.apply("mine", { paths: ["a.txt"] });
  await sessions.apply("mine", { paths: ["c.txt"] });
  const last = await sessions.applied("mine");
  expect(last.applies).toMatchObject([
    { apply: 2, folder: station.folder, count: 1, hasDiff: true },
    { apply: 1, folder: station.folder, count: 1, hasDiff: true },
  ]);
  expect(last.diff).toMatchObject({ apply: 2, isWhole: true, files: [{ path: "c.txt", kind: "added", linesAdded: 2, linesRemoved: 0 }] });
  const { diff } = await sessions.applied("mine", { apply: 1 });
  expect(diff?.files).toMatchObject([{ path: "a.txt", patch: { encoding: "utf8", text: expect.stringContaining("-old\n+new\n") } }]);
  await expect(sessions.applied("mine", { apply: 3 })).rejects.toMatchObject({ code: "not_found" });
});

test("releases a running sandbox after reading it, even after an error", async () => {
  let held = 0;
  const counting = (runtime: Runtime): Runtime => ({
    ...runtime,
    async open(id, options) {
      const sandbox = await runtime.open(id, options);
      held += 1;
      const release = async () => {
        held -= 1;
        await sandbox.release();
      };
      return Object.create(sandbox, { release: { value: release } });
    },
  });
  const turns = [{ calls: [write("a.txt", "new\n")] }, { say: "word ".repeat(500), pauseMs: 20 }];
  await using station = await createTestStation({ script: { turns }, files, wrapRuntime: counting });
  const { runs, sessions } = station.verbs;
  const { run: id } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await station.until(id, "tool.ended");
  expect((await sessions.diff(id)).files.map(({ path }) => path)).toEqual(["a.txt"]);
  expect(held).toBe(0);
  await rm(station.folder, { recursive: true });
  await expect(sessions.diff(id)).rejects.toMatchObject({ code: "not_found" });
  expect(held).toBe(0);
  await runs.stop(id, { by: "me" });
});

test("shows a URL without its password", async () => {
  await using station = await createTestStation({ script });
  const source = { kind: "git", url: "https://me:secret@example.org/r.git", submodules: false } as const;
  await station.sessions.create({ id: "git", source, scope: "session", cleanup: "never" });
  const views = [await station.verbs.sessions.get("git"), ...(await station.verbs.sessions.list()).sessions];
  expect(views.map((session) => session.source)).toEqual([1, 2].map(() => ({ ...source, url: "https://example.org/r.git" })));
});

test("removes and unlocks sessions in use, and damaged ones, only by force", async () => {
  await using station = await createTestStation({ script, files });
  const { sessions } = station.verbs;
  await run(station, "one");
  await run(station, "two");
  await using _ = await station.sessions.lock("one", "run_aaaaaaaaaaaa");
  expect((await sessions.get("one")).lock).toMatchObject({ owner: { run: "run_aaaaaaaaaaaa" }, stale: false });
  await expect(sessions.discard("one")).rejects.toMatchObject({ code: "conflict" });
  await expect(sessions.unlock("one")).rejects.toMatchObject({ code: "conflict" });
  expect(await sessions.unlock("one", { force: true })).toBe("one");
  expect(await sessions.discard("one")).toBe("one");
  await run(station, "three");
  await writeFile(join(station.sessions.paths(await station.sessions.get("two")).dir, "session.json"), "{");
  expect((await sessions.list({ id: ["two", "three"] })).sessions).toMatchObject([{ id: "three" }]);
  expect(await sessions.discard("three")).toBe("three");
  await expect(sessions.discard("two")).rejects.toMatchObject({ code: "internal" });
  expect(await sessions.discard("two", { force: true, why: "removed" })).toBe("two");
  expect((await sessions.list()).sessions).toEqual([]);
  await expect(sessions.discard("two", { force: true })).rejects.toMatchObject({ code: "not_found" });
});

test("a run and a removal wait for readers of a session", async () => {
  await using station = await createTestStation({ script, files });
  const { runs, sessions } = station.verbs;
  await run(station, "one");
  const holderSpy = vi.spyOn(station.log, "holder");
  const again = async () => runs.wait((await runs.start({ task: "again", session: { id: "one" } })).run);
  for (const work of [again, () => sessions.discard("one")]) {
    const looking = await station.sessions.look("one");
    holderSpy.mockClear();
    const working = work();
    await vi.waitFor(() => expect(holderSpy.mock.calls.length).toBeGreaterThan(5), { timeout: 60_000 });
    await looking[Symbol.asyncDispose]();
    await working;
  }
  expect((await sessions.list()).sessions).toEqual([]);
});

test("cleans up unused sessions, but not those in use", async () => {
  await using station = await createTestStation({ script, files });
  const { sessions } = station.verbs;
  for (const id of ["free", "used"]) await run(station, id);
  await using _ = await station.sessions.lock("used", "run_aaaaaaaaaaaa");
  expect(await sessions.cleanup({ olderThanMs: 3_600_000 })).toEqual({ removed: [], dryRun: false });
  expect(await sessions.cleanup({ olderThanMs: 0, dryRun: true })).toEqual({ removed: ["free"], dryRun: true });
  expect((await sessions.list()).sessions).toHaveLength(2);
  expect(await sessions.cleanup({ olderThanMs: 0 })).toEqual({ removed: ["free"], dryRun: false });
  expect((await sessions.list()).sessions.map(({ id }) => id)).toEqual(["used"]);
});

test("removing a session ends its runs with the reason", async () => {
  const asking = { costUsdPerCall: 2, turns: [{ calls: [write("a.txt", "new\n")] }, { say: "Done." }] };
  await using station = await createTestStation({ script: asking, files });
  const { runs, sessions } = station.verbs;
  const waiting = async () => {
    const releaseController = new AbortController();
    const source = { kind: "folder", path: station.folder } as const;
    const { run: id } = await runs.start(
      { task: "do it", source, budgets: { costUsd: 2 }, attended: true },
      { signal: releaseController.signal },
    );
    await station.until(id, "run.paused");
    releaseController.abort();
    await expect(runs.wait(id)).rejects.toMatchObject({ code: "cancelled" });
    expect(await runs.get(id)).toMatchObject({ status: "interrupted", paused: { why: "budget" } });
    return id;
  };
  const first = await waiting();
  await sessions.discard(first);
  expect(await runs.get(first)).toMatchObject({ status: "ended", finish: "cancelled" });
  expect((await station.until(first, "run.ended")).data.text).toContain("the removal of its session");
  const second = await waiting();
  await rm(station.sessions.paths(await station.sessions.get(second)).dir, { recursive: true });
  await runs.resume(second, { by: "me" });
  expect(await runs.wait(second)).toMatchObject({ finish: "cancelled" });
  expect((await runs.list({ state: "open" })).runs).toEqual([]);
});

test("leaves out and counts new files that the user's own .gitignore matches", async () => {
  const calls = [
    write(".gitignore", "*\n"),
    write("dist/a.js", "a\n"),
    write("dist/b.js", "b\n"),
    write("old.log", "changed\n"),
    write("c.txt", "c\n"),
  ];
  const ignoring = { ...files, ".gitignore": "dist/\n*.log\n", "old.log": "mine\n" };
  await using station = await createTestStation({ script: { turns: [{ calls }, { say: "Done." }] }, files: ignoring });
  await run(station);
  const { sessions } = station.verbs;
  const summarizeDiff = async (options = {}) => {
    const { files: changed, ignored } = await sessions.diff("mine", options);
    return [changed.map(({ path }) => path), ignored];
  };
  expect(await summarizeDiff()).toEqual([[".gitignore", "c.txt", "old.log"], 2]);
  expect(await summarizeDiff({ includeIgnored: true })).toEqual([[".gitignore", "c.txt", "dist/a.js", "dist/b.js", "old.log"], 0]);
  expect(await summarizeDiff({ paths: ["dist/a.js"] })).toEqual([["dist/a.js"], 1]);
  expect((await pieces(sessions.patch("mine"))).names).toEqual(["modified .gitignore", "added c.txt", "modified old.log"]);
  expect(await sessions.apply("mine", { paths: ["dist"] })).toMatchObject({ applied: ["dist/a.js", "dist/b.js"], ignored: 0 });
  await rm(join(station.folder, "dist"), { recursive: true });
  expect(await sessions.apply("mine")).toMatchObject({ applied: [".gitignore", "c.txt", "old.log"], ignored: 2 });
  await expect(readFile(join(station.folder, "dist/a.js"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("a sandbox without a session has changes with the same guards", async () => {
  await using station = await createTestStation({ script: { turns: [] }, files: { ...files, ".gitignore": "built\n", ".env": "KEY=1\n" } });
  const { sessions } = station.verbs;
  const workspace = { kind: "folder" as const, path: station.folder, access: "overlay" as const };
  const config = SandboxConfig.parse({ workspace, keep: true, name: "kept", deniedPaths: ["/workspace/.env"] });
  await using sandbox = await station.runtime.create({ ...config, deniedPaths: [] });
  const store = createStore({ stateDir: dirname(station.folder) });
  const { id, limits } = sandbox.info;
  // Two seconds ago, since a file time within the second of creation could come from the copy.
  const createdAt = new Date(Date.now() - 2000).toISOString();
  await utimes(join(station.folder, "a.txt"), 1, 1);
  store.note({ id, runtime: "fake", state: "running", createdAt, spec: config, limits, warnings: [], owner: null, details: {} });
  for (const [name, text] of Object.entries({ "a.txt": "new\n", "c.txt": "one\n", ".envrc": "x\n", built: "b", ".env": "" }))
    await sandbox.writeFile(`/workspace/${name}`, Buffer.from(text));

  const diff = await sessions.diff("kept");
  expect(diff).toMatchObject({ session: id, ignored: 1 });
  expect(diff.files.map(({ path, heldBack }) => [path, heldBack !== null])).toEqual([
    [".envrc", true],
    ["a.txt", false],
    ["c.txt", false],
  ]);
  expect((await pieces(sessions.patch(id.slice(0, 8), { paths: ["a.txt"] }))).patch).toContain("-old\n+new\n");
  expect(await sessions.apply("kept", { paths: ["a.txt"] })).toMatchObject({ applied: ["a.txt"], folder: station.folder });
  expect(await readFile(join(station.folder, "a.txt"), "utf8")).toBe("new\n");
  // Applied changes do not count as the user's, so a later apply may overwrite them.
  await sandbox.writeFile("/workspace/a.txt", Buffer.from("newer\n"));
  expect((await sessions.apply("kept")).applied).toEqual(["a.txt", "c.txt"]);
  await sandbox.writeFile("/workspace/a.txt", Buffer.from("newest\n"));
  await writeFile(join(station.folder, "a.txt"), "mine\n");
  await expect(sessions.apply("kept")).rejects.toMatchObject({ code: "conflict" });

  const shared = SandboxConfig.parse({ ...config, name: "shared", workspace: { ...workspace, access: "rw" } });
  store.note({
    id: "sb_aaaaaaaaaaaa",
    runtime: "fake",
    state: "running",
    createdAt,
    spec: shared,
    limits,
    warnings: [],
    owner: null,
    details: {},
  });
  await expect(sessions.apply("shared")).rejects.toMatchObject({ code: "invalid" });
});
