import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { fakeStationParts } from "../../compose/testing-compose.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import { runEvents } from "../../contract/run/run-event.ts";
import { noCrash } from "../../lib/crashpoint.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { LocalStation } from "../local-station.ts";
import { createRunDrives } from "../runs/run-drives.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { FAILURES_MAX } from "./retry.ts";
import { RunQueue } from "./run-queue.ts";
import type { TakenRoom } from "./sandbox-room.ts";
import type { QueueBounds } from "./schedule.ts";

const MIB = 1024 * 1024;
const later = "2100-01-01T00:00:00.000Z";
const bounds: QueueBounds = {
  runsMax: 4,
  runsPerOwnerMax: 4,
  sandboxesMax: 10,
  promisedBytesMax: 1e15,
  promisedBytesPerOwnerMax: 1e15,
  sandboxesPerOwnerMax: 10,
  memoryBytesMax: 1024 * MIB,
  queuedMax: 100,
  queuedPerOwnerMax: 100,
};

/** A queue over a real log, whose clock and drives the test controls. */
let base: string;
let local: LocalStation;
/** Puts runs into the log, with a clock whose time never makes them start. */
let served: RunQueue;
let queue: RunQueue;
let nowMs = 0;
let takenRoom: TakenRoom;
/** What happens to a run that is driven. By default it works until the test ends. */
let outcome: (run: string) => Promise<never>;
/** True to let the engine drive runs, on the fake runtime. */
let isReal = false;
let createSandbox: Runtime["create"] | null = null;
const startedRuns: string[] = [];
const notices: string[] = [];
let driven = Promise.withResolvers<void>();

beforeEach(async () => {
  base = await mkdtemp(join(memoryFolder(), "caisson-test-queue-"));
  const parts = await fakeStationParts(base);
  [isReal, createSandbox] = [false, null];
  const create = parts.fake.create.bind(parts.fake);
  parts.fake.create = (...args) => (createSandbox ?? create)(...args);
  local = await parts.openLocal();
  await writeFile(join(base, "model.yaml"), "turns: [{ say: Done. }]\n");
  served = local.queue.serve(bounds);
  nowMs = Date.parse(later);
  takenRoom = { sandboxes: 0, memoryBytes: 0, runs: new Set(), byOwner: new Map(), promisedBytes: new Map() };
  [startedRuns.length, notices.length] = [0, 0];
  outcome = () => new Promise(() => {});
  queue = new RunQueue({
    log: local.core.log,
    holderGone: () => true,
    isNeighbour: () => false,
    drives: createRunDrives({ drive: (run, options) => (isReal ? local.runs.drive(run, options) : drive(run)) }),
    room: { readTakenRoom: async () => takenRoom },
    bounds,
    crashpoint: noCrash,
    model: async () => {
      throw new Error("no model is asked here");
    },
    notice: (text) => notices.push(text),
    nowMs: () => nowMs,
  });
});
afterEach(async () => {
  await queue.close();
  await local[Symbol.asyncDispose]();
  await rm(base, { recursive: true, force: true });
});

/** Claims the run first, as a real driver does. */
async function drive(run: string): Promise<never> {
  const { seq } = await headOfRun(local.core.log, run);
  const claimed = { owner: "test", epoch: startedRuns.length + 1, pid: 1, host: "here", driver: "station" as const };
  await local.core.log.append(runStream(run), [makeEvent(runEvents, { type: "run.claimed", data: claimed })], { expectedSeq: seq });
  startedRuns.push(run);
  driven.resolve();
  driven = Promise.withResolvers();
  return await outcome(run);
}

/** Creates waiting runs, one for each memory limit, in this order. Afterwards only the test's queue drives them. */
async function waitingRuns(...memory: (number | undefined)[]): Promise<string[]> {
  const runs: string[] = [];
  for (const [at, memoryBytes] of memory.entries()) {
    const settings = memoryBytes === undefined ? {} : { settings: { limits: { memoryBytes } } };
    const model = `scripted:${join(base, "model.yaml")}`;
    runs.push((await local.verbs.runs.start({ task: "x", model, startAt: later, priority: -at, ...settings })).run);
  }
  await served.close();
  return runs;
}

/** Resolves when the queue has started another run, or checked a run again. */
const isBegun = () => driven.promise;
const queued = async (run: string) => (await headOfRun(local.core.log, run)).facts.queued;

describe("a run that cannot be driven", () => {
  test("is retried with backoff, and waits for a person after six failures", async () => {
    outcome = async () => {
      throw new CaissonError("unavailable", "its model does not answer");
    };
    const [run = ""] = await waitingRuns(undefined);
    const waits: number[] = [];
    for (let times = 1; times <= FAILURES_MAX; times += 1) {
      const next = isBegun();
      await queue.refresh(run);
      await next;
      await expect.poll(() => notices.length, { timeout: 60_000 }).toBe(times);
      if (times === FAILURES_MAX) break;
      await expect.poll(async () => (await queued(run))?.for, { timeout: 60_000 }).toBe("retry");
      const at = Date.parse((await queued(run))?.startAt ?? "");
      waits.push(at - nowMs);
      // It does not start a moment earlier.
      nowMs = at - 1;
      await queue.refresh(run);
      expect(queue.placeOf((await headOfRun(local.core.log, run)).facts)).toMatchObject({ waitsFor: "retry" });
      expect(startedRuns).toHaveLength(times);
      nowMs = at;
    }
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 80_000]);
    expect(await queued(run)).toBe(null);
    expect(notices.at(-1)).toBe(`${run} could not be driven: its model does not answer`);
    expect(queue.counts()).toMatchObject({ atWork: 0, queued: 0 });
    // When a user resumes it, the count restarts.
    await queue.resume(run, { by: "user", why: "resume" });
    await expect.poll(() => notices.length, { timeout: 60_000 }).toBe(FAILURES_MAX + 1);
    await expect.poll(async () => (await queued(run))?.startAt, { timeout: 60_000 }).toBe(new Date(nowMs + 5_000).toISOString());
  });

  test("is retried if its sandbox fails to start before the first step", async () => {
    isReal = true;
    createSandbox = async () => {
      throw new CaissonError("unavailable", "the launcher ended before it was done");
    };
    const [run = ""] = await waitingRuns(undefined);
    await queue.refresh(run);
    await expect.poll(async () => (await queued(run))?.for).toBe("retry");
    expect(Date.parse((await queued(run))?.startAt ?? "") - nowMs).toBe(5_000);
    createSandbox = null;
    nowMs += 5_000;
    await queue.refresh(run);
    await expect.poll(async () => (await headOfRun(local.core.log, run)).facts.status).toBe("ended");
    expect((await local.runs.state(run)).ended).toMatchObject({ reason: "done" });
    await expect.poll(() => queue.counts().atWork).toBe(0);
  });

  test("ends with the reason if its sandbox never starts", async () => {
    isReal = true;
    createSandbox = async () => {
      throw new CaissonError("unavailable", "the launcher ended before it was done");
    };
    const [run = ""] = await waitingRuns(undefined);
    for (let times = 1; times < FAILURES_MAX; times += 1) {
      await queue.refresh(run);
      await expect.poll(() => notices.length).toBe(times);
      await expect.poll(async () => (await queued(run))?.for).toBe("retry");
      nowMs += 10 * 60_000;
    }
    await queue.refresh(run);
    await expect.poll(async () => (await headOfRun(local.core.log, run)).facts.status).toBe("ended");
    expect((await local.runs.state(run)).ended).toEqual({ reason: "error", text: "The launcher ended before it was done." });
    await expect.poll(() => queue.counts().atWork).toBe(0);
  });

  test("is left to the process that already drives it", async () => {
    outcome = async () => {
      throw new CaissonError("superseded", "another process drives it");
    };
    const [run = ""] = await waitingRuns(undefined);
    const next = isBegun();
    await queue.refresh(run);
    await next;
    await expect.poll(() => notices, { timeout: 60_000 }).toEqual([`${run} could not be driven: another process drives it`]);
    expect(await queued(run)).toBe(null);
  });
});

describe("the memory bound", () => {
  test("makes a run that requests too much wait, and every run behind it", async () => {
    takenRoom = { ...takenRoom, sandboxes: 1, memoryBytes: 600 * MIB };
    const [large = "", small = ""] = await waitingRuns(500 * MIB, 10 * MIB);
    await queue.refresh(large);
    await queue.refresh(small);
    const place = async (run: string) => queue.placeOf((await headOfRun(local.core.log, run)).facts);
    await expect.poll(async () => (await place(large))?.waitsFor, { timeout: 60_000 }).toBe("memory");
    expect(await place(large)).toMatchObject({ position: 1, why: expect.stringMatching(/needs 500 MiB, which other sandboxes hold/) });
    expect(await place(small)).toMatchObject({ position: 2, waitsFor: "turn" });
    expect(startedRuns).toEqual([]);
    // When memory is released, the large run goes first, and its memory counts before its sandbox exists.
    takenRoom = { ...takenRoom, memoryBytes: 514 * MIB };
    const next = isBegun();
    await queue.refresh(large);
    await next;
    await expect.poll(() => startedRuns.length, { timeout: 60_000 }).toBe(2);
    expect(startedRuns).toEqual([large, small]);
    expect(queue.view().atWork).toMatchObject({ memoryBytes: 1024 * MIB, memoryBytesMax: 1024 * MIB });
  });

  test("counts a quarter of a gigabyte for a run without a memory request", async () => {
    takenRoom = { ...takenRoom, memoryBytes: 769 * MIB };
    const [run = ""] = await waitingRuns(undefined);
    await queue.refresh(run);
    await expect
      .poll(async () => queue.placeOf((await headOfRun(local.core.log, run)).facts)?.waitsFor, { timeout: 60_000 })
      .toBe("memory");
    takenRoom = { ...takenRoom, memoryBytes: 768 * MIB };
    const next = isBegun();
    await queue.refresh(run);
    await next;
    expect(startedRuns).toEqual([run]);
  });
});
