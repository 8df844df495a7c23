import { expect, test } from "vitest";
import type { Log, NewEvent } from "../log.ts";
import { codeOf, type UseLog } from "./use-log.ts";

export const questionEvent = (question: string): NewEvent => ({
  type: "permission.asked",
  version: 1,
  data: { question, call: null, kind: "stuck", text: "Go on?", pattern: null },
});
const started = (step: number): NewEvent => ({ type: "step.started", version: 1, data: { step } });
export const over: NewEvent = {
  type: "run.ended",
  version: 1,
  data: { reason: "done", text: "", steps: 1, usage: { inputTokens: 0, outputTokens: 0 }, costUsd: 0 },
};

/** Tests the heads that the log stores next to the events. */
export function testHeads(using: UseLog): void {
  test("updates the head of a run with each append, including the sequence", () =>
    using(async (log, open) => {
      const other = await open();
      expect(await log.head("run/1")).toBeNull();
      await log.append("run/1", [started(1), questionEvent("ask_aaaaaaaaaaaa")]);
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

  test("keeps the head unchanged when an append is rejected", () =>
    using(async (log) => {
      await log.append("run/1", [started(1)]);
      expect(await codeOf(log.append("run/1", [started(9)], { expectedSeq: 0 }))).toBe("conflict");
      expect(await log.head("run/1")).toMatchObject({ seq: 1, head: { step: 1 } });
    }));

  test("lists open or closed heads, newest first, with their total", () =>
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

  test("finds heads by their fields, page by page", () =>
    using(async (_, open) => {
      let now = 1_000_000;
      const log = await open({ nowMs: () => now });
      const sandboxed = (runtime: string): NewEvent => ({
        type: "run.sandboxed",
        version: 1,
        data: { sandbox: "sb_aaaaaaaaaaaa", runtime, why: "start" },
      });
      for (let n = 0; n < 6; n++) {
        // Two runs share each time, so the name decides the order.
        if (n % 2 === 0) now += 1000;
        await log.append(`run/${n}`, [started(n), ...(n === 5 ? [over] : n === 4 ? [] : [sandboxed(n < 2 ? "oci" : "docker")])]);
      }
      const named = async (options: Omit<Parameters<Log["heads"]>[0], "prefix" | "limit">, limit = 10) => {
        const { heads, total } = await log.heads({ prefix: "run/", limit, ...options });
        return [total, heads.map(({ stream }) => stream)];
      };
      expect(await named({})).toEqual([6, ["run/4", "run/5", "run/2", "run/3", "run/0", "run/1"]]);
      expect(await named({ where: { "sandbox.runtime": ["oci"] } })).toEqual([2, ["run/0", "run/1"]]);
      expect(await named({ where: { "sandbox.runtime": ["oci", null] }, open: true })).toEqual([3, ["run/4", "run/0", "run/1"]]);
      expect(await named({ where: { "sandbox.runtime": [] } })).toEqual([0, []]);
      expect(await named({ where: { "sandbox.runtime": ["docker"], finish: ["done"] } })).toEqual([0, []]);
      const pages: string[] = [];
      for (let after: { at: string; stream: string } | undefined; ; ) {
        const { heads, total } = await log.heads({ prefix: "run/", limit: 1, ...(after && { after }) });
        expect(total).toBe(6);
        after = heads.at(-1);
        if (after === undefined) break;
        pages.push(after.stream);
      }
      expect(pages).toEqual(["run/4", "run/5", "run/2", "run/3", "run/0", "run/1"]);
    }));

  test("skips an invalid event and records the damage in the head", () =>
    using(async (log) => {
      await log.append("run/1", [started(1), { type: "run.created", version: 1, data: { oops: true } }, started(2)]);
      expect(await log.head("run/1")).toMatchObject({ seq: 3, head: { step: 2 }, damage: expect.stringContaining("event 2") });
      await log.noteDamage("run/1", null);
      expect((await log.head("run/1"))?.damage).toBeNull();
    }));
}
