import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createMemoryLog } from "../log/memory/log.ts";
import { LOCK_TTL_MS } from "./session-locks.ts";
import { createSessionStore, type SessionStore } from "./sessions.ts";

let dir = "";
let log = createMemoryLog({ nowMs: () => Date.now() });
let dead = new Set<number>();
const store = (pid: number, host = "here"): SessionStore =>
  createSessionStore({
    stateDir: dir,
    log,
    identity: { pid, host, startTicks: pid, bootId: "b" },
    alive: (holder) => !dead.has(holder.pid),
  });
const create = (sessions: SessionStore, id = "s") =>
  sessions.create({ id, source: { kind: "folder", path: "/x" }, scope: "session", cleanup: "never" });

const realImmediate = setImmediate;
/** Advances the timers while files are read between them, which takes real time. */
async function whileTimePasses<Result>(waiting: Promise<Result>): Promise<Result> {
  let over = false;
  const settle = () => {
    over = true;
  };
  waiting.then(settle, settle);
  while (!over) {
    await vi.advanceTimersByTimeAsync(1000);
    await new Promise((resolve) => realImmediate(resolve));
  }
  return waiting;
}

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  log = createMemoryLog({ nowMs: () => Date.now() });
  dead = new Set();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(dir, { recursive: true, force: true });
});

describe("a session lock", () => {
  test("is exclusive, and its error names the holder, time and unlock command", async () => {
    await create(store(1));
    await using held = await store(1).lock("s", "run_a");
    await expect(store(2).lock("s", "run_b")).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/s is in use by run_a \(process 1 on here\) since \d{4}-/),
      hint: expect.stringContaining("caisson session unlock --force s"),
    });
    await expect(store(2).checkFree("s")).rejects.toMatchObject({ code: "conflict" });
    expect(held.lost.aborted).toBe(false);
    await held[Symbol.asyncDispose]();
    await using _ = await store(2).lock("s", "run_b");
  });

  test("is reacquired by its run after a crash, and by others once it is dead", async () => {
    await create(store(1));
    await store(1).lock("s", "run_a");
    await using _ = await store(2).lock("s", "run_a");
    dead.add(2);
    expect(await store(3).lockOf("s")).toMatchObject({ stale: true, owner: { run: "run_a", pid: 2 } });
    await store(3).checkFree("s");
    await using __ = await store(3).lock("s", "run_c");
  });

  test("of another machine is valid until it expires, even if its pid is dead here", async () => {
    vi.useFakeTimers({ now: Date.now() });
    await create(store(1));
    const far = await store(7, "far").lock("s", "run_far");
    dead.add(7);
    expect((await store(2).lockOf("s"))?.stale).toBe(false);
    await expect(store(2).lock("s", "run_b")).rejects.toMatchObject({ code: "conflict" });
    // Stops the renewal.
    vi.clearAllTimers();
    await vi.advanceTimersByTimeAsync(LOCK_TTL_MS + 1000);
    // The holder has one more moment to show that it works.
    await using _ = await whileTimePasses(store(2).lock("s", "run_b"));
    await far[Symbol.asyncDispose]();
    expect(await store(3).lockOf("s")).toMatchObject({ owner: { run: "run_b" } });
  });

  test("of a reader is awaited, and shared by all readers of one process", async () => {
    const one = store(1);
    await create(one);
    const looks = [await one.look("s"), await one.look("s")];
    expect((await one.lockOf("s"))?.owner.run).toMatch(/^view_1_/);
    const order: string[] = [];
    const working = store(2)
      .lock("s", "run_b")
      .finally(() => order.push("works"));
    for (const look of looks) {
      expect(await Promise.race([working, one.lockOf("s")])).toMatchObject({ owner: { run: expect.stringMatching(/^view_1_/) } });
      await look[Symbol.asyncDispose]();
    }
    await using _ = await working;
    // Nothing waits for a long-term holder.
    await expect(one.look("s")).rejects.toMatchObject({ code: "conflict", hint: expect.stringContaining("caisson stop run_b") });
    await expect(one.edit("s")).rejects.toMatchObject({ code: "conflict" });
    expect(order).toEqual(["works"]);
  });

  test("of a manual edit is exclusive even within one process, and is awaited", async () => {
    const one = store(1);
    await create(one);
    const order: string[] = [];
    const edit = await one.edit("s");
    const others = [one.look("s"), one.edit("s"), one.checkFree("s")];
    const done = others.map(async (other) => {
      const held = await other;
      order.push("after");
      await held?.[Symbol.asyncDispose]();
    });
    expect((await one.lockOf("s"))?.owner.run).toMatch(/^edit_1_/);
    order.push("edited");
    await edit[Symbol.asyncDispose]();
    await Promise.all(done);
    expect(order).toEqual(["edited", ...others.map(() => "after")]);
  });

  test("is renewed while its holder works", async () => {
    vi.useFakeTimers({ now: Date.now() });
    await create(store(1));
    await using _ = await store(1).lock("s", "run_a");
    for (let hour = 0; hour < 5; hour++) await vi.advanceTimersByTimeAsync(LOCK_TTL_MS * 0.9);
    await expect(store(2).lock("s", "run_b")).rejects.toMatchObject({ code: "conflict" });
  });

  test("is broken by force, and without force only if the holder is dead", async () => {
    vi.useFakeTimers({ now: Date.now() });
    await create(store(1));
    await using held = await store(1).lock("s", "run_a");
    await expect(store(2).breakLock("s", { force: false })).rejects.toMatchObject({ code: "conflict" });
    await store(2).breakLock("s", { force: true });
    expect(await store(2).lockOf("s")).toBe(null);
    await using _ = await store(2).lock("s", "run_b");
    await vi.advanceTimersByTimeAsync(LOCK_TTL_MS / 2);
    expect(held.lost.aborted).toBe(true);
    // The first holder's release does not release the second one's lock.
    await held[Symbol.asyncDispose]();
    expect(await store(3).lockOf("s")).toMatchObject({ owner: { run: "run_b" } });
    dead.add(2);
    await store(3).breakLock("s", { force: false });
    expect((await store(3).history("s")).filter((event) => event.type === "session.unlocked").map((event) => event.data)).toEqual([
      { run: "run_a", forced: true },
      { run: "run_b", forced: false },
    ]);
  });
});

describe("a session", () => {
  test("is created once, listed by last use and updated in part", async () => {
    const sessions = store(1);
    await create(sessions, "one");
    await create(sessions, "two");
    await expect(create(sessions, "one")).rejects.toMatchObject({ code: "exists" });
    for (const id of ["", "../x", "a/b", ".hidden", "x".repeat(200)])
      await expect(create(sessions, id)).rejects.toMatchObject({ code: "invalid" });
    await sessions.update("one", { commit: "c" });
    await sessions.update("one", { runtime: "oci", lastUsedAt: "2100-01-01T00:00:00.000Z" });
    expect(await sessions.get("one")).toMatchObject({ commit: "c", runtime: "oci" });
    expect((await sessions.list()).map((session) => session.id)).toEqual(["one", "two"]);
    await expect(sessions.get("three")).rejects.toMatchObject({ code: "not_found" });
  });

  test("with a damaged record is reported, hides no other and can be repaired", async () => {
    const sessions = store(1);
    await create(sessions, "bad");
    await create(sessions, "good");
    const path = join(dir, "sessions", "bad", "session.json");
    writeFileSync(path, readFileSync(path, "utf8").slice(0, 20));
    await expect(sessions.get("bad")).rejects.toMatchObject({ code: "internal", hint: expect.stringContaining("session rm --force bad") });
    expect((await sessions.list()).map((session) => session.id)).toEqual(["good"]);
    await sessions.repair("bad");
    expect(await sessions.get("bad")).toMatchObject({ source: { kind: "empty" } });
    expect(existsSync(join(dir, "sessions", "bad", "layer"))).toBe(true);
  });

  test("keeps unreadable records: only a missing one counts as empty", async () => {
    const sessions = store(1);
    await create(sessions);
    const path = join(dir, "sessions", "s", "applied.json");
    expect(await sessions.readApplied("s")).toEqual(new Map());
    await sessions.noteApplied("s", new Map([["a", "1"]]));
    const text = readFileSync(path, "utf8");
    // A folder with that name simulates a file that cannot be read.
    renameSync(path, `${path}-aside`);
    mkdirSync(path);
    await expect(sessions.noteApplied("s", new Map([["b", "2"]]))).rejects.toMatchObject({ code: "unavailable" });
    rmSync(path, { recursive: true });
    writeFileSync(path, text.slice(0, 5));
    await expect(sessions.noteApplied("s", new Map([["b", "2"]]))).rejects.toMatchObject({ code: "internal", hint: expect.any(String) });
    renameSync(`${path}-aside`, path);
    await sessions.noteApplied("s", new Map([["b", "2"]]));
    expect([...(await sessions.readApplied("s")).keys()]).toEqual(["a", "b"]);
  });

  test("that cannot be read does not count as missing", async () => {
    const sessions = store(1);
    await create(sessions);
    await expect(sessions.get("none")).rejects.toMatchObject({ code: "not_found" });
    const path = join(dir, "sessions", "s", "session.json");
    rmSync(path);
    mkdirSync(path);
    await expect(sessions.get("s")).rejects.toMatchObject({ code: "unavailable" });
    expect(await sessions.list()).toEqual([]);
    expect(await sessions.listAll()).toEqual({ sessions: [], damaged: [{ id: "s", reason: expect.stringContaining("session.json") }] });
  });

  test("is cleared of temporary files that killed processes left", async () => {
    const sessions = store(1);
    await create(sessions);
    const folder = join(dir, "sessions", "s");
    const names = ["session.json.999999999-1-abcdefgh.tmp", "session.json.abcdefgh.tmp", "applied.json.hgfedcba.tmp"];
    for (const name of names) writeFileSync(join(folder, name), "{");
    for (const name of names.slice(1, 2)) utimesSync(join(folder, name), 1, 1);
    await sessions.update("s", { commit: null });
    expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toEqual(["applied.json.hgfedcba.tmp"]);
  });

  test("has a history without secrets and duplicates", async () => {
    const sessions = store(1);
    await sessions.create({
      id: "g",
      source: { kind: "git", url: "https://ann:hunter22@x.example/r", submodules: false },
      scope: "session",
      cleanup: "never",
    });
    const event = { type: "session.run_started", data: { run: "run_aaaaaaaaaaaa" } } as const;
    await sessions.record("g", event, { once: true });
    await sessions.record("g", event, { once: true });
    const history = await sessions.history("g");
    expect(history.map((each) => each.type)).toEqual(["session.created", "session.run_started"]);
    expect(JSON.stringify(history)).not.toContain("hunter22");
  });
});
