import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { HealthView } from "../../contract/health/health.ts";
import { ProcessIdentity } from "../../contract/process-identity.ts";
import { ABSENT, ifErrno, ignore, jsonOrNull } from "../../lib/failures.ts";
import { machineClock } from "../../log/lease-clock.ts";
import { conditionOfProcess } from "../../sandbox/process-identity.ts";
import { type HealthSettings, MISSES_MAX } from "./health-settings.ts";

/**
 * The time is that of the monotonic clock since boot: setting the clock or suspending the machine does not affect it.
 */
const Beat = z.object({ station: ProcessIdentity, boot: z.string(), atMs: z.number() });

/** A station's heartbeat, in the state folder. */
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
      // The disk may be slower than the beats.
      writing ??= write().finally(() => {
        writing = null;
      });
      await writing;
    },
    async end() {
      ended = true;
      if (writing !== null) await ignore(writing, "its caller gets the error");
      await rm(path, { force: true });
    },
  };
}

/** Returns the health of a state folder's station as other processes see it. Null if no station is watching. */
export async function stationHealth(
  stateDir: string,
  options: { settings: HealthSettings; alive: (station: ProcessIdentity) => boolean },
): Promise<HealthView | null> {
  const read = Beat.safeParse(jsonOrNull(await ifErrno(readFile(pathOf(stateDir), "utf8"), ABSENT, "")));
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
