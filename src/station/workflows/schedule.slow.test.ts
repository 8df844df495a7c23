import { describe, expect, test } from "vitest";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import type { Json } from "../../workflow/state.ts";
import { ownerOf } from "../durable/testing-durable.ts";
import { createTestWorkflows } from "./testing-workflows.ts";

const definition = { name: "nightly", steps: [{ name: "work", kind: "command", argv: ["make"] }] } as Json;
const nested = { name: "outer", steps: [{ name: "inner", kind: "workflow", definition }] } as Json;

/** Creates consecutive stations on one log with a stopped clock. Commands end at once unless `isHanging`. */
function stations({ at, isHanging = () => false }: { at: string; isHanging?: () => boolean }) {
  const clock = { now: new Date(at) };
  const log: Log = createMemoryLog({ nowMs: () => clock.now.getTime() });
  let pid = 0;
  const deadOwners = new Set<string>();
  return {
    log,
    clock,
    /** Starts the next station at this time, after the previous one was killed. */
    async next(time: string) {
      clock.now = new Date(time);
      if (pid > 0) deadOwners.add(ownerOf(pid));
      pid += 1;
      const station = createTestWorkflows({
        log,
        pid,
        gone: deadOwners,
        now: () => clock.now,
        async command({ cancel }, signal) {
          if (cancel === true) return { status: "cancelled" };
          if (isHanging() && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return signal.aborted ? { status: "cancelled" } : { status: "completed" };
        },
      });
      await station.driver.serve();
      return station;
    },
  };
}

test("starts instances on time, one for all that were missed, until cancelled", async () => {
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
] as const)("a start that is due during the last instance: %s", async (overlap, started, passedOver) => {
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

describe("an endless schedule", () => {
  const minute = (number: number) => new Date(Date.parse("2026-11-16T12:00:00.000Z") + number * 60_000);

  test("keeps a short log and the last hundred instances, with an identical state", {
    timeout: 300_000,
  }, async () => {
    const { next, log, clock } = stations({ at: minute(0).toISOString() });
    await using station = await next(minute(0).toISOString());
    const { verbs, driver } = station;
    const { id, createdAt } = await verbs.start({ definition: nested, schedule: { cron: "* * * * *" } }, { owner: "ana" });
    const stream = `workflow/${id}`;
    const instances: string[] = [];
    const lengths: number[] = [];
    let retold = 0;
    let number = 0;
    while (retold < 2) {
      number += 1;
      // There are at least two events for each.
      expect(number).toBeLessThan(1000);
      clock.now = minute(number);
      // No event reports that time passes, and a real timer would wait for the machine's clock.
      driver.drive(stream);
      await expect.poll(async () => (await verbs.get(id)).schedule, { timeout: 60_000, interval: 1 }).toMatchObject({ started: number });
      await driver.idle();
      instances.push((await verbs.get(id)).steps[0]?.child ?? "");
      const { length } = await log.read(stream);
      if (length < (lengths.at(-1) ?? 0)) retold += 1;
      lengths.push(length);
    }
    expect(driver.defects).toEqual([]);
    expect(Math.max(...lengths)).toBeLessThan(1010);
    expect(await log.lastSeq(stream)).toBeGreaterThan(2 * 1000);
    expect(await verbs.get(id)).toMatchObject({ createdAt, owner: "ana", title: "outer", status: "waiting", root: stream });
    expect((await verbs.get(id)).schedule).toEqual({
      cron: "* * * * *",
      overlap: "skip",
      next: minute(number + 1).toISOString(),
      started: number,
      passedOver: 0,
    });
    // The state of the long-running driver equals that of a new reader of the log.
    const read: number[] = [];
    for await (const { seq } of verbs.events(id)) read.push(seq);
    expect(read).toEqual((await log.read(stream)).map(({ seq }) => seq));
    // Each time started exactly one instance. The last hundred are stored, and no earlier ones.
    expect(new Set(instances).size).toBe(number);
    const storedInstances = (await verbs.list({ parent: stream })).items.map((item) => `workflow/${item.id}`);
    expect(storedInstances.sort()).toEqual(instances.slice(-100).sort());
    expect((await log.streams({ prefix: "workflow/" })).length).toBe(1 + 2 * 100);
  });

  test("compacts its log during an instance, even if drivers die, and loses nothing", { timeout: 300_000 }, async () => {
    let isHanging = true;
    const { next, log, clock } = stations({ at: minute(0).toISOString(), isHanging: () => isHanging });
    const first = await next(minute(0).toISOString());
    const { id } = await first.verbs.start({ definition, schedule: { cron: "* * * * *", overlap: "queue" } });
    const stream = `workflow/${id}`;
    const passes = async ({ verbs, driver }: typeof first, number: number) => {
      clock.now = minute(number);
      driver.drive(stream);
      const due = minute(number + 1).toISOString();
      const state = async () => {
        const { status, schedule } = await verbs.get(id);
        return [status, schedule?.next];
      };
      await expect.poll(state, { timeout: 60_000, interval: 1 }).toEqual(["waiting", due]);
    };
    for (let number = 1; number <= 600; number++) await passes(first, number);
    const before = await first.verbs.get(id);
    await first[Symbol.asyncDispose]();
    expect((await log.read(stream)).length).toBeLessThan(1010);
    expect(await log.lastSeq(stream)).toBeGreaterThan(1010);
    isHanging = false;
    await using second = await next(minute(600).toISOString());
    expect((await second.verbs.get(id)).steps).toEqual(before.steps);
    const ended = async () => (await second.verbs.list({ parent: stream, finish: "completed" })).items.length;
    // The hanging instance, and one for all times missed in between.
    await expect.poll(ended, { timeout: 60_000 }).toBe(2);
    expect((await second.verbs.get(id)).schedule).toMatchObject({ started: 2, passedOver: 0, next: minute(601).toISOString() });
    expect(second.driver.defects).toEqual([]);
  });
});
