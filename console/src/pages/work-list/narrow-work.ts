import { type WorkItem, type WorkKind, type WorkState, workKinds, workStates } from "../../data/work-item.ts";
import type { Sort } from "../../parts/list.tsx";

/** What the list shows. The page's address contains all of it. */
export interface WorkFilter {
  text: string;
  kind: WorkKind | null;
  state: WorkState | null;
  owner: string | null;
  /** Includes parts of other work: a workflow's workflows, a spec's merges. */
  withParts: boolean;
}

export const usualSort: Sort = { by: "updated", isDown: true };

export function workFilterOf(params: URLSearchParams): WorkFilter {
  return {
    text: params.get("q") ?? "",
    kind: workKinds.find((each) => each === params.get("kind")) ?? null,
    state: workStates.find((each) => each === params.get("state")) ?? null,
    owner: params.get("owner"),
    withParts: params.get("parts") === "1",
  };
}

const values: Readonly<Record<string, (item: WorkItem) => string>> = {
  status: ({ word }) => word,
  kind: ({ kind }) => kind,
  title: ({ title }) => title.toLowerCase(),
  owner: ({ owner }) => owner,
  updated: ({ updatedAt }) => updatedAt,
};

/** Returns the items that pass the filter, sorted. */
export function narrowWork(items: readonly WorkItem[], { filter, sort }: { filter: WorkFilter; sort: Sort }): WorkItem[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const value = values[sort.by] ?? (({ updatedAt }: WorkItem) => updatedAt);
  const order = sort.isDown ? -1 : 1;
  return items
    .filter((item) => {
      const text = [item.title, item.name ?? "", item.id, item.about, item.kind].join("\n").toLowerCase();
      return (
        (filter.withParts || !item.isPart) &&
        (filter.kind === null || item.kind === filter.kind) &&
        (filter.state === null || item.state === filter.state) &&
        (filter.owner === null || item.owner === filter.owner) &&
        words.every((word) => text.includes(word))
      );
    })
    .sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (a !== b) return a < b ? -order : order;
      return one.id < other.id ? -1 : 1;
    });
}
