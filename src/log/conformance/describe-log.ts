import { describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error.ts";
import type { LeaseClock } from "../lease-clock.ts";
import type { Log, NewEvent, StoredEvent } from "../log.ts";

interface OpenOptions {
  nowMs?: () => number;
  leaseClock?: LeaseClock;
}

/** What every log must do. `open` gives a handle on the same store each time it is called; `shared` says whether two handles share it. */
export function describeLog(name: string, make: () => Promise<{ open(options?: OpenOptions): Promise<Log>; dispose(): Promise<void> }>) {
  describe(`log conformance: ${name}`, () => {
    const event = (n: number): NewEvent => ({ type: "test.happened", version: 1, data: { n } });
    const using = async (work: (log: Log, reopen: (options?: OpenOptions) => Promise<Log>) => Promise<void>) => {
      const store = await make();
      const opened: Log[] = [];
      const open = async (options?: OpenOptions) => {
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
        const log = await open({ leaseClock: { boot: "this", nowMs: () => now } });
        const first = await log.acquire("a", { owner: "one", ttlMs: 1000 });
        expect(first?.epoch).toBe(1);
        expect(await log.acquire("a", { owner: "two", ttlMs: 1000 })).toBeNull();
        expect((await log.holder("a"))?.owner).toBe("one");
        now += 1001;
        expect(await log.holder("a")).toBeNull();
        expect((await log.lastLease("a"))?.owner).toBe("one");
        const second = await log.acquire("a", { owner: "two", ttlMs: 1000 });
        expect(second?.epoch).toBe(2);
        const third = await log.acquire("a", { owner: "three", ttlMs: 1000, ownerGone: (owner) => owner === "two" });
        expect(third?.epoch).toBe(3);
        if (third) await log.release(third);
        expect(await log.holder("a")).toBeNull();
        expect(await log.lastLease("a")).toBeNull();
      }));

    test("a lease is not lost to a clock that is set", () =>
      using(async (_, open) => {
        let wall = Date.parse("2026-01-01T00:00:00Z");
        let monotonic = 5_000;
        const log = await open({ nowMs: () => wall, leaseClock: { boot: "this", nowMs: () => monotonic } });
        const lease = await log.acquire("a", { owner: "one", ttlMs: 1000 });
        wall += 3_600_000;
        expect(await log.acquire("a", { owner: "two", ttlMs: 1000 })).toBeNull();
        if (lease) await log.renew(lease, { ttlMs: 1000 });
        wall -= 7_200_000;
        monotonic += 1001;
        expect((await log.acquire("a", { owner: "two", ttlMs: 1000 }))?.epoch).toBe(2);
      }));

    test("whoever lost the lease is fenced out of append and renew", () =>
      using(async (_, open) => {
        let now = 1_000_000;
        const log = await open({ nowMs: () => now, leaseClock: { boot: "this", nowMs: () => now } });
        const old = await log.acquire("a", { owner: "one", ttlMs: 10 });
        if (!old) throw new Error("no lease");
        await log.append("a", [event(1)], { lease: old });
        now += 11;
        const fresh = await log.acquire("a", { owner: "two", ttlMs: 10_000 });
        if (!fresh) throw new Error("no lease");
        expect(await codeOf(log.append("a", [event(2)], { lease: old }))).toBe("superseded");
        expect(await codeOf(log.renew(old, { ttlMs: 10 }))).toBe("superseded");
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

    const asked = (question: string): NewEvent => ({
      type: "permission.asked",
      version: 1,
      data: { question, call: null, kind: "stuck", text: "Go on?", pattern: null },
    });
    const started = (step: number): NewEvent => ({ type: "step.started", version: 1, data: { step } });
    const over: NewEvent = {
      type: "run.ended",
      version: 1,
      data: { reason: "done", text: "", steps: 1, usage: { inputTokens: 0, outputTokens: 0 }, costUsd: 0 },
    };

    test("the head of a run changes with each append, and has the sequence to expect next", () =>
      using(async (log, open) => {
        const other = await open();
        expect(await log.head("run/1")).toBeNull();
        await log.append("run/1", [started(1), asked("ask_aaaaaaaaaaaa")]);
        await other.append("run/1", [started(2)]);
        expect(await log.head("run/1")).toMatchObject({
          seq: 3,
          damage: null,
          head: { step: 2, asked: [{ question: "ask_aaaaaaaaaaaa" }] },
        });
        await log.append("run/1", [over], { expectedSeq: 3 });
        expect(await other.head("run/1")).toMatchObject({ seq: 4, head: { status: "ended", finish: "done" } });
        await log.append("session/1", [started(1)]);
        expect(await log.head("session/1")).toBeNull();
      }));

    test("a refused append leaves the head alone", () =>
      using(async (log) => {
        await log.append("run/1", [started(1)]);
        expect(await codeOf(log.append("run/1", [started(9)], { expectedSeq: 0 }))).toBe("conflict");
        expect(await log.head("run/1")).toMatchObject({ seq: 1, head: { step: 1 } });
      }));

    test("heads are listed newest first, those that are open and those that are not, with how many there are", () =>
      using(async (_, open) => {
        let now = 1_000_000;
        const log = await open({ nowMs: () => now });
        for (const [stream, events] of [
          ["run/1", [started(1)]],
          ["run/2", [started(1), over]],
          ["run/3", [started(1)]],
          ["other/1", [started(1)]],
        ] as const) {
          now += 1000;
          await log.append(stream, events);
        }
        const listed = await log.heads({ prefix: "run/", open: true, limit: 10 });
        expect([listed.total, listed.heads.map((each) => each.stream)]).toEqual([2, ["run/3", "run/1"]]);
        const first = await log.heads({ prefix: "run/", open: true, limit: 1 });
        expect([first.total, first.heads.map((each) => each.stream)]).toEqual([2, ["run/3"]]);
        expect((await log.heads({ prefix: "run/", open: false, limit: 10 })).heads.map((each) => each.stream)).toEqual(["run/2"]);
        await log.remove("run/3");
        expect((await log.heads({ prefix: "run/", open: true, limit: 10 })).total).toBe(1);
        expect(await log.head("run/3")).toBeNull();
      }));

    test("what cannot be understood is left out of the head, which says so", () =>
      using(async (log) => {
        await log.append("run/1", [started(1), { type: "run.created", version: 1, data: { oops: true } }, started(2)]);
        expect(await log.head("run/1")).toMatchObject({ seq: 3, head: { step: 2 }, damage: expect.stringContaining("event 2") });
        await log.noteDamage("run/1", null);
        expect((await log.head("run/1"))?.damage).toBeNull();
      }));

    test("refuses what is over a bound", () =>
      using(async (log) => {
        expect(await codeOf((async () => log.append("a", [{ type: "x", version: 1, data: "x".repeat(5_000_000) }]))())).toBe("too_large");
        expect(await codeOf((async () => log.append("", [event(1)]))())).toBe("invalid");
        expect(await log.lastSeq("a")).toBe(0);
      }));
  });
}
