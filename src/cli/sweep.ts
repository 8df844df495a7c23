import type { CliContext } from "./context.ts";

/** Removes sessions that were never finished. Comes before a command, which may want to make one of the same name. */
export async function sweepSessions(context: CliContext): Promise<void> {
  const [{ openStation }, { sweepUnfinished }] = await Promise.all([import("./station.ts"), import("../station/runs/new-run.ts")]);
  await using station = openStation(context);
  await sweepUnfinished(station);
}
