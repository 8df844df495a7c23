import { expect, test } from "vitest";
import { StepStarted } from "../../contract/run/run-event.ts";
import type { Log } from "../log.ts";
import { codeOf, event, take, type UseLog } from "./use-log.ts";

const numbers = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);
const valuesOf = async (log: Log, stream: string) => (await log.read(stream)).map(({ data }) => (data as { n: number }).n);

/** Tests streams that begin with the events of another. */
export function testInheriting(using: UseLog): void {
  test("begins a stream with the events of another, and continues their numbers", () =>
    using(async (log, open) => {
      await log.append("a", numbers(1, 10).map(event));
      expect(await log.append("b", [event(40), event(50)], { inherits: { stream: "a", seq: 3 }, expectedSeq: 0 })).toEqual({ lastSeq: 5 });
      await log.append("a", [event(11)]);
      await log.append("b", [event(60)], { expectedSeq: 5 });
      for (const each of [log, await open()]) {
        const read = await each.read("b");
        expect(read.map(({ stream, seq, data }) => [stream, seq, data])).toEqual(
          [1, 2, 3, 40, 50, 60].map((n, index) => ["b", index + 1, { n }]),
        );
        expect((await each.read("b", { fromSeq: 2, limit: 3 })).map(({ seq }) => seq)).toEqual([2, 3, 4]);
        expect((await each.read("b", { fromSeq: 5 })).map(({ seq }) => seq)).toEqual([5, 6]);
        expect((await each.read("b", { bytesMax: 1 })).map(({ seq }) => seq)).toEqual([1]);
        expect(await each.lastSeq("b")).toBe(6);
        expect(await valuesOf(each, "a")).toEqual(numbers(1, 11));
        expect(await each.check()).toEqual([]);
      }
    }));

  test("refuses to inherit what does not exist, or for a stream that has events", () =>
    using(async (log) => {
      await log.append("a", [event(1), event(2)]);
      const begin = (stream: string, parent: string, seq: number) =>
        codeOf(log.append(stream, [event(9)], { inherits: { stream: parent, seq } }));
      expect(await begin("b", "a", 3)).toBe("not_found");
      expect(await begin("b", "nothing", 1)).toBe("not_found");
      expect(await begin("b", "b", 1)).toBe("not_found");
      expect(await begin("a", "a", 1)).toBe("conflict");
      expect(await codeOf(log.append("b", [], { inherits: { stream: "a", seq: 1 } }))).toBe("invalid");
      expect(await log.lastSeq("b")).toBe(0);
      // A process may hold the new stream already.
      const lease = await log.acquire("b", { holder: "one", ttlMs: 1000 });
      await log.append("b", [event(9)], { inherits: { stream: "a", seq: 2 }, ...(lease && { lease }) });
      expect(await valuesOf(log, "b")).toEqual([1, 2, 9]);
    }));

  test("reads a fork of forks across all of them", () =>
    using(async (log) => {
      await log.append("0", [event(0)]);
      for (const n of numbers(1, 60)) await log.append(`${n}`, [event(n), event(-1)], { inherits: { stream: `${n - 1}`, seq: n } });
      expect(await valuesOf(log, "60")).toEqual([...numbers(0, 61), -1]);
      await log.append("short", [event(100)], { inherits: { stream: "60", seq: 20 } });
      expect(await valuesOf(log, "short")).toEqual([...numbers(0, 20), 100]);
      expect(await log.check()).toEqual([]);
    }));

  testInheritedLives(using);
}

function testInheritedLives(using: UseLog): void {
  test("keeps inherited events after their stream is removed, until the last heir is gone", () =>
    using(async (log) => {
      await log.append("a", numbers(1, 10).map(event));
      await log.append("b", [event(40)], { inherits: { stream: "a", seq: 5 } });
      await log.append("c", [event(50)], { inherits: { stream: "b", seq: 6 } });
      await log.remove("a");
      expect([await log.lastSeq("a"), await log.read("a")]).toEqual([0, []]);
      expect((await log.streams()).map(({ stream }) => stream).sort()).toEqual(["b", "c"]);
      await log.append("a", [event(7)]);
      expect([await valuesOf(log, "a"), await valuesOf(log, "b")]).toEqual([[7], [1, 2, 3, 4, 5, 40]]);
      await log.remove("b");
      expect(await valuesOf(log, "c")).toEqual([1, 2, 3, 4, 5, 40, 50]);
      await log.append("d", [event(60)], { inherits: { stream: "c", seq: 6 } });
      await log.remove("c");
      expect(await valuesOf(log, "d")).toEqual([1, 2, 3, 4, 5, 40, 60]);
      expect(await log.check()).toEqual([]);
      await log.remove("d");
      expect((await log.streams()).map(({ stream }) => stream)).toEqual(["a"]);
      expect(await log.check()).toEqual([]);
    }));

  test("leaves inherited events alone when either stream is compacted", () =>
    using(async (log) => {
      await log.append("a", numbers(1, 5).map(event));
      await log.append("b", [event(40)], { inherits: { stream: "a", seq: 4 } });
      await log.append("a", [event(6)], { isRetold: true });
      expect([await valuesOf(log, "a"), await valuesOf(log, "b")]).toEqual([[6], [1, 2, 3, 4, 40]]);
      expect(await codeOf(log.append("c", [event(9)], { inherits: { stream: "a", seq: 5 } }))).toBe("not_found");
      await log.append("c", [event(9)], { inherits: { stream: "a", seq: 6 } });
      await log.append("d", [event(9)], { inherits: { stream: "b", seq: 4 } });
      await log.append("b", [event(41)], { isRetold: true });
      expect((await log.read("b")).map(({ seq }) => seq)).toEqual([6]);
      expect([await valuesOf(log, "c"), await valuesOf(log, "d")]).toEqual([
        [6, 9],
        [1, 2, 3, 4, 9],
      ]);
      expect(await log.check()).toEqual([]);
    }));

  test("delivers inherited events to followers of the stream, and not to those of all streams", () =>
    using(async (log, open) => {
      await log.append("a", [event(1), event(2), event(3)]);
      await log.append("b", [event(40), event(50)], { inherits: { stream: "a", seq: 2 } });
      const other = await open();
      await other.acquire("c", { holder: "one", ttlMs: 1000 });
      await other.append("c", [event(60)], { inherits: { stream: "b", seq: 3 } });
      await other.append("c", [event(70)]);
      const all = await take(log.subscribeAll(), 7);
      expect(all.map(({ stream, seq, position }) => `${stream}${seq} ${position}`)).toEqual(
        ["a1", "a2", "a3", "b3", "b4", "c4", "c5"].map((name, index) => `${name} ${index + 1}`),
      );
      expect(await log.lastPosition()).toBe(7);
      expect((await take(log.subscribe("c"), 5)).map(({ stream, seq }) => `${stream}${seq}`)).toEqual(["c1", "c2", "c3", "c4", "c5"]);
      await log.remove("b");
      expect((await take(log.subscribeAll(), 5)).map(({ stream, seq }) => `${stream}${seq}`)).toEqual(["a1", "a2", "a3", "c4", "c5"]);
    }));

  test("computes the head of a stream from its inherited events, too", () =>
    using(async (log, open) => {
      const started = (step: number) => StepStarted.make({ step });
      await log.append("run/a", numbers(1, 5).map(started));
      await log.append("run/b", [started(3)], { inherits: { stream: "run/a", seq: 3 } });
      const other = await open();
      for (const each of [log, other]) expect(await each.head("run/b")).toMatchObject({ seq: 4, head: { step: 3 } });
      await other.append("run/b", [started(4)]);
      expect(await log.head("run/b")).toMatchObject({ seq: 5, head: { step: 4 } });
      const { heads } = await log.heads({ prefix: "run/", open: true, limit: 10 });
      expect(heads.map(({ stream, seq }) => `${stream} ${seq}`).sort()).toEqual(["run/a 5", "run/b 5"]);
    }));
}
