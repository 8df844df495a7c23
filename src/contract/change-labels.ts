import { z } from "zod";
import { CaissonError } from "./error.ts";
import { LabelKey, Labels, LabelValue } from "./ids.ts";
import { parseRequest } from "./parse-request.ts";
import { isStationLabel } from "./station-labels.ts";

/** New values by key; null takes a label away. */
export const ChangeLabels = z
  .record(LabelKey, LabelValue.nullable())
  .refine((changes) => Object.keys(changes).length > 0, "there is no change")
  .refine((changes) => Object.keys(changes).length <= 64, "at most 64 changes at once")
  .meta({ maxProperties: 64 });
export type ChangeLabels = z.infer<typeof ChangeLabels>;

/** What labels become. Throws `invalid` for one that is the station's own, and where they become too many. */
export function changedLabels(kind: "run" | "sandbox", labels: Labels, changes: ChangeLabels): Labels {
  refuseStationLabels(kind, changes);
  return parseRequest(Labels, withChanges(labels, changes), "labels");
}

/** Throws `invalid` where one of these keys is the station's own. */
export function refuseStationLabels(kind: "run" | "sandbox", labels: Readonly<Record<string, unknown>>): void {
  const taken = Object.keys(labels).find((key) => isStationLabel(kind, key));
  if (taken === undefined) return;
  throw new CaissonError("invalid", `the label ${JSON.stringify(taken)} is the station's own`, { hint: "Choose another key for it." });
}

/** The same of changes that were accepted. */
export function withChanges(labels: Labels, changes: ChangeLabels): Labels {
  const kept = Object.entries(labels).filter(([key]) => !Object.hasOwn(changes, key));
  const given = Object.entries(changes).flatMap(([key, value]) => (value === null ? [] : [[key, value] as const]));
  return Object.fromEntries([...kept, ...given]);
}
