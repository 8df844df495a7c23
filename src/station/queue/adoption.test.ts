import { describe, expect, test } from "vitest";
import { emptyRunFacts, type RunFacts } from "../../contract/run/run-facts.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { drivenBy, mayAdopt, toQueue } from "./adoption.ts";

const at = "2026-01-02T03:04:05.678Z";
const soon = Date.parse(at) + 1_000;
const later = Date.parse(at) + 60_000;

async function look(facts: Partial<RunFacts>, options: { driver?: "dead" | "alive" | "elsewhere"; nowMs?: number } = {}): Promise<boolean> {
  const log = createMemoryLog();
  const run = "run_aaaaaaaaaaaa";
  if (options.driver !== undefined) await log.acquire(`run/${run}`, { holder: options.driver, ttlMs: 60_000 });
  const head = { facts: { ...emptyRunFacts(), run, status: "running" as const, ...facts }, seq: 1, at, damage: null };
  const holderGone = (owner: string) => owner === "dead";
  return await mayAdopt(head, { log, holderGone, isNeighbour: (owner) => owner === "alive", nowMs: options.nowMs ?? later });
}

describe("a station adopts", () => {
  test("runs of a dead station or background process", async () => {
    for (const driver of ["station", "detached"] as const) {
      expect([driver, await look({ driver }, { driver: "dead" })]).toEqual([driver, true]);
      expect([driver, await look({ driver })]).toEqual([driver, true]);
    }
  });

  test("neither runs that a person or program drove nor paused ones", async () => {
    expect(await look({ driver: "caller" }, { driver: "dead" })).toBe(false);
    const paused = { why: "user", text: "interrupted" };
    expect(await look({ driver: "station", status: "paused", paused }, { driver: "dead" })).toBe(false);
    // All that is left to do is to end it.
    expect(await look({ driver: "caller", stopRequested: "me" }, { driver: "dead" })).toBe(true);
  });

  test("no run whose driver lives, here or on another machine", async () => {
    expect(await look({ driver: "station" }, { driver: "alive" })).toBe(false);
    expect(await look({ driver: "station" }, { driver: "elsewhere" })).toBe(false);
  });

  test("neither sub-runs nor ended runs", async () => {
    expect(await look({ driver: "station", parent: { run: "run_bbbbbbbbbbbb", call: "t1.1" } })).toBe(false);
    expect(await look({ driver: "station", status: "ended" })).toBe(false);
  });

  test("a run of a background process only after the process had time to start", async () => {
    expect(await look({ driver: "detached", status: "created" }, { nowMs: soon })).toBe(false);
    expect(await look({ driver: "detached", status: "created" }, { nowMs: later })).toBe(true);
  });
});

test("a driver with an expired lease still counts while its process exists here", async () => {
  const log = createMemoryLog();
  const lease = await log.acquire("run/run_aaaaaaaaaaaa", { holder: "stalled", ttlMs: 1 });
  while ((await log.holder("run/run_aaaaaaaaaaaa")) !== null) await new Promise(setImmediate);
  const stalled = { log, holderGone: () => false, isNeighbour: () => true };
  expect(await drivenBy("run_aaaaaaaaaaaa", stalled)).toBe(lease?.holder);
  expect(await drivenBy("run_aaaaaaaaaaaa", { ...stalled, isNeighbour: () => false })).toBe(null);
});

test("queues a waiting run only once, and continues a paused one", () => {
  const facts = emptyRunFacts();
  const request = { by: "me", why: "adoption" } as const;
  expect(toQueue(facts, request).map(({ type }) => type)).toEqual(["run.queued"]);
  expect(toQueue({ ...facts, paused: { why: "user", text: "" } }, request).map(({ type }) => type)).toEqual([
    "run.continued",
    "run.queued",
  ]);
  expect(toQueue({ ...facts, queued: { for: "start", since: at, startAt: null, tape: null } }, request)).toEqual([]);
});
