import { describe, expect, test } from "vitest";
import { emptyRunFacts, type RunFacts } from "../../contract/run-facts.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { drivenBy, mayAdopt, toQueue } from "./adoption.ts";

const at = "2026-01-02T03:04:05.678Z";
const soon = Date.parse(at) + 1_000;
const later = Date.parse(at) + 60_000;

async function look(facts: Partial<RunFacts>, options: { driver?: "dead" | "alive" | "elsewhere"; nowMs?: number } = {}): Promise<boolean> {
  const log = createMemoryLog();
  const run = "run_aaaaaaaaaaaa";
  if (options.driver !== undefined) await log.acquire(`run/${run}`, { owner: options.driver, ttlMs: 60_000 });
  const head = { facts: { ...emptyRunFacts(), run, status: "running" as const, ...facts }, seq: 1, at, damage: null };
  const ownerGone = (owner: string) => owner === "dead";
  return await mayAdopt(head, { log, ownerGone, isNeighbour: (owner) => owner === "alive", nowMs: options.nowMs ?? later });
}

describe("a station goes on by itself", () => {
  test("with what a station drove, and with what ran in the background, once their process is gone", async () => {
    for (const driver of ["station", "detached"] as const) {
      expect([driver, await look({ driver }, { driver: "dead" })]).toEqual([driver, true]);
      expect([driver, await look({ driver })]).toEqual([driver, true]);
    }
  });

  test("never with what a person or a program drove, and not with what was paused", async () => {
    expect(await look({ driver: "caller" }, { driver: "dead" })).toBe(false);
    const paused = { why: "user", text: "interrupted" };
    expect(await look({ driver: "station", status: "paused", paused }, { driver: "dead" })).toBe(false);
    // Nothing is left to do there but to end it.
    expect(await look({ driver: "caller", stopRequested: "me" }, { driver: "dead" })).toBe(true);
  });

  test("never with one whose driver lives, here or elsewhere", async () => {
    expect(await look({ driver: "station" }, { driver: "alive" })).toBe(false);
    expect(await look({ driver: "station" }, { driver: "elsewhere" })).toBe(false);
  });

  test("never with a sub-run, or with one that is over", async () => {
    expect(await look({ driver: "station", parent: { run: "run_bbbbbbbbbbbb", call: "t1.1" } })).toBe(false);
    expect(await look({ driver: "station", status: "ended" })).toBe(false);
  });

  test("with one that is to have a process of its own once that had time to begin", async () => {
    expect(await look({ driver: "detached", status: "created" }, { nowMs: soon })).toBe(false);
    expect(await look({ driver: "detached", status: "created" }, { nowMs: later })).toBe(true);
  });
});

test("a driver of this machine whose lease ran out is waited for as long as its process is there", async () => {
  const log = createMemoryLog();
  const lease = await log.acquire("run/run_aaaaaaaaaaaa", { owner: "stalled", ttlMs: 1 });
  while ((await log.holder("run/run_aaaaaaaaaaaa")) !== null) await new Promise(setImmediate);
  const stalled = { log, ownerGone: () => false, isNeighbour: () => true };
  expect(await drivenBy("run_aaaaaaaaaaaa", stalled)).toBe(lease?.owner);
  expect(await drivenBy("run_aaaaaaaaaaaa", { ...stalled, isNeighbour: () => false })).toBe(null);
});

test("what waits already does not wait twice, and what was paused goes on", () => {
  const facts = emptyRunFacts();
  const asked = { by: "me", why: "adoption" } as const;
  expect(toQueue(facts, asked).map(({ type }) => type)).toEqual(["run.queued"]);
  expect(toQueue({ ...facts, paused: { why: "user", text: "" } }, asked).map(({ type }) => type)).toEqual(["run.continued", "run.queued"]);
  expect(toQueue({ ...facts, queued: { for: "start", since: at, startAt: null, tape: null } }, asked)).toEqual([]);
});
