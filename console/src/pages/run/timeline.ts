import type { TodoList } from "../../../../src/contract/run.ts";
import type { RunEvent } from "../../../../src/contract/run-event.ts";
import type { FileChange, TimelineItem, ToolItem } from "./timeline-item.ts";
import { noteOf } from "./timeline-note.ts";

/** An event with its number in the run's log. */
export type NumberedEvent = RunEvent & { seq: number };

/** What was spent until an event. */
export interface Spent {
  atMs: number;
  tokens: number;
  costUsd: number;
}

/**
 * A run's events as they are shown: a fold that goes on for as long as events come. Items are replaced and never
 * changed, so that what is drawn of one stays until there is another; the lists are the same ones throughout.
 */
export interface Timeline {
  readonly items: TimelineItem[];
  /** The index of the item that tells of an event, by the event's number. */
  readonly itemOfSeq: number[];
  readonly steps: { step: number; seq: number; item: number }[];
  readonly spent: Spent[];
  /** Of every file, how it came to be as it is. */
  readonly files: Map<string, FileChange & { atStep: number }>;
  todo: TodoList;
  lastSeq: number;
  readonly open: Map<string, number>;
}

/** Kept of a tool's output for showing; all of it is in the log. */
const OUTPUT_CHARACTERS_MAX = 60_000;
const SPENT_MAX = 20_000;

export function emptyTimeline(): Timeline {
  return { items: [], itemOfSeq: [], steps: [], spent: [], files: new Map(), todo: [], lastSeq: 0, open: new Map() };
}

/** Adds one event, in place. One that is there already, or is out of turn, is left out: each is shown once. */
export function foldEvent(timeline: Timeline, event: NumberedEvent): void {
  if (event.seq <= timeline.lastSeq) return;
  timeline.lastSeq = event.seq;
  const item = foldKnown(timeline, event) ?? foldNote(timeline, event);
  if (item !== null) timeline.itemOfSeq[event.seq] = item;
}

/** The index of the item that an event is told by, or of the one before it. */
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

function foldKnown(timeline: Timeline, event: NumberedEvent): number | null {
  const { seq, at } = event;
  switch (event.type) {
    case "step.started": {
      const item = add(timeline, { kind: "step", seq, at, step: event.data.step });
      timeline.steps.push({ step: event.data.step, seq, item });
      return item;
    }
    case "model.requested":
      for (const message of event.data.messages) markSeen(timeline, message, event.data.step);
      return null;
    case "model.streamed":
      return stream(timeline, event);
    case "model.ended":
      return endModel(timeline, event);
    case "context.compacted": {
      const { beforeStep, summary, tokensBefore, tokensAfter, usage, costUsd } = event.data;
      if (usage !== undefined) spend(timeline, { at, usage, costUsd: costUsd ?? 0 });
      return add(timeline, { kind: "compacted", seq, at, beforeStep, summary, tokensBefore, tokensAfter });
    }
    case "message.received":
      return addOpen(timeline, event.data.message, { kind: "message", seq, at, ...event.data, seenAtStep: null });
    case "todo.changed":
      timeline.todo = event.data.todo;
      return add(timeline, { kind: "todo", seq, at, todo: event.data.todo });
    case "run.ended": {
      const { reason, text, steps } = event.data;
      return add(timeline, { kind: "ended", seq, at, reason, text, steps });
    }
    case "gateway.called":
      spend(timeline, { at, usage: event.data.usage, costUsd: event.data.costUsd });
      return null;
    default:
      return foldTool(timeline, event) ?? foldQuestion(timeline, event) ?? foldTrouble(timeline, event);
  }
}

function foldTool(timeline: Timeline, event: NumberedEvent): number | null {
  const { seq, at } = event;
  switch (event.type) {
    case "tool.requested": {
      const { call, name, arguments: given } = event.data;
      const item: ToolItem = {
        ...{ kind: "tool", seq, at, call, name, arguments: given, state: "asked", output: "", cutCharacters: 0 },
        ...{ durationMs: null, files: [], subRun: null },
      };
      return addOpen(timeline, call, item);
    }
    case "tool.started":
      return changeTool(timeline, event.data.call, () => ({ state: "running" }));
    case "tool.streamed":
      return changeTool(timeline, event.data.call, (tool) => {
        const output = tool.output + event.data.text;
        const cut = Math.max(0, output.length - OUTPUT_CHARACTERS_MAX);
        return { output: output.slice(cut), cutCharacters: tool.cutCharacters + cut };
      });
    case "tool.ended": {
      const { call, outcome, text, durationMs, details } = event.data;
      const told = (typeof details === "object" && details !== null ? details : {}) as {
        run?: unknown;
        usage?: Usage;
        costUsd?: number | null;
      };
      if (told.usage !== undefined) spend(timeline, { at, usage: told.usage, costUsd: told.costUsd ?? 0 });
      const output = text.slice(0, OUTPUT_CHARACTERS_MAX);
      const subRun = typeof told.run === "string" ? told.run : null;
      return changeTool(timeline, call, () => ({ state: outcome, output, cutCharacters: 0, durationMs, subRun }));
    }
    case "file.changed": {
      const { call, ...file } = event.data;
      timeline.files.set(file.path, { ...file, atStep: timeline.steps.at(-1)?.step ?? 0 });
      return changeTool(timeline, call, ({ files }) => ({ files: [...files, file] }));
    }
    default:
      return null;
  }
}

function foldQuestion(timeline: Timeline, event: NumberedEvent): number | null {
  if (event.type === "permission.asked") {
    const { question, kind: about, text, pattern } = event.data;
    return addOpen(timeline, question, { kind: "question", seq: event.seq, at: event.at, question, about, text, pattern, answer: null });
  }
  if (event.type !== "permission.answered") return null;
  const { question, answer, by, text = null } = event.data;
  // The first answer counts.
  return change(timeline, question, (item) =>
    item.kind === "question" && item.answer === null ? { ...item, answer: { answer, by, text } } : item,
  );
}

function foldTrouble(timeline: Timeline, event: NumberedEvent): number | null {
  const { seq, at } = event;
  if (event.type === "network.denied") {
    const { host, port, reason, text, count } = event.data;
    const index = timeline.items.length - 1;
    const last = timeline.items[index];
    if (last?.kind === "denied" && last.host === host && last.port === port) {
      timeline.items[index] = { ...last, count: last.count + count };
      return index;
    }
    return add(timeline, { kind: "denied", seq, at, host, port, reason, text, count });
  }
  if (event.type === "health.restart_started") {
    const { incident, subject, why } = event.data;
    return addOpen(timeline, incident, { kind: "incident", seq, at, incident, subject: subject.kind, why, outcome: null, text: null });
  }
  if (event.type !== "health.restart_ended") return null;
  const { incident, outcome, text } = event.data;
  return change(timeline, incident, (item) => ({ ...item, outcome, text }) as TimelineItem);
}

/** What was streamed of a call is one item of words and one of thoughts, until the call has ended. */
function stream(timeline: Timeline, { seq, at, data }: Extract<NumberedEvent, { type: "model.streamed" }>): number {
  const kind = data.kind === "text" ? "words" : "thought";
  const key = `${data.call} ${kind}`;
  const known = change(timeline, key, (item) => (item.kind === kind ? { ...item, text: item.text + data.text } : item));
  return known ?? addOpen(timeline, key, { kind, seq, at, call: data.call, text: data.text, isStreaming: true });
}

/** What came in the end takes the place of what was streamed; the parts that are tools have events of their own. */
function endModel(timeline: Timeline, { seq, at, data }: Extract<NumberedEvent, { type: "model.ended" }>): number | null {
  spend(timeline, { at, usage: data.usage, costUsd: data.costUsd });
  let last: number | null = null;
  for (const kind of ["thought", "words"] as const) {
    const parts = data.parts.flatMap((part) =>
      (part.kind === "text" && kind === "words") || (part.kind === "thought" && kind === "thought") ? [part.text] : [],
    );
    const text = parts.join("\n\n");
    const key = `${data.call} ${kind}`;
    const shown = change(timeline, key, (item) =>
      item.kind === kind ? { ...item, text: text === "" ? item.text : text, isStreaming: false } : item,
    );
    timeline.open.delete(key);
    if (shown !== null) last = shown;
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

/** Null where nothing of that name was begun. */
function change({ items, open }: Timeline, key: string, changed: (item: TimelineItem) => TimelineItem): number | null {
  const index = open.get(key);
  const item = index === undefined ? undefined : items[index];
  if (index === undefined || item === undefined) return null;
  items[index] = changed(item);
  return index;
}
