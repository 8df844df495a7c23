import { lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { HealthLevel } from "../contract/health-level.ts";
import { ProcessIdentity } from "../contract/process-identity.ts";
import { jsonOrNull } from "../lib/json-or-null.ts";

const Mark = z.object({ level: HealthLevel, station: ProcessIdentity });
const MARK_NAME = "health.json";

/**
 * How a station last saw a sandbox that is not well, in the sandbox's folder: for lists that do not open the log, and
 * gone with the sandbox. The log has the truth.
 */
export function markHealth(folder: string, { level, station }: z.infer<typeof Mark>): void {
  const path = join(folder, MARK_NAME);
  if (level === "ok") {
    rmSync(path, { force: true });
    return;
  }
  try {
    writeFileSync(`${path}.tmp`, JSON.stringify({ level, station }), { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  } catch {
    // The sandbox is gone, and nobody will look.
  }
}

/** Undefined where nothing is known to be wrong, or the station that said so is gone. */
export function markedHealth(folder: string, alive: (station: ProcessIdentity) => boolean): HealthLevel | undefined {
  const path = join(folder, MARK_NAME);
  try {
    // Mostly there is none, and a failure to read one takes longer than a look.
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    const mark = Mark.safeParse(jsonOrNull(readFileSync(path, "utf8")));
    return mark.success && alive(mark.data.station) ? mark.data.level : undefined;
  } catch {
    return undefined;
  }
}
