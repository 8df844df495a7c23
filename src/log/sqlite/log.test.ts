import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { describeLog } from "../conformance/describe-log.ts";
import { createSqliteLog } from "./log.ts";

const makeDir = () => mkdtemp(join(tmpdir(), "caisson-test-log-"));

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

test("a changed row, a missing row and a cut end are found, and the rest stays readable", () =>
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

test("a log file whose pages were overwritten is reported, not mistaken for an empty one", () =>
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

test("a file that is no log gives a clear error", () =>
  withFile(async (path) => {
    const file = await open(path, "w");
    await file.write("this is not a database, whatever its name says".repeat(20));
    await file.close();
    expect(() => createSqliteLog({ path })).toThrowError(expect.objectContaining({ code: "internal" }));
  }));
