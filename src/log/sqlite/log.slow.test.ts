import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { StepStarted } from "../../contract/run/run-event.ts";
import { describeLog } from "../conformance/describe-log.ts";
import { describeLockHolder, lockHolder } from "./lock-holder.ts";
import { createSqliteLog } from "./log.ts";
import { openDatabase, translateSqlite } from "./open.ts";
import { schema, schemaSince2, schemaSince3, schemaSince4 } from "./schema.ts";

const makeDir = () => mkdtemp(join(memoryFolder(), "caisson-test-log-"));

describeLog("sqlite", async () => {
  const dir = await makeDir();
  return {
    open: async (options = {}) => createSqliteLog({ path: join(dir, "log.db"), ...options }),
    dispose: () => rm(dir, { recursive: true, force: true }),
  };
});

async function withFile(work: (path: string) => Promise<void>): Promise<void> {
  const dir = await makeDir();
  try {
    await work(join(dir, "log.db"));
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const event = (n: number) => ({ type: "test.happened", version: 1, data: { n, pad: "x".repeat(200) } });

test("finds changed, missing and truncated rows, and still reads the rest", () =>
  withFile(async (path) => {
    {
      await using log = createSqliteLog({ path });
      for (const stream of ["changed", "missing", "cut", "whole"]) await log.append(stream, [event(1), event(2), event(3)]);
      expect(await log.check()).toEqual([]);
    }
    const database = new DatabaseSync(path);
    database.exec(`UPDATE events SET data = '{"n":7}' WHERE stream = 'changed' AND seq = 2`);
    database.exec("DELETE FROM events WHERE stream = 'missing' AND seq = 2");
    database.exec("DELETE FROM events WHERE stream = 'cut' AND seq = 3");
    database.close();
    await using log = createSqliteLog({ path });
    const damages = await log.check();
    expect(damages.map((each) => [each.stream, each.fromSeq])).toEqual([
      ["changed", 2],
      ["cut", 3],
      ["missing", 2],
    ]);
    expect(await log.read("whole")).toHaveLength(3);
  }));

test("reports overwritten pages instead of showing an empty log", () =>
  withFile(async (path) => {
    {
      await using log = createSqliteLog({ path });
      for (let n = 0; n < 400; n++) await log.append("a", [event(n)]);
    }
    const file = await open(path, "r+");
    const { size } = await file.stat();
    await file.write(Buffer.alloc(8192, 0xaa), 0, 8192, Math.floor(size / 2 / 4096) * 4096);
    await file.close();
    await using log = createSqliteLog({ path });
    expect((await log.check()).length).toBeGreaterThan(0);
  }));

test("rejects a file that is not a database", () =>
  withFile(async (path) => {
    const file = await open(path, "w");
    await file.write("this is not a database, whatever its name says".repeat(20));
    await file.close();
    expect(() => createSqliteLog({ path })).toThrowError(expect.objectContaining({ code: "internal" }));
  }));

const step = (number: number) => ({ type: "step.started", version: 1, data: { step: number } });

test("reports the reason when a disk fails or a file cannot be opened", () => {
  const failed = Object.assign(new Error("disk I/O error"), { errcode: 1546 });
  expect(translateSqlite(failed, "appending to the log")).toMatchObject({
    code: "unavailable",
    message: "appending to the log: the log cannot be used: disk I/O error (SQLite 1546)",
    hint: expect.stringContaining("dmesg"),
    details: { log: true },
  });
  expect(() => openDatabase(tmpdir())).toThrow(/opening .*: the log cannot be used: EISDIR/);
});

test("rebuilds heads that are missing, behind, or of an older version", () =>
  withFile(async (path) => {
    {
      await using log = createSqliteLog({ path });
      for (const run of ["absent", "behind", "older", "right"]) await log.append(`run/${run}`, [step(1), step(2), step(3)]);
    }
    const database = new DatabaseSync(path);
    database.exec("DELETE FROM heads WHERE stream = 'run/absent'");
    database.exec(`UPDATE heads SET seq = 1, head = json_set(head, '$.step', 1) WHERE stream = 'run/behind'`);
    database.exec(`UPDATE heads SET version = 0, head = '{}' WHERE stream = 'run/older'`);
    // As if another Caisson with a different head version had used the log.
    database.exec("UPDATE projections SET version = 0");
    database.close();
    await using log = createSqliteLog({ path });
    // The head is behind, so the append must not build on it.
    await log.append("run/behind", [step(4)]);
    const { heads, total } = await log.heads({ prefix: "run/", open: true, limit: 10 });
    expect(total).toBe(4);
    expect(Object.fromEntries(heads.map(({ stream, seq, head }) => [stream, [seq, (head as { step: number }).step]]))).toEqual({
      "run/absent": [3, 3],
      "run/behind": [4, 4],
      "run/older": [3, 3],
      "run/right": [3, 3],
    });
  }));

test("keeps a head correct across two processes, a failed append and noted damage", () =>
  withFile(async (path) => {
    await using ours = createSqliteLog({ path });
    await using theirs = createSqliteLog({ path });
    for (const [at, log] of [ours, theirs, ours, ours, theirs].entries()) await log.append("run/a", [step(at + 1)]);
    await expect(ours.append("run/a", [step(9)], { expectedSeq: 2 })).rejects.toMatchObject({ code: "conflict" });
    await theirs.noteDamage("run/a", "torn");
    await theirs.append("run/a", [step(6)]);
    await ours.append("run/a", [step(7)]);
    for (const log of [ours, theirs]) {
      expect(await log.head("run/a")).toMatchObject({ seq: 7, head: { step: 7 }, damage: "torn" });
    }
  }));

test("upgrades a log of the first schema, with its heads and leases", () =>
  withFile(async (path) => {
    const database = new DatabaseSync(path);
    database.exec(`${schema} PRAGMA user_version=1;`);
    const at = new Date().toISOString();
    database.exec(`INSERT INTO streams VALUES ('run/old', 1, 0, '${at}', 4, 'somebody', ${Date.now() + 60_000})`);
    database.exec(`INSERT INTO events VALUES ('run/old', 1, 'step.started', 1, '${at}', '{"step":7}', 0)`);
    database.close();
    await using log = createSqliteLog({ path });
    expect(await log.head("run/old")).toMatchObject({ seq: 1, head: { step: 7 } });
    expect(await log.acquire("run/old", { holder: "another", ttlMs: 1000 })).toBeNull();
    expect((await log.acquire("run/old", { holder: "another", ttlMs: 1000, holderGone: () => true }))?.epoch).toBe(5);
  }));

test("delivers events that an older version appends to an older log", () =>
  withFile(async (path) => {
    const old = new DatabaseSync(path);
    old.exec(`${schema} ${schemaSince2} PRAGMA user_version=2;`);
    const grow = old.prepare(
      "INSERT INTO streams (stream, last_seq, last_sum, at, epoch) VALUES (?, ?, 0, ?, 0) ON CONFLICT (stream) DO UPDATE SET last_seq = excluded.last_seq",
    );
    const append = (stream: string, seq: number) => {
      old.prepare("INSERT INTO events VALUES (?, ?, 'step.started', 1, '', '{}', 0)").run(stream, seq);
      grow.run(stream, seq, `at ${stream}`);
    };
    for (const [stream, seq] of [
      ["run/b", 1],
      ["run/a", 1],
      ["run/a", 2],
    ] as const)
      append(stream, seq);
    await using log = createSqliteLog({ path });
    append("run/b", 2);
    append("run/c", 1);
    const seen: string[] = [];
    for await (const { stream, seq, position } of log.subscribeAll()) {
      seen.push(`${position} ${stream} ${seq}`);
      if (seen.length === 5) break;
    }
    expect(seen).toEqual(["1 run/a 1", "2 run/a 2", "3 run/b 1", "4 run/b 2", "5 run/c 1"]);
    old.close();
  }));

test("delivers the rest to a subscription to all streams when a row is damaged", () =>
  withFile(async (path) => {
    {
      await using log = createSqliteLog({ path });
      for (const stream of ["run/bad", "run/good"]) await log.append(stream, [event(1), event(2)]);
    }
    const database = new DatabaseSync(path);
    database.exec("UPDATE events SET data = '{\"n\":' WHERE stream = 'run/bad' AND seq = 1");
    database.close();
    await using log = createSqliteLog({ path });
    const seen: unknown[] = [];
    for await (const { stream, seq, damage } of log.subscribeAll()) if (seen.push([stream, seq, damage !== undefined]) === 4) break;
    expect(seen).toEqual([
      ["run/bad", 1, true],
      ["run/bad", 2, false],
      ["run/good", 1, false],
      ["run/good", 2, false],
    ]);
  }));

test("reads the rows around a damaged one, and all other streams", () =>
  withFile(async (path) => {
    {
      await using log = createSqliteLog({ path });
      const started = (step: number) => StepStarted.make({ step });
      for (const stream of ["run/bad", "run/good"]) await log.append(stream, [started(1), started(2), started(3)]);
    }
    const database = new DatabaseSync(path);
    database.exec("UPDATE events SET data = '{\"step\":' WHERE stream = 'run/bad' AND seq = 2");
    database.close();
    await using log = createSqliteLog({ path });
    const rows = await log.read("run/bad");
    expect(rows.map(({ seq, damage }) => [seq, damage])).toEqual([
      [1, undefined],
      [2, "event 2 of run/bad is not JSON"],
      [3, undefined],
    ]);
    expect(await log.read("run/good")).toHaveLength(3);
    const { heads } = await log.heads({ prefix: "run/", open: true, limit: 10 });
    expect(heads.map(({ stream, damage }) => [stream, damage]).sort()).toEqual([
      ["run/bad", "event 2 of run/bad is not JSON"],
      ["run/good", null],
    ]);
  }));

test("waits for a locked log, notifies the user, and fails at the limit", () =>
  withFile(async (path) => {
    const notices: string[] = [];
    await using log = createSqliteLog({ path, onBusy: (text) => notices.push(text) });
    await using impatient = createSqliteLog({ path, busyWaitMsMax: 100 });
    const holder = new DatabaseSync(path);
    holder.exec("BEGIN IMMEDIATE");
    const waiting = log.append("a", [event(1)]);
    const failure = await impatient.append("a", [event(2)]).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "unavailable", details: { log: true } });
    await vi.waitFor(() => expect(notices).toEqual([`process ${process.pid} holds the log; waiting for it`]), { timeout: 60_000 });
    holder.exec("COMMIT");
    holder.close();
    expect(await waiting).toEqual({ lastSeq: 1 });
    expect(await log.read("a")).toHaveLength(1);
  }));

test("names the process that holds the log, and whether it is stopped", () =>
  withFile(async (path) => {
    await using log = createSqliteLog({ path });
    expect(await log.lastSeq("a")).toBe(0);
    expect([lockHolder(path), describeLockHolder(path)]).toEqual([null, "another process"]);
    const program = `
      const { DatabaseSync } = require("node:sqlite");
      new DatabaseSync(process.argv[1]).exec("BEGIN IMMEDIATE");
      process.kill(process.pid, "SIGSTOP");`;
    const holder = spawn(process.execPath, ["-e", program, path], { stdio: "ignore" });
    try {
      const stopped = `process ${holder.pid}, which is stopped (\`kill -CONT ${holder.pid}\` continues it),`;
      await vi.waitFor(() => expect(describeLockHolder(path)).toBe(stopped), { timeout: 60_000 });
      expect(lockHolder(path)).toBe(holder.pid);
    } finally {
      holder.kill("SIGKILL");
      await once(holder, "close");
    }
  }));

test("stores inherited events once, and collects them with their last heir", () =>
  withFile(async (path) => {
    await using log = createSqliteLog({ path });
    const database = new DatabaseSync(path);
    const count = () => (database.prepare("SELECT count(*) AS rows FROM events").get() as { rows: number }).rows;
    await log.append("a", [1, 2, 3, 4].map(event));
    for (const fork of ["b", "c", "d"]) await log.append(fork, [event(9)], { inherits: { stream: "a", seq: 3 } });
    expect(count()).toBe(7);
    await log.remove("a");
    expect(count()).toBe(6);
    await log.remove("b");
    await log.remove("d");
    expect(count()).toBe(4);
    await log.remove("c");
    expect(count()).toBe(0);
    expect(database.prepare("SELECT count(*) AS rows FROM inherited").get()).toEqual({ rows: 0 });
    database.close();
  }));

test("finds damage in inherited events, for their stream and every heir that has them", () =>
  withFile(async (path) => {
    {
      await using log = createSqliteLog({ path });
      await log.append("a", [1, 2, 3, 4].map(event));
      await log.append("late", [event(9)], { inherits: { stream: "a", seq: 3 } });
      await log.append("early", [event(9)], { inherits: { stream: "a", seq: 1 } });
      await log.append("b", [1, 2].map(event));
      await log.append("orphan", [event(9)], { inherits: { stream: "b", seq: 2 } });
      await log.append("own", [event(9), event(10)], { inherits: { stream: "b", seq: 2 } });
      await log.remove("b");
      expect(await log.check()).toEqual([]);
    }
    const database = new DatabaseSync(path);
    database.exec(`UPDATE events SET data = '{"n":7}' WHERE stream = 'a' AND seq = 3`);
    database.exec(`UPDATE events SET data = '{"n":7}' WHERE stream LIKE 'b%' AND seq = 2`);
    database.exec("DELETE FROM events WHERE stream = 'own' AND seq = 3");
    database.close();
    await using log = createSqliteLog({ path });
    expect((await log.check()).map(({ stream, fromSeq }) => [stream, fromSeq]).sort()).toEqual([
      ["a", 3],
      ["late", 3],
      ["orphan", 2],
      ["own", 2],
    ]);
  }));

test("refuses to let an older version delete events that a fork needs", () =>
  withFile(async (path) => {
    await using log = createSqliteLog({ path });
    await log.append("a", [event(1), event(2)]);
    await log.append("b", [event(3)], { inherits: { stream: "a", seq: 1 } });
    const old = new DatabaseSync(path);
    expect(() => old.exec("DELETE FROM events WHERE stream = 'a'")).toThrow("a fork still needs these events");
    old.close();
    expect(await log.read("b")).toHaveLength(2);
  }));

test("upgrades a log of the fourth schema, and forks its streams", () =>
  withFile(async (path) => {
    const database = new DatabaseSync(path);
    database.exec(`${schema} ${schemaSince2} ${schemaSince3} ${schemaSince4} PRAGMA user_version=4;`);
    database.exec(`INSERT INTO events VALUES ('a', 1, 'x', 1, '', '{}', 5), ('a', 2, 'x', 1, '', '{}', 6)`);
    database.exec(`INSERT INTO streams (stream, last_seq, last_sum, at, epoch) VALUES ('a', 2, 6, '', 0)`);
    database.close();
    await using log = createSqliteLog({ path });
    await log.append("b", [event(3)], { inherits: { stream: "a", seq: 2 } });
    await log.append("a", [event(3)]);
    const seen: string[] = [];
    for await (const { stream, seq, position } of log.subscribeAll()) if (seen.push(`${position} ${stream}${seq}`) === 4) break;
    expect(seen).toEqual(["1 a1", "2 a2", "3 b3", "4 a3"]);
    expect((await log.read("b")).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  }));
