import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { take } from "../conformance/use-log.ts";
import type { Log, StoredEvent } from "../log.ts";
import { readPages } from "../read-pages.ts";
import { createSqliteLog } from "./log.ts";

const EVENT_BYTES = 100 * 1024;
const HELD_EVENTS_MAX = Math.ceil(1024 ** 2 / EVENT_BYTES) + 1;
const large = (n: number, type = "test.happened") => ({ type, version: 1, data: { n, pad: "x".repeat(EVENT_BYTES) } });

let dir = "";
let log: Log;
beforeEach(async () => {
  dir = await mkdtemp(join(memoryFolder(), "caisson-test-large-"));
  log = createSqliteLog({ path: join(dir, "log.db") });
  for (let n = 0; n < 10; n++)
    await log.append(
      "a",
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((each) => large(10 * n + each)),
    );
});
afterEach(async () => {
  await log[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

describe("events of 100 KB", () => {
  test("take at most one page of memory if the reader stops reading", async () => {
    const held: number[] = [];
    for await (const event of log.subscribeAll()) {
      if (event.stream === "b") break;
      held.push(event.seq);
      // Any event that arrives after its stream was removed was in memory.
      if (held.length > 1) continue;
      await log.remove("a");
      await log.append("b", [large(1)]);
    }
    expect(held.length).toBeLessThanOrEqual(HELD_EVENTS_MAX);
  });

  test("arrive complete and in order, with every way of reading", async () => {
    const all = Array.from({ length: 100 }, (_, n) => n + 1);
    expect((await take(log.subscribe("a"), 100)).map(({ seq }) => seq)).toEqual(all);
    const events = await take(log.subscribeAll({ afterPosition: 4 }), 96);
    expect(events.map(({ seq, position }) => [seq, position])).toEqual(all.slice(4).map((n) => [n, n]));
    await log.append("b", [large(1), large(2, "test.other"), large(3), ...[4, 5, 6, 7, 8].map((n) => large(n, "test.other")), large(9)]);
    const typed = await take(log.subscribeAll({ types: ["test.other"] }), 6);
    expect(typed.map(({ seq }) => seq)).toEqual([2, 4, 5, 6, 7, 8]);
  });

  test("are read up to a bound of bytes, but at least one", async () => {
    expect(await log.read("a", { bytesMax: 3 * EVENT_BYTES })).toHaveLength(3);
    expect((await log.read("a", { fromSeq: 7, bytesMax: 1 })).map(({ seq }) => seq)).toEqual([7]);
    expect(await log.read("a")).toHaveLength(100);
  });

  test("are read to the end in pages of at most 4 MiB", async () => {
    const pages: StoredEvent[][] = [];
    for await (const page of readPages(log, "a", { fromSeq: 5 })) pages.push(page);
    expect(pages.length).toBeGreaterThan(1);
    expect(Math.max(...pages.map(({ length }) => length)) * EVENT_BYTES).toBeLessThanOrEqual(4 * 1024 ** 2 + EVENT_BYTES);
    expect(pages.flat().map(({ seq }) => seq)).toEqual(Array.from({ length: 96 }, (_, n) => n + 5));
  });
});
