import { expect, test } from "vitest";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import type { Json } from "../../workflow/state.ts";
import { ownerOf } from "../driven/testing.ts";
import { createTestWorkflows } from "./testing.ts";

const definition = { name: "nightly", steps: [{ name: "work", kind: "command", argv: ["make"] }] } as Json;

/** Stations on one log, one after the other, whose clock stands still; a command ends unless it is told to go on. */
function stations({ at, isHanging = () => false }: { at: string; isHanging?: () => boolean }) {
  const clock = { now: new Date(at) };
  const log: Log = createMemoryLog({ nowMs: () => clock.now.getTime() });
  let pid = 0;
  const gone = new Set<string>();
  return {
    /** The next station, at this time; the one before was killed. */
    async next(time: string) {
      clock.now = new Date(time);
      if (pid > 0) gone.add(ownerOf(pid));
      pid += 1;
      const made = createTestWorkflows({
        log,
        pid,
        gone,
        now: () => clock.now,
        async command({ cancel }, signal) {
          if (cancel === true) return { status: "cancelled" };
          if (isHanging() && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return signal.aborted ? { status: "cancelled" } : { status: "completed" };
        },
      });
      await made.driver.serve();
      return made;
    },
  };
}

test("a schedule starts an instance when its time has come, one for all that were missed, and ends when it is cancelled", async () => {
  const { next } = stations({ at: "2026-11-16T12:00:00.000Z" });
  const first = await next("2026-11-16T12:00:00.000Z");
  await expect(first.verbs.start({ definition, schedule: { cron: "61 * * * *" } })).rejects.toMatchObject({ code: "invalid" });
  const { id, schedule } = await first.verbs.start({ definition, schedule: { cron: "0 3 * * *" } });
  expect(schedule).toEqual({ cron: "0 3 * * *", overlap: "skip", next: "2026-11-17T03:00:00.000Z", started: 0, passedOver: 0 });
  await first.driver.idle();
  await first[Symbol.asyncDispose]();
  for (const [time, count, due] of [
    ["2026-11-17T02:59:59.000Z", 0, "2026-11-17T03:00:00.000Z"],
    ["2026-11-17T03:00:00.000Z", 1, "2026-11-18T03:00:00.000Z"],
    ["2026-11-21T12:00:00.000Z", 2, "2026-11-22T03:00:00.000Z"],
  ] as const) {
    await using station = await next(time);
    const isThere = async () => (await station.verbs.list({ parent: `workflow/${id}`, finish: "completed" })).items.length;
    await expect.poll(isThere, { timeout: 60_000 }).toBe(count);
    await expect.poll(async () => (await station.verbs.get(id)).status, { timeout: 60_000 }).toBe("waiting");
    expect((await station.verbs.get(id)).schedule).toMatchObject({ next: due, started: count });
    expect(station.driver.defects).toEqual([]);
  }
  await using last = await next("2026-11-21T12:00:01.000Z");
  const { items } = await last.verbs.list({ parent: `workflow/${id}` });
  const roots = await Promise.all(items.map(async (each) => (await last.verbs.get(each.id)).root));
  expect(roots.sort()).toEqual(items.map((each) => `workflow/${each.id}`).sort());
  await last.verbs.cancel(id, { by: "ana" });
  expect(await last.verbs.wait(id)).toMatchObject({ finish: "cancelled", output: null });
});

test.each([
  ["skip", 1, 1],
  ["queue", 2, 0],
] as const)("a time that comes while the last instance is not over: %s", async (overlap, started, passedOver) => {
  let isHanging = true;
  const { next } = stations({ at: "2026-11-16T12:00:30.000Z", isHanging: () => isHanging });
  const first = await next("2026-11-16T12:00:30.000Z");
  const { id } = await first.verbs.start({ definition, schedule: { cron: "* * * * *", overlap } });
  await first.driver.idle();
  await first[Symbol.asyncDispose]();
  for (const time of ["2026-11-16T12:01:00.000Z", "2026-11-16T12:02:00.000Z"]) {
    await using station = await next(time);
    const state = async () => {
      const { schedule, steps } = await station.verbs.get(id);
      return [schedule?.next, steps[0]?.child === null];
    };
    const due = new Date(Date.parse(time) + 60_000).toISOString();
    await expect.poll(state, { timeout: 60_000 }).toEqual([due, false]);
  }
  isHanging = false;
  await using station = await next("2026-11-16T12:02:30.000Z");
  const ended = async () => (await station.verbs.list({ parent: `workflow/${id}`, finish: "completed" })).items.length;
  await expect.poll(ended, { timeout: 60_000 }).toBe(started);
  expect((await station.verbs.get(id)).schedule).toMatchObject({ started, passedOver, next: "2026-11-16T12:03:00.000Z" });
  expect(station.driver.defects).toEqual([]);
});
