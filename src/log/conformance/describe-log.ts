import { describe, expect, test } from "vitest";
import { testFoundHeads } from "./found-head-tests.ts";
import { testHeads } from "./head-tests.ts";
import { testInheriting } from "./inherit-tests.ts";
import { testLeases } from "./lease-tests.ts";
import { testRetelling } from "./retold-tests.ts";
import { testSubscriptions } from "./subscription-tests.ts";
import { codeOf, event, type MakeLogStore, type UseLog, useLogOf } from "./use-log.ts";

/** Tests the behavior that every log must have. */
export function describeLog(name: string, make: MakeLogStore): void {
  describe(`log conformance: ${name}`, () => {
    const using = useLogOf(make);
    testStreams(using);
    testRetelling(using);
    testInheriting(using);
    testSubscriptions(using);
    testLeases(using);
    testHeads(using);
    testFoundHeads(using);
  });
}

function testStreams(using: UseLog): void {
  test("numbers events from 1 without gaps, and keeps their data and order", () =>
    using(async (log) => {
      expect(await log.append("a", [event(1), event(2)])).toEqual({ lastSeq: 2 });
      expect(await log.append("b", [event(9)])).toEqual({ lastSeq: 1 });
      expect(await log.append("a", [event(3)], { expectedSeq: 2 })).toEqual({ lastSeq: 3 });
      const read = await log.read("a");
      expect(read.map((each) => [each.seq, each.data])).toEqual([1, 2, 3].map((n) => [n, { n }]));
      expect(await log.lastSeq("a")).toBe(3);
      expect(await log.lastSeq("nothing")).toBe(0);
    }));

  test("rejects a wrong expected sequence, reports the right one and appends nothing", () =>
    using(async (log) => {
      await log.append("a", [event(1)]);
      const failure = await log.append("a", [event(2)], { expectedSeq: 0 }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: "conflict", details: { lastSeq: 1 } });
      expect(await log.lastSeq("a")).toBe(1);
    }));

  test("lets one of many concurrent appends with the same expected sequence win", () =>
    using(async (log) => {
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => codeOf(log.append("a", [event(n)], { expectedSeq: 0 }))));
      expect(outcomes.filter((outcome) => outcome === "no error")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome === "conflict")).toHaveLength(19);
      await Promise.all(Array.from({ length: 200 }, (_, n) => log.append("a", [event(n)])));
      expect((await log.read("a")).map((each) => each.seq)).toEqual(Array.from({ length: 201 }, (_, n) => n + 1));
    }));

  test("appends the rest of a batch if one append is rejected", () =>
    using(async (log) => {
      const [first, second, third] = await Promise.all([
        codeOf(log.append("a", [event(1)])),
        codeOf(log.append("b", [event(1)], { expectedSeq: 7 })),
        codeOf(log.append("c", [event(1)])),
      ]);
      expect([first, second, third]).toEqual(["no error", "conflict", "no error"]);
      expect(await log.lastSeq("b")).toBe(0);
    }));

  test("reads a page from a given sequence", () =>
    using(async (log) => {
      await log.append(
        "a",
        Array.from({ length: 30 }, (_, n) => event(n + 1)),
      );
      expect((await log.read("a", { fromSeq: 11, limit: 5 })).map((each) => each.seq)).toEqual([11, 12, 13, 14, 15]);
      expect(await log.read("a", { fromSeq: 31 })).toEqual([]);
    }));

  test("lists streams by prefix, newest first, without removed ones", () =>
    using(async (_, open) => {
      let now = 1_000_000;
      const log = await open({ nowMs: () => now });
      for (const stream of ["run/1", "run/2", "other/1"]) {
        now += 1000;
        await log.append(stream, [event(1)]);
      }
      expect((await log.streams({ prefix: "run/" })).map((each) => each.stream)).toEqual(["run/2", "run/1"]);
      await log.remove("run/2");
      expect((await log.streams({ prefix: "run/" })).map((each) => each.stream)).toEqual(["run/1"]);
      expect(await codeOf(log.remove("run/2"))).toBe("not_found");
    }));

  test("rejects events and stream names that exceed a bound", () =>
    using(async (log) => {
      expect(await codeOf((async () => log.append("a", [{ type: "x", version: 1, data: "x".repeat(5_000_000) }]))())).toBe("too_large");
      expect(await codeOf((async () => log.append("", [event(1)]))())).toBe("invalid");
      expect(await log.lastSeq("a")).toBe(0);
    }));
}
