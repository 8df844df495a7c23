import type { RunTimeline, TimelineRelative } from "../../../../../src/contract/run/run-timeline.ts";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";

/** A run of a family, in the order of the tree: each fork below the run that it comes from. */
export interface FamilyRow extends TimelineRelative {
  /** How many forks are between it and the oldest run. */
  depth: number;
  /** Whether it is the run that the page is about. */
  isCurrent: boolean;
}

type Current = Pick<RunView, "run" | "name" | "model" | "status" | "finish" | "steps" | "costUsd" | "forked" | "createdAt">;

/** Returns the family of a run as a tree. Forks of the same run are in the order of their steps, then of their ages. */
export function familyRows(view: Current, { from, forks, relatives }: Pick<RunTimeline, "from" | "forks" | "relatives">): FamilyRow[] {
  const { run, name, model, status, finish, steps, costUsd, createdAt } = view;
  const isTail = view.forked?.isTail ?? false;
  const all: TimelineRelative[] = [...relatives, { run, name, from, isTail, model, status, finish, steps, costUsd, createdAt }, ...forks];
  const known = new Set(all.map((each) => each.run));
  const below = Map.groupBy(all, (each) => (each.from !== null && known.has(each.from.run) ? each.from.run : null));
  const rows: FamilyRow[] = [];
  const seen = new Set<string>();
  // A list instead of recursion, because forks of forks may be hundreds deep.
  const open = (below.get(null) ?? []).toReversed().map((each) => ({ each, depth: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { each, depth } = next;
    if (seen.has(each.run)) continue;
    seen.add(each.run);
    rows.push({ ...each, depth, isCurrent: each.run === run });
    for (const fork of (below.get(each.run) ?? []).toSorted(byStep).toReversed()) open.push({ each: fork, depth: depth + 1 });
  }
  return rows;
}

function byStep(one: TimelineRelative, other: TimelineRelative): number {
  return (one.from?.step ?? 0) - (other.from?.step ?? 0) || one.createdAt.localeCompare(other.createdAt);
}
