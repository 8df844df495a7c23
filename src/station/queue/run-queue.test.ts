import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { fakeStationParts } from "../../compose/testing.ts";
import { CaissonError } from "../../contract/error.ts";
import { makeEvent } from "../../contract/event-family.ts";
import { runEvents } from "../../contract/run-event.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { noCrash } from "../crashpoint.ts";
import type { LocalStation } from "../local-station.ts";
import { headOfRun, runStream } from "../runs/head-of-run.ts";
import { createRunDrives } from "../runs/run-drives.ts";
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

/** A queue over a real log, whose clock and whose drives are the test's. */
let base: string;
let local: LocalStation;
/** Puts runs into the log, for a time that has not come by its clock. */
let served: RunQueue;
let queue: RunQueue;
let nowMs = 0;
let taken: TakenRoom;
/** What becomes of a run that is driven; absent: it works until the test ends. */
let outcome: (run: string) => Promise<never>;
/** Runs are driven by the engine, on the fake runtime. */
let isReal = false;
let createSandbox: Runtime["create"] | null = null;
const begun: string[] = [];
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
  served = local.serve(bounds);
  nowMs = Date.parse(later);
  taken = { sandboxes: 0, memoryBytes: 0, runs: new Set(), byOwner: new Map(), promisedBytes: new Map() };
  [begun.length, notices.length] = [0, 0];
  outcome = () => new Promise(() => {});
  queue = new RunQueue({
    log: local.log,
    ownerGone: () => true,
    isNeighbour: () => false,
    drives: createRunDrives({ drive: (run, asked) => (isReal ? local.runs.drive(run, asked) : drive(run)) }),
    room: { taken: async () => taken },
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

/** As a real one does, it says first that it has the run. */
async function drive(run: string): Promise<never> {
  const { seq } = await headOfRun(local.log, run);
  const claimed = { owner: "test", epoch: begun.length + 1, pid: 1, host: "here", driver: "station" as const };
  await local.log.append(runStream(run), [makeEvent(runEvents, { type: "run.claimed", data: claimed })], { expectedSeq: seq });
  begun.push(run);
  driven.resolve();
  driven = Promise.withResolvers();
  return await outcome(run);
}

/** Runs that wait, one for each bound of memory, in this order; from then on only the test's queue looks at them. */
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

/** Resolves when the queue has begun one more, or has looked at a run again. */
const isBegun = () => driven.promise;
const queued = async (run: string) => (await headOfRun(local.log, run)).facts.queued;

describe("a run that cannot be driven", () => {
  test("is tried again after 5 s, then after twice as long each time, and after six failures waits for a person", async () => {
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
      // Not a moment sooner.
      nowMs = at - 1;
      await queue.refresh(run);
      expect(queue.placeOf((await headOfRun(local.log, run)).facts)).toMatchObject({ waitsFor: "retry" });
      expect(begun).toHaveLength(times);
      nowMs = at;
    }
    expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 80_000]);
    expect(await queued(run)).toBe(null);
    expect(notices.at(-1)).toBe(`${run} could not be driven: its model does not answer`);
    expect(queue.counts()).toMatchObject({ atWork: 0, queued: 0 });
    // Somebody resumes it: it counts anew.
    await queue.goOn(run, { by: "user", why: "resume" });
    await expect.poll(() => notices.length, { timeout: 60_000 }).toBe(FAILURES_MAX + 1);
    await expect.poll(async () => (await queued(run))?.startAt, { timeout: 60_000 }).toBe(new Date(nowMs + 5_000).toISOString());
  });

  test("because its sandbox cannot be started just now is tried again before its first step, too", async () => {
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
    await expect.poll(async () => (await headOfRun(local.log, run)).facts.status).toBe("ended");
    expect((await local.runs.state(run)).ended).toMatchObject({ reason: "done" });
    await expect.poll(() => queue.counts().atWork).toBe(0);
  });

  test("because its sandbox cannot be started at all ends with the reason", async () => {
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
    await expect.poll(async () => (await headOfRun(local.log, run)).facts.status).toBe("ended");
    expect((await local.runs.state(run)).ended).toEqual({ reason: "error", text: "The launcher ended before it was done." });
    await expect.poll(() => queue.counts().atWork).toBe(0);
  });

  test("because another process has it is left to that one", async () => {
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

describe("memory", () => {
  test("that is asked for is bound by what there is: who asks for more than is left waits, and everybody behind", async () => {
    taken = { ...taken, sandboxes: 1, memoryBytes: 600 * MIB };
    const [large = "", small = ""] = await waitingRuns(500 * MIB, 10 * MIB);
    await queue.refresh(large);
    await queue.refresh(small);
    const place = async (run: string) => queue.placeOf((await headOfRun(local.log, run)).facts);
    await expect.poll(async () => (await place(large))?.waitsFor, { timeout: 60_000 }).toBe("memory");
    expect(await place(large)).toMatchObject({ position: 1, why: expect.stringMatching(/asks for 500 MiB, and others have it/) });
    expect(await place(small)).toMatchObject({ position: 2, waitsFor: "turn" });
    expect(begun).toEqual([]);
    // Somebody gives some back: the large one goes first, and what it is about to take is counted before it has it.
    taken = { ...taken, memoryBytes: 514 * MIB };
    const next = isBegun();
    await queue.refresh(large);
    await next;
    await expect.poll(() => begun.length, { timeout: 60_000 }).toBe(2);
    expect(begun).toEqual([large, small]);
    expect(queue.view().atWork).toMatchObject({ memoryBytes: 1024 * MIB, memoryBytesMax: 1024 * MIB });
  });

  test("that was not asked for counts as a quarter of a gigabyte", async () => {
    taken = { ...taken, memoryBytes: 769 * MIB };
    const [run = ""] = await waitingRuns(undefined);
    await queue.refresh(run);
    await expect.poll(async () => queue.placeOf((await headOfRun(local.log, run)).facts)?.waitsFor, { timeout: 60_000 }).toBe("memory");
    taken = { ...taken, memoryBytes: 768 * MIB };
    const next = isBegun();
    await queue.refresh(run);
    await next;
    expect(begun).toEqual([run]);
  });
});
