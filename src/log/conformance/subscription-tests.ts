import { expect, test } from "vitest";
import { event, take, type UseLog } from "./use-log.ts";

/** Tests subscriptions to one stream, and to all. */
export function testSubscriptions(using: UseLog): void {
  test("delivers past and live events without a gap or repeat", () =>
    using(async (log) => {
      await log.append("a", [event(1), event(2)]);
      const got = take(log.subscribe("a", { fromSeq: 2 }), 700);
      for (let n = 3; n <= 701; n++) void log.append("a", [event(n)]);
      expect((await got).map((each) => each.seq)).toEqual(Array.from({ length: 700 }, (_, n) => n + 2));
    }));

  test("delivers events that another handle appends", () =>
    using(async (log, open) => {
      const other = await open();
      const got = take(log.subscribe("a"), 2);
      await other.append("a", [event(1)]);
      await other.append("a", [event(2)]);
      expect((await got).map((each) => each.seq)).toEqual([1, 2]);
    }));

  test("skips only the events that the subscriber already knows", () =>
    using(async (log, open) => {
      const other = await open();
      await log.append("a", [event(1), event(2)]);
      let known = 2;
      const got = take(log.subscribe("a", { known: () => known }), 2);
      for (let n = 3; n <= 10; n++) {
        known = n;
        await log.append("a", [event(n)]);
      }
      await other.append("a", [event(11)]);
      await other.append("a", [event(12)]);
      expect((await got).map((each) => each.seq)).toEqual([11, 12]);
    }));

  test("ends a subscription with its signal", () =>
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

  testSubscriptionsToAll(using);
  testSubscriptionsToTypes(using);
}

function testSubscriptionsToAll(using: UseLog): void {
  test("delivers the events of all streams in one order, without a gap or repeat", () =>
    using(async (log, open) => {
      const other = await open();
      await log.append("run/1", [event(1), event(2)]);
      await log.append("other/1", [event(9)]);
      const got = take(log.subscribeAll({ prefix: "run/" }), 1202);
      const writers = [log, other].map(async (handle, who) => {
        for (let n = 0; n < 60; n++)
          await handle.append(
            `run/${who}-${n % 3}`,
            Array.from({ length: 10 }, () => event(n)),
          );
      });
      await Promise.all(writers);
      const events = await got;
      expect(events.map(({ stream }) => stream)).not.toContain("other/1");
      const positions = events.map(({ position }) => position);
      expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
      for (const stream of new Set(events.map((each) => each.stream))) {
        const seqs = events.filter((each) => each.stream === stream).map((each) => each.seq);
        expect(seqs).toEqual(Array.from({ length: await log.lastSeq(stream) }, (_, n) => n + 1));
      }
    }));

  test("continues a subscription to all streams after any position, even in an append", () =>
    using(async (log) => {
      for (const stream of ["a", "b"])
        await log.append(
          stream,
          Array.from({ length: 700 }, (_, n) => event(n)),
        );
      await log.append("a", [event(7)]);
      expect(await log.lastPosition()).toBe(1401);
      const all = await take(log.subscribeAll(), 1401);
      expect(all.map(({ position }) => position)).toEqual(Array.from({ length: 1401 }, (_, n) => n + 1));
      for (const afterPosition of [3, 699, 700, 701, 1250, 1400])
        expect(await take(log.subscribeAll({ afterPosition }), 1401 - afterPosition)).toEqual(all.slice(afterPosition));
      const next = take(log.subscribeAll({ afterPosition: 1401 }), 1);
      await log.append("c", [event(1)]);
      expect(await next).toMatchObject([{ stream: "c", seq: 1, position: 1402 }]);
    }));

  test("loses no events for a stalled consumer, and does not delay the others", () =>
    using(async (log) => {
      const stalled = log.subscribeAll()[Symbol.asyncIterator]();
      await log.append("a", [event(0)]);
      await stalled.next();
      const quick = take(log.subscribeAll(), 1501);
      for (let n = 1; n <= 15; n++)
        await log.append(
          "a",
          Array.from({ length: 100 }, () => event(n)),
        );
      expect(await quick).toHaveLength(1501);
      for (let seq = 2; seq <= 1501; seq++) expect((await stalled.next()).value).toMatchObject({ stream: "a", seq });
      await stalled.return?.();
    }));

  test("delivers no events of a removed stream, and restarts its numbering", () =>
    using(async (log) => {
      await log.append("a", [event(1), event(2)]);
      await log.append("b", [event(3)]);
      await log.remove("a");
      await log.append("a", [event(4)]);
      expect((await take(log.subscribeAll(), 2)).map(({ stream, seq, position }) => [stream, seq, position])).toEqual([
        ["b", 1, 3],
        ["a", 1, 4],
      ]);
    }));

  test("ends a subscription to all streams with its signal", () =>
    using(async (log) => {
      const abort = new AbortController();
      const events = log.subscribeAll({ signal: abort.signal })[Symbol.asyncIterator]();
      const waiting = events.next();
      abort.abort();
      expect(await waiting).toMatchObject({ done: true });
    }));
}

function testSubscriptionsToTypes(using: UseLog): void {
  test("delivers every event of the requested types and no others", () =>
    using(async (log, open) => {
      const other = await open();
      const of = (type: string, n: number) => ({ ...event(n), type });
      const got = take(log.subscribeAll({ prefix: "run/", types: ["wanted", "as well"], restMs: 20 }), 602);
      await log.append("other/1", [of("wanted", 0)]);
      for (let n = 0; n < 300; n++) {
        const append = [of("streamed", n), of("wanted", n), of("streamed", n), of("as well", n), of("streamed", n)];
        await (n % 2 === 0 ? log : other).append(`run/${n % 3}`, append);
      }
      for (let n = 0; n < 600; n++) await log.append("run/0", [of("streamed", n)]);
      await log.append("run/0", [of("wanted", 300), of("streamed", 0), of("as well", 300)]);
      const events = await got;
      expect(events.map(({ type }) => type)).toEqual(Array.from({ length: 602 }, (_, n) => (n % 2 === 0 ? "wanted" : "as well")));
      expect(events.every(({ stream }) => stream.startsWith("run/"))).toBe(true);
      const { position = 0 } = events[100] ?? {};
      const rest = await take(log.subscribeAll({ prefix: "run/", types: ["wanted", "as well"], afterPosition: position }), 501);
      expect(rest).toEqual(events.slice(101));
      // This append is longer than a page of a subscription.
      await log.append(
        "run/9",
        Array.from({ length: 900 }, (_, n) => of(n % 3 === 0 ? "streamed" : "wanted", n)),
      );
      const last = events.at(-1)?.position ?? 0;
      expect((await take(log.subscribeAll({ types: ["wanted"], afterPosition: last }), 600)).map(({ seq }) => seq)).toEqual(
        Array.from({ length: 900 }, (_, n) => n + 1).filter((seq) => seq % 3 !== 1),
      );
    }));
}
