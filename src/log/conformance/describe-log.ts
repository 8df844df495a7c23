import { describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error.ts";
import type { Log, NewEvent, StoredEvent } from "../log.ts";

/** What every log must do. `open` gives a handle on the same store each time it is called; `shared` says whether two handles share it. */
export function describeLog(
  name: string,
  make: () => Promise<{ open(options?: { nowMs?: () => number }): Promise<Log>; dispose(): Promise<void> }>,
) {
  describe(`log conformance: ${name}`, () => {
    const event = (n: number): NewEvent => ({ type: "test.happened", version: 1, data: { n } });
    const using = async (work: (log: Log, reopen: (options?: { nowMs?: () => number }) => Promise<Log>) => Promise<void>) => {
      const store = await make();
      const opened: Log[] = [];
      const open = async (options?: { nowMs?: () => number }) => {
        const log = await store.open(options);
        opened.push(log);
        return log;
      };
      try {
        await work(await open(), open);
      } finally {
        for (const log of opened) await log[Symbol.asyncDispose]();
        await store.dispose();
      }
    };
    const codeOf = async (promise: Promise<unknown>) => {
      try {
        await promise;
        return "no error";
      } catch (error) {
        return error instanceof CaissonError ? error.code : `foreign: ${error}`;
      }
    };
    const take = async (events: AsyncIterable<StoredEvent>, count: number) => {
      const taken: StoredEvent[] = [];
      for await (const each of events) {
        taken.push(each);
        if (taken.length === count) break;
      }
      return taken;
    };

    test("numbers events from 1 without gaps, keeps data and order", () =>
      using(async (log) => {
        expect(await log.append("a", [event(1), event(2)])).toEqual({ lastSeq: 2 });
        expect(await log.append("b", [event(9)])).toEqual({ lastSeq: 1 });
        expect(await log.append("a", [event(3)], { expectedSeq: 2 })).toEqual({ lastSeq: 3 });
        const read = await log.read("a");
        expect(read.map((each) => [each.seq, each.data])).toEqual([1, 2, 3].map((n) => [n, { n }]));
        expect(await log.lastSeq("a")).toBe(3);
        expect(await log.lastSeq("nothing")).toBe(0);
      }));

    test("refuses a wrong expected sequence and tells the right one, and appends nothing", () =>
      using(async (log) => {
        await log.append("a", [event(1)]);
        const failure = await log.append("a", [event(2)], { expectedSeq: 0 }).catch((error: unknown) => error);
        expect(failure).toMatchObject({ code: "conflict", details: { lastSeq: 1 } });
        expect(await log.lastSeq("a")).toBe(1);
      }));

    test("many appends at once: dense, and only one of those that expect the same sequence wins", () =>
      using(async (log) => {
        const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => codeOf(log.append("a", [event(n)], { expectedSeq: 0 }))));
        expect(outcomes.filter((outcome) => outcome === "no error")).toHaveLength(1);
        expect(outcomes.filter((outcome) => outcome === "conflict")).toHaveLength(19);
        await Promise.all(Array.from({ length: 200 }, (_, n) => log.append("a", [event(n)])));
        expect((await log.read("a")).map((each) => each.seq)).toEqual(Array.from({ length: 201 }, (_, n) => n + 1));
      }));

    test("a refused append of a batch does not disturb its neighbours", () =>
      using(async (log) => {
        const [first, second, third] = await Promise.all([
          codeOf(log.append("a", [event(1)])),
          codeOf(log.append("b", [event(1)], { expectedSeq: 7 })),
          codeOf(log.append("c", [event(1)])),
        ]);
        expect([first, second, third]).toEqual(["no error", "conflict", "no error"]);
        expect(await log.lastSeq("b")).toBe(0);
      }));

    test("reads a page from a sequence", () =>
      using(async (log) => {
        await log.append(
          "a",
          Array.from({ length: 30 }, (_, n) => event(n + 1)),
        );
        expect((await log.read("a", { fromSeq: 11, limit: 5 })).map((each) => each.seq)).toEqual([11, 12, 13, 14, 15]);
        expect(await log.read("a", { fromSeq: 31 })).toEqual([]);
      }));

    test("a subscription gives the past, then what comes, without gap or repeat", () =>
      using(async (log) => {
        await log.append("a", [event(1), event(2)]);
        const got = take(log.subscribe("a", { fromSeq: 2 }), 700);
        for (let n = 3; n <= 701; n++) void log.append("a", [event(n)]);
        expect((await got).map((each) => each.seq)).toEqual(Array.from({ length: 700 }, (_, n) => n + 2));
      }));

    test("a subscription sees what another handle appends", () =>
      using(async (log, open) => {
        const other = await open();
        const got = take(log.subscribe("a"), 2);
        await other.append("a", [event(1)]);
        await other.append("a", [event(2)]);
        expect((await got).map((each) => each.seq)).toEqual([1, 2]);
      }));

    test("a subscription ends with its signal", () =>
      using(async (log) => {
        const abort = new AbortController();
        const done = (async () => {
          const seen: number[] = [];
          for await (const each of log.subscribe("a", { signal: abort.signal })) {
            seen.push(each.seq);
            abort.abort();
          }
          return seen;
        })();
        await log.append("a", [event(1)]);
        expect(await done).toEqual([1]);
      }));

    test("a lease is exclusive until it is released, expires, or its owner is gone; the epoch rises", () =>
      using(async (_, open) => {
        let now = 1_000_000;
        const log = await open({ nowMs: () => now });
        const first = await log.acquire("a", { owner: "one", ttlMs: 1000 });
        expect(first?.epoch).toBe(1);
        expect(await log.acquire("a", { owner: "two", ttlMs: 1000 })).toBeNull();
        expect((await log.holder("a"))?.owner).toBe("one");
        now += 1001;
        const second = await log.acquire("a", { owner: "two", ttlMs: 1000 });
        expect(second?.epoch).toBe(2);
        const third = await log.acquire("a", { owner: "three", ttlMs: 1000, ownerGone: (owner) => owner === "two" });
        expect(third?.epoch).toBe(3);
        if (third) await log.release(third);
        expect(await log.holder("a")).toBeNull();
      }));

    test("whoever lost the lease is fenced out of append and renew", () =>
      using(async (_, open) => {
        let now = 1_000_000;
        const log = await open({ nowMs: () => now });
        const old = await log.acquire("a", { owner: "one", ttlMs: 10 });
        if (!old) throw new Error("no lease");
        await log.append("a", [event(1)], { lease: old });
        now += 11;
        const fresh = await log.acquire("a", { owner: "two", ttlMs: 10_000 });
        if (!fresh) throw new Error("no lease");
        expect(await codeOf(log.append("a", [event(2)], { lease: old }))).toBe("denied");
        expect(await codeOf(log.renew(old, { ttlMs: 10 }))).toBe("denied");
        await log.release(old);
        await log.append("a", [event(2)], { lease: fresh });
        expect((await log.renew(fresh, { ttlMs: 50_000 })).expiresAtMs).toBe(now + 50_000);
        expect(await log.lastSeq("a")).toBe(2);
      }));

    test("lists streams by prefix, newest first, and forgets a removed one", () =>
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

    test("refuses what is over a bound", () =>
      using(async (log) => {
        expect(await codeOf((async () => log.append("a", [{ type: "x", version: 1, data: "x".repeat(5_000_000) }]))())).toBe("too_large");
        expect(await codeOf((async () => log.append("", [event(1)]))())).toBe("invalid");
        expect(await log.lastSeq("a")).toBe(0);
      }));
  });
}
