import { z } from "zod";
import { CaissonError } from "../error/error.ts";
import { parseRequest } from "../error/parse-request.ts";
import { LabelKey, Labels, LabelValue } from "../ids.ts";
import { isStationLabel } from "./station-labels.ts";

/** New values by key; null removes a label. */
export const ChangeLabels = z
  .record(LabelKey, LabelValue.nullable())
  .refine((changes) => Object.keys(changes).length > 0, "must contain a change")
  .refine((changes) => Object.keys(changes).length <= 64, "must have at most 64 entries")
  .meta({ maxProperties: 64 });
export type ChangeLabels = z.infer<typeof ChangeLabels>;

/** Returns the changed labels. Throws `invalid` for a reserved label, and if there are too many. */
export function changedLabels(kind: "run" | "sandbox", labels: Labels, changes: ChangeLabels): Labels {
  refuseStationLabels(kind, changes);
  return parseRequest(Labels, withChanges(labels, changes), "labels");
}

/** Throws `invalid` if one of these keys is reserved. */
export function refuseStationLabels(kind: "run" | "sandbox", labels: Readonly<Record<string, unknown>>): void {
  const reserved = Object.keys(labels).find((key) => isStationLabel(kind, key));
  if (reserved === undefined) return;
  throw new CaissonError("invalid", `the label ${JSON.stringify(reserved)} is reserved`, { hint: "Choose another key." });
}

/** Applies changes that have already been checked. */
export function withChanges(labels: Labels, changes: ChangeLabels): Labels {
  const unchanged = Object.entries(labels).filter(([key]) => !Object.hasOwn(changes, key));
  const added = Object.entries(changes).flatMap(([key, value]) => (value === null ? [] : [[key, value] as const]));
  return Object.fromEntries([...unchanged, ...added]);
}
