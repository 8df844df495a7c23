import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { HealthLevel } from "../contract/health/health-level.ts";
import { ProcessIdentity } from "../contract/process-identity.ts";
import { ignoring, jsonOrNull } from "../lib/failures.ts";
import { lstatOrNull } from "../lib/paths.ts";

const Mark = z.object({ level: HealthLevel, station: ProcessIdentity });
const MARK_NAME = "health.json";

/**
 * Records in the sandbox's folder how a station last saw an unhealthy sandbox, for lists that do not read the log. The
 * mark disappears with the sandbox. The log is authoritative.
 */
export function markHealth(folder: string, { level, station }: z.infer<typeof Mark>): void {
  const path = join(folder, MARK_NAME);
  if (level === "ok") {
    rmSync(path, { force: true });
    return;
  }
  ignoring("the sandbox's folder may have been removed, and then nothing reads the mark", () => {
    writeFileSync(`${path}.tmp`, JSON.stringify({ level, station }), { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  });
}

/** Returns undefined if no problem is known, or if the station that reported it has ended. */
export function markedHealth(folder: string, alive: (station: ProcessIdentity) => boolean): HealthLevel | undefined {
  const path = join(folder, MARK_NAME);
  // Usually no mark exists, and a failed read takes longer than a stat.
  if (lstatOrNull(path) === null) return undefined;
  const text = ignoring("an unreadable mark must not hide the sandbox", () => readFileSync(path, "utf8"));
  const mark = Mark.safeParse(jsonOrNull(text ?? ""));
  return mark.success && alive(mark.data.station) ? mark.data.level : undefined;
}
