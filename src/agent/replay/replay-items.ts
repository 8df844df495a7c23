import type { RunEvent } from "../../contract/run/run-event.ts";

export interface RecordedEvent {
  seq: number;
  event: RunEvent;
  /** A later rewind took it back: only its cost counts. */
  isRewound?: boolean;
}

/**
 * One event of a recording. `own`: the loop appended it, and must append it again. `foreign`: a user, a driver or
 * another part of the station appended it; the replay supplies it. `claim`: another driver began here.
 */
export interface ReplayItem extends RecordedEvent {
  kind: "own" | "foreign" | "claim";
  step: number;
}

const ownTypes: ReadonlySet<string> = new Set([
  "step.started",
  "model.requested",
  "model.ended",
  "model.failed",
  "tool.requested",
  "tool.started",
  "tool.ended",
  "file.changed",
  "todo.changed",
  "context.compacted",
  "loop.noticed",
]);

/** Events of the loop that are only for viewers. They depend on timing, so a replay ignores them. */
const viewTypes: ReadonlySet<string> = new Set(["model.streamed", "tool.streamed", "run.noticed", "mcp.connected", "step.ended"]);
export const isForViewers = ({ type }: { type: string }): boolean => viewTypes.has(type);

/** The beginning of the guardian's questions and pauses. */
const BY_GUARDIAN = "The guardian sees: ";
const EMPTY_ANSWER = "Your last answer was empty.";
export const STOPPED_BY_HOOK = "A hook stopped the run: ";

/** Sorts the events of a recording into those that the loop repeats and those that the replay supplies. */
export function toReplayItems(events: readonly RecordedEvent[]): ReplayItem[] {
  let step = 0;
  const items: ReplayItem[] = [];
  for (const { seq, event, isRewound = false } of events) {
    if (event.type === "step.started" && !isRewound) step = event.data.step;
    items.push({ seq, event, step, isRewound, kind: isRewound ? "foreign" : kindOf(event, items) });
  }
  return withLateEvents(items);
}

function kindOf(event: RunEvent, before: readonly ReplayItem[]): ReplayItem["kind"] {
  if (event.type === "run.claimed") return "claim";
  return ownTypes.has(event.type) || isOwn(event, before) ? "own" : "foreign";
}

function isOwn(event: RunEvent, before: readonly ReplayItem[]): boolean {
  const last = before.at(-1)?.event;
  switch (event.type) {
    case "permission.asked":
      return !event.data.text.startsWith(BY_GUARDIAN);
    case "run.paused":
      return event.data.why !== "user" && !event.data.text.startsWith(BY_GUARDIAN);
    case "run.continued":
      return event.data.by === "answer" || event.data.by === "retry";
    case "message.received":
      return event.data.source === "system" && (last?.type === "loop.noticed" || event.data.text.startsWith(EMPTY_ANSWER));
    case "run.stop_requested":
      return last?.type === "tool.ended" && last.data.outcome === "blocked" && last.data.text.startsWith(STOPPED_BY_HOOK);
    case "run.ended":
      return !isEndedFromOutside(event, before);
    default:
      return false;
  }
}

/** Returns whether the driver ended the run without the loop: its set-up failed, or its session or sandbox was lost. */
function isEndedFromOutside(event: Extract<RunEvent, { type: "run.ended" }>, before: readonly ReplayItem[]): boolean {
  const { reason, text } = event.data;
  if (reason === "cancelled") return text.startsWith("Its session ");
  if (reason !== "error") return false;
  const last = before.findLast(({ kind, event: { type } }) => kind !== "foreign" || type === "run.created")?.event;
  return last === undefined || ["run.created", "run.claimed", "tool.requested", "tool.started", "model.requested"].includes(last.type);
}

/**
 * Moves events of others behind what the loop had decided without them. Such an event came while the loop appended, so
 * it is in the log before an event that does not take it into account.
 */
function withLateEvents(items: readonly ReplayItem[]): ReplayItem[] {
  const result = [...items];
  for (let at = result.length - 1; at >= 0; at--) {
    const item = result[at] as ReplayItem;
    if (item.kind !== "foreign" || item.isRewound) continue;
    const to = placeOf(item.event, result, at);
    if (to === at) continue;
    result.splice(at, 1);
    result.splice(to, 0, item);
  }
  return result;
}

/** Returns the index in the list without the item. */
function placeOf({ type, data }: RunEvent, items: readonly ReplayItem[], at: number): number {
  if (type === "message.received") return placeOfMessage(data.message, items, at);
  const holds = type === "run.stop_requested" || type === "run.paused" || type === "permission.asked";
  if (!holds) return at;
  let place = at;
  for (let next = at + 1; next < items.length; next++) {
    const { kind, event } = items[next] as ReplayItem;
    if (kind === "claim" || changesHold(event) || (kind === "own" && followsHold(event))) break;
    if (kind === "own") place = next;
  }
  return place;
}

/** A model request lists the messages that it is the first to contain. */
function placeOfMessage(message: string, items: readonly ReplayItem[], at: number): number {
  for (let next = at + 1; next < items.length; next++) {
    const { kind, event } = items[next] as ReplayItem;
    if (kind === "claim") return at;
    if (kind === "foreign" || event.type === "step.started") continue;
    return event.type === "model.requested" && !event.data.messages.includes(message) ? next : at;
  }
  return at;
}

const changesHold = ({ type }: RunEvent) => type === "run.continued" || type === "run.reopened" || type === "permission.answered";

/** Returns whether the event shows that the loop knew of the stop or pause. */
function followsHold(event: RunEvent): boolean {
  if (event.type === "run.ended") return true;
  if (event.type === "model.ended") return event.data.stop === "interrupted";
  return event.type === "tool.ended" && event.data.outcome === "interrupted";
}
