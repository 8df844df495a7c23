import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { fakeStationParts } from "../../src/compose/testing-compose.ts";
import { Config } from "../../src/contract/config/config.ts";
import type { Program } from "../../src/runtimes/fake/program.ts";
import type { HealthSettings } from "../../src/station/health/health-settings.ts";
import type { HealthWatch } from "../../src/station/health/health-watch.ts";
import { createStationWatch } from "../../src/station/health/start-watching.ts";
import type { LocalStation } from "../../src/station/local-station.ts";
import { memoryFolder } from "./memory-folder.ts";

/** Starts a station with the fake runtime whose watch ticks on the test's command, so no test has to wait. */
export function useWatch(options: { programs?: Readonly<Record<string, Program>> } = {}) {
  const usual = Config.parse({}).health;
  const defects: unknown[] = [];
  const time = { tickedMs: 0, clockMs: 0 };
  let base: string;
  let parts: Awaited<ReturnType<typeof fakeStationParts>>;
  let local: LocalStation;
  let watch: HealthWatch;
  const begin = (over: Partial<HealthSettings> = {}) => {
    watch = createStationWatch({
      local,
      runtimes: parts.runtimes,
      settings: { ...usual, ...over },
      tickMs: 1000,
      now: () => time.tickedMs,
      clock: () => time.clockMs,
      onDefect: (error) => defects.push(error),
    });
  };
  beforeEach(async () => {
    base = await mkdtemp(join(memoryFolder(), "caisson-test-health-"));
    parts = await fakeStationParts(base, options);
    local = await parts.openLocal();
    Object.assign(time, { tickedMs: 0, clockMs: Date.now() });
    defects.length = 0;
    begin();
  });
  afterEach(async () => {
    await watch[Symbol.asyncDispose]();
    await local[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
    expect(defects).toEqual([]);
  });
  /** Advances the station's clock by this many seconds. */
  const seconds = async (count: number): Promise<void> => {
    for (let tick = 0; tick < count; tick += 1) {
      time.tickedMs += 1000;
      time.clockMs += 1000;
      await watch.tick();
      // A guest answers in between, and its answer arrives at another millisecond.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await watch.waitForRestarts();
  };
  return {
    seconds,
    time,
    parts: () => parts,
    local: () => local,
    runtime: () => parts.fake,
    watch: () => watch,
    base: () => base,
    /** Replaces the station with another. */
    async again(over: Partial<HealthSettings> = {}) {
      await watch[Symbol.asyncDispose]();
      begin(over);
    },
  };
}
