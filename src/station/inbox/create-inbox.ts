import type { JobView } from "../../contract/durable/durable-job.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { HealthView } from "../../contract/health/health.ts";
import type { InboxItem } from "../../contract/inbox/inbox-verbs.ts";
import { isPoisonPause, poisonText } from "../../contract/run/poison.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
import type { ShipView } from "../../contract/ship/ship-verbs.ts";
import type { SpecSummary } from "../../contract/spec/spec-verbs.ts";
import type { InboxVerbs } from "../../verbs/inbox.ts";
import type { Station } from "../../verbs/station.ts";
import { conditionTexts } from "../health/restarts.ts";

/** How many open runs, and how many waiting jobs of each kind, the inbox considers; the last changed come first. */
const RUNS_MAX = 5_000;
const THINGS_MAX = 500;

/**
 * Lists everything visible through these verbs that waits for a person. With an owner's verbs, it is that owner's
 * inbox.
 */
export function createInbox(
  station: Pick<Station, "runs" | "workflows" | "specs" | "ships" | "merges" | "bests" | "health" | "sandboxes">,
): InboxVerbs {
  return {
    async list() {
      const limit = THINGS_MAX;
      const [runs, workflows, specs, ships, merges, sandboxes, poisoned] = await Promise.all([
        station.runs.list({ state: "open", limit: RUNS_MAX }),
        station.workflows.list({ state: "open", needsPerson: true, limit }),
        station.specs.list({ status: "waiting", limit }),
        station.ships.list({ state: "open", needsPerson: true, limit }),
        station.merges.list({ state: "open", needsPerson: true, limit }),
        leftSandboxes(station),
        poisonedThings(station, limit),
      ]);
      const items = [
        ...runs.runs.flatMap(questionsOf),
        ...workflows.items.flatMap((view) => ofJob(view, { kind: "workflow", asks: "approval" })),
        ...specs.items.flatMap(ofSpec),
        ...ships.items.flatMap(ofShip),
        ...merges.items.flatMap((view) => ofJob(view, { kind: "merge", asks: "conflict" })),
        ...sandboxes,
        ...poisoned,
        ...runs.runs.flatMap(ofPoisonedRun),
      ];
      items.sort((one, other) => (one.at === other.at ? 0 : one.at < other.at ? 1 : -1));
      return { items, isWhole: [runs, workflows, specs, ships, merges].every(({ next }) => next === null) };
    },
  };
}

/** Returns the durable jobs that a station paused because they crashed the station before it. */
async function poisonedThings(
  station: Pick<Station, "workflows" | "specs" | "ships" | "merges" | "bests">,
  limit: number,
): Promise<InboxItem[]> {
  const query = { state: "open", status: "paused", limit } as const;
  const [workflows, merges, bests, ships, specs] = await Promise.all([
    station.workflows.list(query),
    station.merges.list(query),
    station.bests.list(query),
    station.ships.list({ state: "open", limit }),
    station.specs.list({ status: "paused", limit }),
  ]);
  const poisonedItemsOf = (kind: "workflow" | "merge" | "best" | "ship") => (view: JobView | ShipView) => {
    const { id, owner, title, seq, updatedAt: at } = view;
    const why = "paused" in view ? view.paused : view.asks === null ? null : { text: view.asks };
    if (!isPoisonPause(why)) return [];
    return [{ of: { kind, id }, owner, title, asks: "failure" as const, text: why.text, question: null, seq, at }];
  };
  return [
    ...workflows.items.flatMap(poisonedItemsOf("workflow")),
    ...merges.items.flatMap(poisonedItemsOf("merge")),
    ...bests.items.flatMap(poisonedItemsOf("best")),
    ...ships.items.flatMap(poisonedItemsOf("ship")),
    // Only a station pauses a spec, so every paused spec is poisoned.
    ...specs.items.map(({ spec, owner, name, title, seq, updatedAt: at }) => ({
      of: { kind: "spec" as const, id: spec },
      owner,
      title: name ?? title,
      asks: "failure" as const,
      text: poisonText("spec", spec),
      question: null,
      seq,
      at,
    })),
  ];
}

function ofPoisonedRun({ run, owner, name, title, paused, seq, updatedAt }: RunView): InboxItem[] {
  if (!isPoisonPause(paused)) return [];
  const of = { kind: "run" as const, id: run };
  return [{ of, owner, title: name ?? title, asks: "failure", text: paused.text, question: null, seq, at: updatedAt }];
}

/**
 * Returns kept sandboxes outside a run that the station has given up restarting. These items have no answer: one
 * disappears when its sandbox responds again or is removed. A sandbox of a run is covered by the run's own questions.
 */
async function leftSandboxes(station: Pick<Station, "health" | "sandboxes">): Promise<InboxItem[]> {
  const { subjects } = await station.health.list();
  const left = subjects.filter(({ subject, run, escalated }) => escalated && run === null && subject.kind === "sandbox");
  const found = await Promise.all(left.map((view) => ofSandbox(station, view)));
  return found.flat();
}

async function ofSandbox({ sandboxes }: Pick<Station, "sandboxes">, view: HealthView): Promise<InboxItem[]> {
  const { subject, condition, since, restarts } = view;
  // The sandbox may have been removed a moment ago.
  const info = await foundOrNull(sandboxes.get(subject.id));
  if (info === null) return [];
  const tried = restarts === 0 ? "" : `, after ${restarts} ${restarts === 1 ? "restart" : "restarts"} within the hour`;
  const text = `Sandbox ${subject.id} does not respond${tried}: ${conditionTexts[condition]}. Fix it, or remove it.`;
  const at = since ?? info.createdAt;
  const of = { kind: "sandbox" as const, id: subject.id };
  return [{ of, owner: info.owner, title: info.name ?? subject.id, asks: "unresponsive", text, question: null, seq: Date.parse(at), at }];
}

function questionsOf({ run, owner, name, title, asked: questions, seq, updatedAt }: RunView): InboxItem[] {
  return questions.map(({ question, kind, text }) => ({
    of: { kind: "run", id: run },
    owner,
    title: name ?? title,
    asks: kind,
    text,
    question,
    seq,
    at: updatedAt,
  }));
}

/** A paused job is left out, because an answer would not continue it. */
function ofJob(view: JobView, { kind, asks }: { kind: "workflow" | "merge"; asks: InboxItem["asks"] }): InboxItem[] {
  const { id, owner, title, status, waits, seq, updatedAt } = view;
  const text = waits?.person ?? null;
  return status !== "waiting" || text === null ? [] : [{ of: { kind, id }, owner, title, asks, text, question: null, seq, at: updatedAt }];
}

function ofSpec({ spec, owner, name, title, asks, seq, updatedAt }: SpecSummary): InboxItem[] {
  const thing = { of: { kind: "spec" as const, id: spec }, owner, title: name ?? title };
  return asks === null ? [] : [{ ...thing, asks: "gate", text: asks, question: null, seq, at: updatedAt }];
}

function ofShip({ id, owner, title, status, asks, seq, updatedAt }: ShipView): InboxItem[] {
  if (asks === null || status === "paused") return [];
  const thing = { of: { kind: "ship" as const, id }, owner, title };
  return [{ ...thing, asks: status === "blocked" ? "failure" : "merge", text: asks, question: null, seq, at: updatedAt }];
}
