import type { DrivenView } from "../../../src/contract/driven.ts";
import type { ShipView } from "../../../src/contract/ship-verbs.ts";
import type { SpecSummary } from "../../../src/contract/spec-verbs.ts";
import type { Tone } from "../parts/badge.tsx";

/** The kinds of work that is more than one run, in the order in which they are shown. */
export const workKinds = ["workflow", "spec", "ship", "merge"] as const;
export type WorkKind = (typeof workKinds)[number];
export const workStates = ["active", "waiting", "done", "failed", "cancelled"] as const;
export type WorkState = (typeof workStates)[number];

/** How something is: in a word with a tone, and among which it is found. */
export interface WorkStatus {
  word: string;
  tone: Tone;
  state: WorkState;
}

/** A workflow, a spec, a ship or a merge, as a list shows it. */
export interface WorkItem extends WorkStatus {
  kind: WorkKind;
  id: string;
  href: string;
  title: string;
  name: string | null;
  owner: string;
  /** What has to happen before it goes on, or what is said of its end. */
  about: string;
  /** When it goes on by itself. */
  due: string | null;
  isPart: boolean;
  createdAt: string;
  updatedAt: string;
}

export const hrefOfWork = (kind: WorkKind, id: string): string => `/${kind}s/${id}`;

/** Of a stream's name such as `workflow/wf_…`; null for one that has no page. */
export function workOfStream(stream: string): { kind: WorkKind | "run"; id: string; href: string } | null {
  const [, kind, id] = /^(run|workflow|spec|ship|merge)\/([a-z]+_[a-z2-7]{12})$/.exec(stream) ?? [];
  if (kind === undefined || id === undefined) return null;
  return { kind: kind as WorkKind | "run", id, href: `/${kind}s/${id}` };
}

const finishes = {
  completed: { word: "done", tone: "good", state: "done" },
  failed: { word: "failed", tone: "bad", state: "failed" },
  timed_out: { word: "timed out", tone: "bad", state: "failed" },
  cancelled: { word: "cancelled", tone: "idle", state: "cancelled" },
} as const satisfies Record<string, WorkStatus>;

/** What it waits for comes before that it goes on. */
export function drivenStatus({ finish, damage, paused, cancelRequested, waits }: DrivenView): WorkStatus {
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
const asks: WorkStatus = { word: "asks", tone: "warn", state: "waiting" };

export function drivenItem(kind: "workflow" | "merge", view: DrivenView): WorkItem {
  const { id, title, owner, waits, text, paused, damage, parent, createdAt, updatedAt } = view;
  const signal = waits?.signal == null ? null : `the signal ${waits.signal}`;
  const children = waits?.children.length ? waits.children.map((stream) => stream.split("/")[1] ?? stream).join(", ") : null;
  return {
    ...drivenStatus(view),
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

export function specItem(spec: SpecSummary): WorkItem {
  const { spec: id, name, owner, title, phase, createdAt, updatedAt, status } = spec;
  return {
    ...specStatus(spec),
    ...{ kind: "spec", id, href: hrefOfWork("spec", id), title, name, owner, createdAt, updatedAt },
    about: status === "waiting" ? `your word on its ${phase}` : status === "draft" ? "nobody has begun it" : `phase: ${phase}`,
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

export function shipItem(ship: ShipView): WorkItem {
  const { id, owner, title, status, branch, into, error, nextAt, createdAt, updatedAt } = ship;
  const way = branch === null ? "" : `${branch} → ${into ?? ""}`;
  return {
    ...shipStatus(ship),
    ...{ kind: "ship", id, href: hrefOfWork("ship", id), title, name: null, owner, createdAt, updatedAt },
    about: error?.message ?? (status === "open" ? `somebody to merge ${way}` : way),
    due: nextAt,
    isPart: false,
  };
}
