import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { noCrash } from "../../lib/crashpoint.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { jobLookup } from "../tenancy/owned-jobs.ts";
import type { Driver } from "./driver.ts";
import { createJobs } from "./durable-verbs.ts";
import { crashAt, createTestDriver, ownerOf, type ToyEffect, type ToyState, toyKind, toyProjectionOf, typesOf } from "./testing-durable.ts";

const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const stores: Record<string, () => Promise<Log>> = {
  memory: async () => keep(createMemoryLog({ projectionOf: toyProjectionOf })),
  sqlite: async () => {
    const dir = await mkdtemp(join(memoryFolder(), "driven-"));
    open.push(() => rm(dir, { recursive: true, force: true }));
    return keep(createSqliteLog({ path: join(dir, "log.db"), projectionOf: toyProjectionOf }));
  },
};

function keep<Thing extends AsyncDisposable>(thing: Thing): Thing {
  open.push(async () => await thing[Symbol.asyncDispose]());
  return thing;
}

const plan = (steps: number, more: { pauseMs?: number; approval?: boolean } = {}) => ({
  type: "toy.begun" as const,
  data: { steps, pauseMs: 0, approval: false, ...more },
});

/** The outside world, which performs an effect once, however often its id is requested. */
function createWorld() {
  const done = new Map<string, string>();
  const requests: string[] = [];
  return {
    done,
    asked: requests,
    kind: toyKind(async (effect: ToyEffect) => {
      requests.push(effect.id);
      if (!done.has(effect.id)) done.set(effect.id, `value ${effect.step}`);
      return [{ type: "toy.step_ended", data: { step: effect.step, ok: true, value: done.get(effect.id) ?? "" } }];
    }),
  };
}

function jobsOf(log: Log, driver: Driver, kind = createWorld().kind) {
  return createJobs(kind, { log, driver, crashpoint: noCrash });
}

describe.each(Object.entries(stores))("durable jobs on the %s log", (_, makeLog) => {
  test("a removed job does not come back when another process drives it", async () => {
    const log = await makeLog();
    const { kind } = createWorld();
    await using driver = createTestDriver({ log, kinds: [kind], pid: 1 });
    const toys = jobsOf(log, driver, kind);
    const id = await toys.start({ title: "a toy", owner: "local", events: [plan(2)] });
    await toys.wait(id);
    await driver.idle();
    await toys.remove(id);
    // The other process has its turn only now, and would append to a job that no longer exists.
    const eager = { ...kind, decide: (state: ToyState) => (state.plan.steps > 0 ? { effects: [] } : { append: [plan(1)] }) };
    await using other = createTestDriver({ log, kinds: [eager], pid: 2 });
    await other.serve();
    other.drive(`toy/${id}`);
    await new Promise((resolve) => setImmediate(resolve));
    await other.idle();
    expect([await log.lastSeq(`toy/${id}`), (await toys.list()).total, other.defects]).toEqual([0, 0, []]);
  });

  test("drives a job to its end, as its head and its events show", async () => {
    const log = await makeLog();
    const world = createWorld();
    const driver = keep(createTestDriver({ log, kinds: [world.kind], pid: 1 }));
    const toys = jobsOf(log, driver, world.kind);
    const id = await toys.start({ title: "three steps", events: [plan(3)] });
    const view = await toys.wait(id);
    expect(view).toMatchObject({
      id,
      title: "three steps",
      owner: "local",
      status: "ended",
      finish: "completed",
      waits: null,
      damage: null,
    });
    expect(view.text).toBe("value 0,value 1,value 2");
    expect(world.asked).toEqual([0, 1, 2].map((step) => `${id}/${step}/1`));
    expect(driver.defects).toEqual([]);
    const seen: string[] = [];
    for await (const { type } of toys.events(id, { follow: true })) seen.push(type);
    expect(seen).toEqual(await typesOf(log, `toy/${id}`));
    expect(seen.at(-1)).toBe("driven.ended");
  });

  test("a job survives a crash at any point, and no recorded effect is repeated", async () => {
    let last = Number.POSITIVE_INFINITY;
    for (let nth = 1; nth <= last; nth++) {
      const log = await makeLog();
      const world = createWorld();
      const crashpoint = crashAt(nth);
      const first = keep(createTestDriver({ log, kinds: [world.kind], pid: 1, crashpoint }));
      const id = await jobsOf(log, first, world.kind).start({ title: "crash", events: [plan(2, { pauseMs: 1 })] });
      const firstEnds = new AbortController();
      const over = jobsOf(log, first, world.kind).wait(id, { signal: firstEnds.signal });
      over.catch(() => undefined);
      await Promise.race([over, untilDefect(first)]);
      if (crashpoint.points < nth) last = nth - 1;
      firstEnds.abort();
      const endedBefore = new Map(world.done);
      const askedBefore = world.asked.length;
      const recorded = (await log.read(`toy/${id}`)).filter(({ type }) => type === "toy.step_ended").length;
      const second = keep(createTestDriver({ log, kinds: [world.kind], pid: 2, gone: new Set([ownerOf(1)]) }));
      await second.serve();
      const view = await jobsOf(log, second, world.kind).wait(id);
      expect(view, `after point ${nth}`).toMatchObject({ finish: "completed", text: "value 0,value 1" });
      // Only effects without an outcome in the log were requested again.
      expect(world.asked.slice(askedBefore), `after point ${nth}`).toEqual([0, 1].slice(recorded).map((step) => `${id}/${step}/1`));
      for (const [effect, value] of endedBefore) expect(world.done.get(effect)).toBe(value);
      expect(second.defects).toEqual([]);
      await first[Symbol.asyncDispose]();
      await second[Symbol.asyncDispose]();
    }
    expect(last).toBeGreaterThan(15);
  });

  test("two concurrent drivers perform each effect once", async () => {
    const log = await makeLog();
    const world = createWorld();
    const drivers = [1, 2].map((pid) => keep(createTestDriver({ log, kinds: [world.kind], pid })));
    await Promise.all(drivers.map((driver) => driver.serve()));
    const ids = await Promise.all(
      drivers.flatMap((driver) =>
        [0, 1, 2, 3].map(async () => await jobsOf(log, driver, world.kind).start({ title: "x", events: [plan(4)] })),
      ),
    );
    for (const id of ids) await jobsOf(log, drivers[0] as Driver, world.kind).wait(id);
    expect(world.asked.toSorted()).toEqual(ids.flatMap((id) => [0, 1, 2, 3].map((step) => `${id}/${step}/1`)).toSorted());
    expect(drivers.flatMap(({ defects }) => defects)).toEqual([]);
  });

  test("a driver that lost its lease performs no effect and appends nothing", async () => {
    const log = await makeLog();
    const world = createWorld();
    // Right before the effect of the second step, another process takes the lease because it believes us dead.
    let effects = 0;
    const log2: Log = Object.create(log);
    const kind = { ...world.kind };
    const stolen = Promise.withResolvers<void>();
    kind.perform = async (effect, context) => {
      effects += 1;
      const events = await world.kind.perform(effect, context);
      if (effect.step === 0) {
        await log.acquire(`toy/${context.facts.id}`, { holder: ownerOf(2), ttlMs: 60_000, holderGone: () => true });
        stolen.resolve();
      }
      return events;
    };
    const driver = keep(createTestDriver({ log: log2, kinds: [kind], pid: 1 }));
    const id = await jobsOf(log, driver, kind).start({ title: "stolen", events: [plan(2)] });
    await stolen.promise;
    await driver.idle();
    expect(effects).toBe(1);
    expect(await typesOf(log, `toy/${id}`)).toEqual(["driven.created", "toy.begun", "toy.step_started"]);
  });

  test("a driver that was replaced does not perform an intent from the log", async () => {
    const log = await makeLog();
    const world = createWorld();
    const maker = jobsOf(log, { drive: () => undefined } as unknown as Driver, world.kind);
    const id = await maker.start({ title: "x", events: [plan(1), { type: "toy.step_started", data: { step: 0, attempt: 1 } }] });
    const replaced: Log = Object.create(log);
    replaced.read = async (stream, options) => {
      const events = await log.read(stream, options);
      await log.acquire(stream, { holder: ownerOf(2), ttlMs: 60_000, holderGone: () => true });
      return events;
    };
    const driver = keep(createTestDriver({ log: replaced, kinds: [world.kind], pid: 1 }));
    await driver.serve();
    await driver.idle();
    expect(world.asked).toEqual([]);
    expect((await typesOf(log, `toy/${id}`)).length).toBe(3);
  });

  test("continues after an event that arrives while it records what it waits for", async () => {
    const stored = await makeLog();
    const { kind } = createWorld();
    const log: Log = {
      ...stored,
      async append(stream, events, options) {
        const appended = await stored.append(stream, events, options);
        const isWaiting = events.some(({ type }) => type === "driven.waiting");
        // A person answers before the driver has read its own event back.
        if (isWaiting) await stored.append(stream, [{ type: "toy.approved", version: 1, data: { by: "ann" } }]);
        return appended;
      },
    };
    await using driver = createTestDriver({ log, kinds: [kind], pid: 1 });
    const toys = jobsOf(log, driver, kind);
    await driver.serve();
    const id = await toys.start({ title: "a toy", events: [plan(1, { approval: true })] });
    await driver.idle();
    await vi.waitFor(async () => expect(await toys.get(id)).toMatchObject({ finish: "completed" }), { timeout: 30_000 });
  });

  test("a waiting job is released, and continues after an event from another process", async () => {
    const log = await makeLog();
    const world = createWorld();
    const driver = keep(createTestDriver({ log, kinds: [world.kind], pid: 1 }));
    const toys = jobsOf(log, driver, world.kind);
    const id = await toys.start({ title: "approve", events: [plan(1, { approval: true })] });
    const job = await toys.wait(id, { orPerson: true });
    expect(job).toMatchObject({ status: "waiting", waits: { person: "May it end?" } });
    expect((await toys.list({ needsPerson: true })).items.map((item) => item.id)).toEqual([id]);
    await driver.idle();
    expect(await log.holder(`toy/${id}`)).toBeNull();
    await jobsOf(log, { drive: () => undefined } as unknown as Driver, world.kind).say(id, () => [
      { type: "toy.approved", data: { by: "ana" } },
    ]);
    expect(await toys.wait(id)).toMatchObject({ finish: "completed" });
    expect((await toys.list({ needsPerson: true })).items).toEqual([]);
  });

  test("a pause starts nothing new, and a cancellation ends a running effect", async () => {
    const log = await makeLog();
    const began = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const kind = toyKind(async (effect, { signal }) => {
      began.resolve();
      if (effect.step === 0) await go.promise;
      else {
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw new CaissonError("cancelled", "given up");
      }
      return [{ type: "toy.step_ended", data: { step: effect.step, ok: true, value: "done" } }];
    });
    const driver = keep(createTestDriver({ log, kinds: [kind], pid: 1 }));
    const toys = jobsOf(log, driver, kind);
    const id = await toys.start({ title: "pause", events: [plan(2)] });
    await began.promise;
    expect(await toys.pause(id, { by: "ana" })).toMatchObject({ status: "paused" });
    go.resolve();
    await driver.idle();
    expect(await typesOf(log, `toy/${id}`)).toEqual(["driven.created", "toy.begun", "toy.step_started", "driven.paused", "toy.step_ended"]);
    await toys.resume(id, { by: "ana" });
    for await (const { type, data } of toys.events(id, { follow: true })) {
      if (type === "toy.step_started" && (data as { step: number }).step === 1) break;
    }
    await toys.cancel(id, { by: "ana" });
    expect(await toys.wait(id)).toMatchObject({ finish: "cancelled" });
    await expect(toys.cancel(id, { by: "ana" })).rejects.toMatchObject({ code: "conflict" });
    await toys.remove(id);
    await expect(toys.get(id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("find and list respect prefixes, pages and owners", async () => {
    const log = await makeLog();
    const world = createWorld();
    const driver = { drive: () => undefined } as unknown as Driver;
    const toys = jobsOf(log, driver, world.kind);
    for (const id of ["toy_aaaaaaaaaaaa", "toy_aaaaaaaaaaab", "toy_bbbbbbbbbbbb"]) {
      await toys.start({ id, title: id, owner: id.startsWith("toy_b") ? "bo" : "ana", events: [plan(1)] });
    }
    expect(await toys.find("toy_b")).toBe("toy_bbbbbbbbbbbb");
    await expect(toys.find("toy_a")).rejects.toMatchObject({ code: "invalid", details: { candidates: expect.any(Array) } });
    await expect(toys.find("toy_c")).rejects.toMatchObject({ code: "not_found" });
    await expect(toys.find("../x")).rejects.toMatchObject({ code: "invalid" });
    const page = await toys.list({ limit: 2 });
    expect(page.items).toHaveLength(2);
    const rest = await toys.list({ limit: 2, cursor: page.next ?? "" });
    expect([...page.items, ...rest.items].map(({ id }) => id).toSorted()).toEqual([
      "toy_aaaaaaaaaaaa",
      "toy_aaaaaaaaaaab",
      "toy_bbbbbbbbbbbb",
    ]);
    const lookup = jobLookup(toys, { owner: "bo", sees: "own" }, world.kind);
    await expect(lookup("toy_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
    await expect(lookup("toy_a")).rejects.toMatchObject({ code: "not_found" });
    expect(await lookup("toy_b")).toBe("toy_bbbbbbbbbbbb");
  });
});

/** Resolves when a driver has reported a defect. */
async function untilDefect(driver: { defects: unknown[] }): Promise<void> {
  while (driver.defects.length === 0) await new Promise((resolve) => setImmediate(resolve));
}
