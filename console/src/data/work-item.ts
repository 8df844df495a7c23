import type { JobView } from "../../../src/contract/durable/durable-job.ts";
import type { ShipView } from "../../../src/contract/ship/ship-verbs.ts";
import type { SpecSummary } from "../../../src/contract/spec/spec-verbs.ts";
import type { Tone } from "../parts/badge.tsx";

/** The kinds of work that consist of several runs, in display order. */
export const workKinds = ["workflow", "spec", "ship", "merge", "best"] as const;
export type WorkKind = (typeof workKinds)[number];
/** The names of each kind: one of them, and the title of their list. */
export const kindNames: Readonly<Record<WorkKind, { one: string; all: string }>> = {
  workflow: { one: "workflow", all: "Workflows" },
  spec: { one: "spec", all: "Specs" },
  ship: { one: "ship", all: "Ships" },
  merge: { one: "merge", all: "Merges" },
  best: { one: "best-of", all: "Best-ofs" },
};
export const workStates = ["active", "waiting", "done", "failed", "cancelled"] as const;
export type WorkState = (typeof workStates)[number];

/** A status: a word with its tone, and the filter state that it belongs to. */
export interface WorkStatus {
  word: string;
  tone: Tone;
  state: WorkState;
}

/** A workflow, spec, ship, merge or best-of, as shown in a list. */
export interface WorkItem extends WorkStatus {
  kind: WorkKind;
  id: string;
  href: string;
  title: string;
  name: string | null;
  owner: string;
  /** What it waits for, or how it ended. */
  about: string;
  /** When it continues automatically. */
  due: string | null;
  isPart: boolean;
  createdAt: string;
  updatedAt: string;
}

export const hrefOfWork = (kind: WorkKind, id: string): string => `/${kind}s/${id}`;

/** Parses a stream name such as `workflow/wf_…`. Returns null if it has no page. */
export function workOfStream(stream: string): { kind: WorkKind | "run"; id: string; href: string } | null {
  const [, kind, id] = /^([a-z]+)\/([a-z]+_[a-z2-7]{12})$/.exec(stream) ?? [];
  const known = (["run", ...workKinds] as const).find((each) => each === kind);
  return known === undefined || id === undefined ? null : { kind: known, id, href: `/${known}s/${id}` };
}

const finishes = {
  completed: { word: "done", tone: "good", state: "done" },
  failed: { word: "failed", tone: "bad", state: "failed" },
  timed_out: { word: "timed out", tone: "bad", state: "failed" },
  cancelled: { word: "cancelled", tone: "idle", state: "cancelled" },
} as const satisfies Record<string, WorkStatus>;

/** Returns the status. What a job waits for takes precedence over "running". */
export function jobStatus({ finish, damage, paused, cancelRequested, waits }: JobView): WorkStatus {
  if (damage !== null) return { word: "damaged", tone: "bad", state: "failed" };
  if (finish !== null) return finishes[finish];
  if (cancelRequested !== null) return { word: "cancelling", tone: "busy", state: "active" };
  if (paused !== null) return { word: "paused", tone: "warn", state: "waiting" };
  if (waits === null || waits.children.length > 0) {
    return waits?.person == null ? { word: "running", tone: "busy", state: "active" } : asks;
  }
  if (waits.person !== null) return asks;
  return waits.signal === null ? { word: "waiting", tone: "idle", state: "active" } : { word: "waiting", tone: "warn", state: "waiting" };
}
const asks: WorkStatus = { word: "needs input", tone: "warn", state: "waiting" };

function jobItem(kind: "workflow" | "merge" | "best", view: JobView): WorkItem {
  const { id, title, owner, waits, text, paused, damage, parent, createdAt, updatedAt } = view;
  const signal = waits?.signal == null ? null : `the signal ${waits.signal}`;
  const children = waits?.children.length ? waits.children.map((stream) => stream.split("/")[1] ?? stream).join(", ") : null;
  return {
    ...jobStatus(view),
    ...{ kind, id, href: hrefOfWork(kind, id), title, name: null, owner, createdAt, updatedAt },
    about: damage ?? text ?? paused?.text ?? waits?.person ?? signal ?? children ?? "",
    due: waits?.due ?? null,
    isPart: parent !== null,
  };
}

const specStatuses: Readonly<Record<SpecSummary["status"], WorkStatus>> = {
  draft: { word: "draft", tone: "idle", state: "waiting" },
  running: { word: "running", tone: "busy", state: "active" },
  waiting: asks,
  retrying: { word: "retrying", tone: "warn", state: "active" },
  paused: { word: "paused", tone: "warn", state: "waiting" },
  done: finishes.completed,
  planned: { word: "planned", tone: "good", state: "done" },
  failed: finishes.failed,
  cancelled: finishes.cancelled,
};

export const specStatus = ({ status }: Pick<SpecSummary, "status">): WorkStatus => specStatuses[status];

function specItem(spec: SpecSummary): WorkItem {
  const { spec: id, name, owner, title, phase, createdAt, updatedAt, status } = spec;
  return {
    ...specStatus(spec),
    ...{ kind: "spec", id, href: hrefOfWork("spec", id), title, name, owner, createdAt, updatedAt },
    about: status === "waiting" ? `your approval of its ${phase}` : status === "draft" ? "someone to start it" : `phase: ${phase}`,
    due: null,
    isPart: false,
  };
}

const shipStatuses: Readonly<Record<ShipView["status"], WorkStatus>> = {
  working: { word: "running", tone: "busy", state: "active" },
  waiting: { word: "retrying", tone: "warn", state: "active" },
  open: { word: "open", tone: "warn", state: "waiting" },
  blocked: { word: "blocked", tone: "bad", state: "waiting" },
  paused: { word: "paused", tone: "warn", state: "waiting" },
  merged: { word: "merged", tone: "good", state: "done" },
  cancelled: finishes.cancelled,
};

export const shipStatus = ({ status }: Pick<ShipView, "status">): WorkStatus => shipStatuses[status];

function shipItem(ship: ShipView): WorkItem {
  const { id, owner, title, status, branch, into, error, nextAt, createdAt, updatedAt } = ship;
  const way = branch === null ? "" : `${branch} → ${into ?? ""}`;
  return {
    ...shipStatus(ship),
    ...{ kind: "ship", id, href: hrefOfWork("ship", id), title, name: null, owner, createdAt, updatedAt },
    about: error?.message ?? (status === "open" ? `someone to merge ${way}` : way),
    due: nextAt,
    isPart: false,
  };
}

/** Converts list entries of each kind to items. */
export const itemOf = {
  workflow: (view: JobView) => jobItem("workflow", view),
  spec: specItem,
  ship: shipItem,
  merge: (view: JobView) => jobItem("merge", view),
  best: (view: JobView) => jobItem("best", view),
} as const satisfies Readonly<Record<WorkKind, (view: never) => WorkItem>>;
