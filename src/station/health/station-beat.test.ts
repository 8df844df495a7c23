import { mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { Config } from "../../contract/config/config.ts";
import { currentProcess } from "../../sandbox/process-identity.ts";
import { createStationBeat, stationHealth } from "./station-beat.ts";

const settings = Config.parse({}).health;
let stateDir: string;

beforeEach(async () => {
  stateDir = await mkdtemp(join(memoryFolder(), "caisson-test-beat-"));
});

afterEach(() => rm(stateDir, { recursive: true, force: true }));

test("overlapping beats do not conflict, and no beat is written after the end", async () => {
  const beat = createStationBeat({ stateDir, station: currentProcess() });
  await Promise.all(Array.from({ length: 20 }, () => beat.beat()));
  expect((await stationHealth(stateDir, { settings, alive: () => true }))?.level).toBe("ok");
  const last = beat.beat();
  await beat.end();
  await last;
  await beat.beat();
  expect(await readdir(join(stateDir, "station"))).toEqual([]);
});
