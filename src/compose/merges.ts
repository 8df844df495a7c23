import { createDrivenThings } from "../station/driven/driven-verbs.ts";
import { createLocalMerges } from "../station/merges/local-merges.ts";
import { createMergeKind } from "../station/merges/merge-kind.ts";
import { mergeSessions } from "../station/merges/merge-sessions.ts";
import type { DrivenParts } from "./driven.ts";

/** Merges of this station: what they are, and what users do with them. */
export async function openMerges({ local, station, driver, settings }: DrivenParts) {
  const kind = createMergeKind(mergeSessions({ ...local.viewing, station }));
  const things = createDrivenThings(kind, { ...local, driver, openPerOwnerMax: settings.config.station.jobsPerOwnerMax });
  return { kind, verbs: createLocalMerges({ ...local, things, station }) };
}
