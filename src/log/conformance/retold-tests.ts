import { expect, test } from "vitest";
import { event, type UseLog } from "./use-log.ts";

const numbers = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);

/** Tests log compaction: events that replace everything before them. */
export function testRetelling(using: UseLog): void {
  test("keeps only the new events of a compacted stream, and its numbering", () =>
    using(async (log) => {
      await log.append("a", numbers(1, 30).map(event));
      await log.append("b", [event(1)]);
      expect(await log.append("a", [event(31), event(32)], { expectedSeq: 30, isRetold: true })).toEqual({ lastSeq: 32 });
      expect((await log.read("a")).map(({ seq, data }) => [seq, data])).toEqual([31, 32].map((n) => [n, { n }]));
      expect((await log.read("a", { limit: 1 })).map(({ seq }) => seq)).toEqual([31]);
      expect(await log.lastSeq("a")).toBe(32);
      await log.append("a", [event(33)], { expectedSeq: 32 });
      expect((await log.read("a", { fromSeq: 32 })).map(({ seq }) => seq)).toEqual([32, 33]);
      expect((await log.read("b")).map(({ seq }) => seq)).toEqual([1]);
      // The check reports no missing events.
      expect(await log.check()).toEqual([]);
      await log.append("a", [event(34)], { isRetold: true });
      await log.append("a", [event(35)]);
      expect((await log.read("a")).map(({ seq }) => seq)).toEqual([34, 35]);
      expect(await log.check()).toEqual([]);
    }));

  test("changes nothing if a compaction is rejected", () =>
    using(async (log) => {
      await log.append("a", [event(1), event(2)]);
      await expect(log.append("a", [event(3)], { expectedSeq: 1, isRetold: true })).rejects.toMatchObject({ code: "conflict" });
      await log.append("a", [], { isRetold: true });
      expect((await log.read("a")).map(({ seq }) => seq)).toEqual([1, 2]);
    }));

  test("computes the head of a compacted stream from its new events", () =>
    using(async (log, open) => {
      const createdAt = "2026-11-16T12:00:00.000Z";
      const created = (more = {}) => ({ type: "driven.created", version: 1, data: { id: "wf_a", title: "one", parent: null, ...more } });
      const waiting = { type: "driven.waiting", version: 1, data: { due: createdAt, children: [], person: null, signal: null } };
      await log.append("workflow/wf_a", [created(), waiting, waiting]);
      await log.append("workflow/wf_a", [created({ createdAt }), waiting], { isRetold: true });
      const other = await open();
      const head = { stream: "workflow/wf_a", seq: 5, damage: null, head: { createdAt, status: "waiting", finish: null } };
      for (const each of [log, other]) {
        expect(await each.head("workflow/wf_a")).toMatchObject(head);
        expect((await each.heads({ prefix: "workflow/", open: true, limit: 10 })).heads).toMatchObject([head]);
      }
      await log.noteDamage("workflow/wf_a", null);
      await other.append("workflow/wf_a", [waiting]);
      expect(await log.head("workflow/wf_a")).toMatchObject({ ...head, seq: 6 });
    }));

  test("delivers each event of a compacted stream exactly once to subscribers", () =>
    using(async (log) => {
      const end = new AbortController();
      await log.append("a", [event(1), event(2)]);
      const [one, all] = [
        log.subscribe("a", { signal: end.signal })[Symbol.asyncIterator](),
        log.subscribeAll({ signal: end.signal })[Symbol.asyncIterator](),
      ];
      const next = async (events: typeof one) => (await events.next()).value as { stream: string; seq: number };
      for (const seq of [1, 2]) expect([(await next(one)).seq, (await next(all)).seq]).toEqual([seq, seq]);
      await log.append("a", [event(3), event(4)], { isRetold: true });
      await log.append("b", [event(1)]);
      await log.append("a", [event(5)]);
      for (const seq of [3, 4, 5]) expect((await next(one)).seq).toBe(seq);
      const nextEvents = [await next(all), await next(all), await next(all), await next(all)];
      expect(nextEvents.map(({ stream, seq }) => `${stream}${seq}`)).toEqual(["a3", "a4", "b1", "a5"]);
      end.abort();
      const later = new AbortController();
      const positions: number[] = [];
      for await (const { position } of log.subscribeAll({ signal: later.signal })) {
        positions.push(position);
        if (positions.length === 4) break;
      }
      // Positions are unchanged, so a reader can continue from its last one.
      expect(positions).toEqual([3, 4, 5, 6]);
    }));
}
