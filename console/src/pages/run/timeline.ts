import type { EventFor } from "../../../../src/contract/event/event-family.ts";
import { type Handlers, handle } from "../../../../src/contract/event/handlers.ts";
import type { TodoList } from "../../../../src/contract/run/run.ts";
import type { RunEvent, runEvents } from "../../../../src/contract/run/run-event.ts";
import type { FileChange, TimelineItem, ToolItem } from "./timeline-item.ts";
import { noteOf } from "./timeline-note.ts";

/** An event with its number in the run's log. */
export type NumberedEvent = RunEvent & { seq: number };

/** The spending up to an event. */
export interface Spent {
  atMs: number;
  tokens: number;
  costUsd: number;
}

/**
 * A run's events as shown: a fold that grows as events arrive. Items are replaced and never changed, so that a drawn
 * item stays valid until its replacement; the lists are mutated in place.
 */
export interface Timeline {
  readonly items: TimelineItem[];
  /** The index of the item that shows an event, by event number. */
  readonly itemOfSeq: number[];
  readonly steps: { step: number; seq: number; item: number }[];
  readonly spent: Spent[];
  /** The last change of each file. */
  readonly files: Map<string, FileChange & { atStep: number }>;
  todo: TodoList;
  lastSeq: number;
  readonly open: Map<string, number>;
}

/** The most characters of a tool's output that we keep for display; the log has all of it. */
const OUTPUT_CHARACTERS_MAX = 60_000;
const SPENT_MAX = 20_000;

export function emptyTimeline(): Timeline {
  return { items: [], itemOfSeq: [], steps: [], spent: [], files: new Map(), todo: [], lastSeq: 0, open: new Map() };
}

/** Adds one event, in place. Ignores duplicates and events out of order, so that each is shown once. */
export function foldEvent(timeline: Timeline, event: NumberedEvent): void {
  if (event.seq <= timeline.lastSeq) return;
  timeline.lastSeq = event.seq;
  const item = handle<EventOf<ItemType>, Timeline, number | null>(items, event, timeline) ?? foldNote(timeline, event);
  if (item !== null) timeline.itemOfSeq[event.seq] = item;
}

/** Returns the index of the item that shows an event, or the event before it. */
export function indexOfSeq({ itemOfSeq }: Timeline, seq: number): number | null {
  for (let at = Math.min(seq, itemOfSeq.length - 1); at >= 0; at -= 1) {
    const index = itemOfSeq[at];
    if (index !== undefined) return index;
  }
  return null;
}

function foldNote(timeline: Timeline, event: NumberedEvent): number | null {
  const note = noteOf(event);
  return note === null ? null : add(timeline, { kind: "note", seq: event.seq, at: event.at, ...note });
}

type EventOf<Type extends RunEvent["type"]> = Extract<NumberedEvent, { type: Type }>;

/** Events that add or change an item. All others that concern the console are notes. */
export type ItemType = keyof typeof items;

const items = {
  "step.started": ({ seq, at, data: { step } }, timeline) => {
    const item = add(timeline, { kind: "step", seq, at, step });
    timeline.steps.push({ step, seq, item });
    return item;
  },
  "model.requested": ({ data: { messages, step } }, timeline) => {
    for (const message of messages) markSeen(timeline, message, step);
    return null;
  },
  "model.streamed": stream,
  "model.ended": endModel,
  "context.compacted": ({ seq, at, data: { beforeStep, summary, tokensBefore, tokensAfter, usage, costUsd = 0 } }, timeline) => {
    if (usage !== undefined) spend(timeline, { at, usage, costUsd });
    return add(timeline, { kind: "compacted", seq, at, beforeStep, summary, tokensBefore, tokensAfter });
  },
  "message.received": ({ seq, at, data }, timeline) =>
    addOpen(timeline, data.message, { kind: "message", seq, at, ...data, seenAtStep: null }),
  "todo.changed": ({ seq, at, data: { todo } }, timeline) => {
    timeline.todo = todo;
    return add(timeline, { kind: "todo", seq, at, todo });
  },
  "run.ended": ({ seq, at, data: { reason, text, steps } }, timeline) => add(timeline, { kind: "ended", seq, at, reason, text, steps }),
  "gateway.called": ({ at, data: { usage, costUsd } }, timeline) => {
    spend(timeline, { at, usage, costUsd });
    return null;
  },
  "tool.requested": ({ seq, at, data: { call, name, arguments: args } }, timeline) =>
    addOpen(timeline, call, {
      ...{ kind: "tool", seq, at, call, name, arguments: args, state: "asked", output: "", cutCharacters: 0 },
      ...{ durationMs: null, files: [], subRun: null },
    }),
  "tool.started": ({ data }, timeline) => changeTool(timeline, data.call, () => ({ state: "running" })),
  "tool.streamed": ({ data: { call, text } }, timeline) =>
    changeTool(timeline, call, (tool) => {
      const output = tool.output + text;
      const cut = Math.max(0, output.length - OUTPUT_CHARACTERS_MAX);
      return { output: output.slice(cut), cutCharacters: tool.cutCharacters + cut };
    }),
  "tool.ended": ({ at, data: { call, outcome, text, durationMs, details } }, timeline) => {
    const report = (typeof details === "object" && details !== null ? details : {}) as ToldByTool;
    if (report.usage !== undefined) spend(timeline, { at, usage: report.usage, costUsd: report.costUsd ?? 0 });
    const output = text.slice(0, OUTPUT_CHARACTERS_MAX);
    const subRun = typeof report.run === "string" ? report.run : null;
    return changeTool(timeline, call, () => ({ state: outcome, output, cutCharacters: 0, durationMs, subRun }));
  },
  "file.changed": ({ data: { call, ...file } }, timeline) => {
    timeline.files.set(file.path, { ...file, atStep: timeline.steps.at(-1)?.step ?? 0 });
    return changeTool(timeline, call, ({ files }) => ({ files: [...files, file] }));
  },
  "permission.asked": ({ seq, at, data: { question, kind: about, text, pattern } }, timeline) =>
    addOpen(timeline, question, { kind: "question", seq, at, question, about, text, pattern, answer: null }),
  "permission.answered": ({ data: { question, answer, by, text = null } }, timeline) =>
    // The first answer counts.
    change(timeline, question, (item) =>
      item.kind === "question" && item.answer === null ? { ...item, answer: { answer, by, text } } : item,
    ),
  "network.denied": deny,
  "health.restart_started": ({ seq, at, data: { incident, subject, why } }, timeline) =>
    addOpen(timeline, incident, { kind: "incident", seq, at, incident, subject: subject.kind, why, outcome: null, text: null }),
  "health.restart_ended": ({ data: { incident, outcome, text } }, timeline) =>
    change(timeline, incident, (item) => ({ ...item, outcome, text }) as TimelineItem),
} satisfies Partial<Handlers<EventFor<typeof runEvents, "console"> & { seq: number }, Timeline, number | null>>;

interface ToldByTool {
  run?: unknown;
  usage?: Usage;
  costUsd?: number | null;
}

/** Consecutive denials of one host and port are one item. */
function deny({ seq, at, data: { host, port, reason, text, count } }: EventOf<"network.denied">, timeline: Timeline): number {
  const index = timeline.items.length - 1;
  const last = timeline.items[index];
  if (last?.kind !== "denied" || last.host !== host || last.port !== port) {
    return add(timeline, { kind: "denied", seq, at, host, port, reason, text, count });
  }
  timeline.items[index] = { ...last, count: last.count + count };
  return index;
}

/** Until a call ends, its streamed text is one item, and its streamed thoughts are another. */
function stream({ seq, at, data }: EventOf<"model.streamed">, timeline: Timeline): number {
  const kind = data.kind === "text" ? "words" : "thought";
  const key = `${data.call} ${kind}`;
  const known = change(timeline, key, (item) => (item.kind === kind ? { ...item, text: item.text + data.text } : item));
  return known ?? addOpen(timeline, key, { kind, seq, at, call: data.call, text: data.text, isStreaming: true });
}

/** The final text replaces the streamed text. Tool calls have their own events. */
function endModel({ seq, at, data }: EventOf<"model.ended">, timeline: Timeline): number | null {
  spend(timeline, { at, usage: data.usage, costUsd: data.costUsd });
  let last: number | null = null;
  for (const kind of ["thought", "words"] as const) {
    const parts = data.parts.flatMap((part) =>
      (part.kind === "text" && kind === "words") || (part.kind === "thought" && kind === "thought") ? [part.text] : [],
    );
    const text = parts.join("\n\n");
    const key = `${data.call} ${kind}`;
    const index = change(timeline, key, (item) =>
      item.kind === kind ? { ...item, text: text === "" ? item.text : text, isStreaming: false } : item,
    );
    timeline.open.delete(key);
    if (index !== null) last = index;
    else if (text.trim() !== "") last = add(timeline, { kind, seq, at, call: data.call, text, isStreaming: false });
  }
  return last;
}

interface Usage {
  inputTokens: number;
  outputTokens: number;
}

function spend({ spent }: Timeline, { at, usage, costUsd }: { at: string; usage: Usage; costUsd: number | null }): void {
  const before = spent.at(-1);
  const tokens = (before?.tokens ?? 0) + usage.inputTokens + usage.outputTokens;
  if (spent.length >= SPENT_MAX) spent.shift();
  spent.push({ atMs: Date.parse(at), tokens, costUsd: (before?.costUsd ?? 0) + (costUsd ?? 0) });
}

function markSeen(timeline: Timeline, message: string, step: number): void {
  change(timeline, message, (item) => (item.kind === "message" && item.seenAtStep === null ? { ...item, seenAtStep: step } : item));
}

function add({ items }: Timeline, item: TimelineItem): number {
  items.push(item);
  return items.length - 1;
}

function addOpen(timeline: Timeline, key: string, item: TimelineItem): number {
  const index = add(timeline, item);
  timeline.open.set(key, index);
  return index;
}

function changeTool(timeline: Timeline, call: string, changed: (tool: ToolItem) => Partial<ToolItem>): number | null {
  return change(timeline, call, (item) => (item.kind === "tool" ? { ...item, ...changed(item) } : item));
}

/** Returns null if no item has this key. */
function change({ items, open }: Timeline, key: string, changed: (item: TimelineItem) => TimelineItem): number | null {
  const index = open.get(key);
  const item = index === undefined ? undefined : items[index];
  if (index === undefined || item === undefined) return null;
  items[index] = changed(item);
  return index;
}
