import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { HealthView } from "../../contract/health.ts";
import { ProcessIdentity } from "../../contract/process-identity.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { machineClock } from "../../log/lease-clock.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import { type HealthSettings, MISSES_MAX } from "./health-settings.ts";

/** By the clock of the boot, which no sleep of the machine and nobody's hand moves. */
const Beat = z.object({ station: ProcessIdentity, boot: z.string(), atMs: z.number() });

/** A station's own sign of life, in the state folder, for whoever wonders. */
export interface StationBeat {
  beat(): Promise<void>;
  end(): Promise<void>;
}

const pathOf = (stateDir: string) => join(stateDir, "station", "beat.json");

export function createStationBeat(options: { stateDir: string; station: ProcessIdentity }): StationBeat {
  const path = pathOf(options.stateDir);
  const clock = machineClock();
  let writing: Promise<void> | null = null;
  let ended = false;
  const write = async () => {
    await mkdir(join(options.stateDir, "station"), { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ station: options.station, boot: clock.boot, atMs: clock.nowMs() } satisfies z.infer<typeof Beat>);
    await writeFile(`${path}.tmp`, text, { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  };
  return {
    async beat() {
      if (ended) return;
      // A disk may be slower than the beats.
      writing ??= write().finally(() => {
        writing = null;
      });
      await writing;
    },
    async end() {
      ended = true;
      await writing?.catch(() => {});
      await rm(path, { force: true });
    },
  };
}

/** The station of a state folder as others see it. Null: none watches anything. */
export async function stationHealth(
  stateDir: string,
  options: { settings: HealthSettings; alive: (station: ProcessIdentity) => boolean },
): Promise<HealthView | null> {
  const read = Beat.safeParse(jsonOrNull(await readFile(pathOf(stateDir), "utf8").catch(() => "")));
  if (!read.success || !options.alive(read.data.station)) return null;
  const clock = machineClock();
  const silentMs = read.data.boot === clock.boot ? clock.nowMs() - read.data.atMs : Number.POSITIVE_INFINITY;
  const misses = Math.min(Math.floor((silentMs * MISSES_MAX) / options.settings.runningTtlMs), MISSES_MAX);
  return {
    subject: { kind: "station", id: String(read.data.station.pid) },
    run: null,
    level: (["ok", "late", "degraded", "unresponsive"] as const)[misses] ?? "ok",
    condition: conditionOfProcess(read.data.station),
    since: null,
    restarts: 0,
    escalated: false,
  };
}
