import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { fakeStationParts } from "../../compose/testing.ts";
import { Config } from "../../contract/config.ts";
import type { Program } from "../../runtimes/fake/program.ts";
import type { LocalStation } from "../local-station.ts";
import type { HealthSettings } from "./health-settings.ts";
import type { HealthWatch } from "./health-watch.ts";
import { createStationWatch } from "./start-watching.ts";

/** A station of the fake runtime whose watch ticks when the test says so: nothing is waited for. */
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
  /** So many seconds, as the station counts them. */
  const seconds = async (count: number): Promise<void> => {
    for (let tick = 0; tick < count; tick += 1) {
      time.tickedMs += 1000;
      time.clockMs += 1000;
      await watch.tick();
      // A guest that is asked answers in between, and is heard at another millisecond.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await watch.settled();
  };
  return {
    seconds,
    time,
    parts: () => parts,
    local: () => local,
    runtime: () => parts.fake,
    watch: () => watch,
    base: () => base,
    /** Another station takes its place. */
    async again(over: Partial<HealthSettings> = {}) {
      await watch[Symbol.asyncDispose]();
      begin(over);
    },
  };
}
