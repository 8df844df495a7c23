import type { FinishReason, MessageMode, MessageSource, TodoList, ToolOutcome } from "../../../../src/contract/run.ts";

/** What an item of a run's timeline has in common. `seq` is the number of the event that it began with. */
interface ItemBase {
  seq: number;
  at: string;
  /** Of interest only to those who look for it: hidden unless asked for. */
  isQuiet?: boolean;
}

export interface FileChange {
  path: string;
  kind: "added" | "modified" | "removed";
  linesAdded: number | null;
  linesRemoved: number | null;
}

export interface ToolItem extends ItemBase {
  kind: "tool";
  call: string;
  name: string;
  arguments: unknown;
  state: "asked" | "running" | ToolOutcome;
  /** What it wrote so far, then what the model was told. */
  output: string;
  /** Characters of the beginning that were let go. */
  cutCharacters: number;
  durationMs: number | null;
  files: readonly FileChange[];
  /** The run that an agent was handed the task in, once that is known. */
  subRun: string | null;
}

export interface QuestionItem extends ItemBase {
  kind: "question";
  question: string;
  about: "tool" | "budget" | "stuck";
  text: string;
  pattern: string | null;
  answer: { answer: "allow" | "always" | "deny"; by: string; text: string | null } | null;
}

export type TimelineItem =
  | (ItemBase & { kind: "words" | "thought"; call: string; text: string; isStreaming: boolean })
  | ToolItem
  | QuestionItem
  | (ItemBase & { kind: "step"; step: number })
  | (ItemBase & { kind: "message"; message: string; source: MessageSource; mode: MessageMode; text: string; seenAtStep: number | null })
  | (ItemBase & { kind: "denied"; host: string; port: number; reason: string; text: string; count: number })
  | (ItemBase & { kind: "compacted"; beforeStep: number; summary: string; tokensBefore: number; tokensAfter: number })
  | (ItemBase & { kind: "todo"; todo: TodoList })
  | (ItemBase & { kind: "incident"; incident: string; subject: string; why: string; outcome: string | null; text: string | null })
  | (ItemBase & { kind: "ended"; reason: FinishReason; text: string; steps: number })
  | (ItemBase & { kind: "note"; tone: "plain" | "good" | "warn" | "bad"; title: string; text: string | null });

export type NoteItem = Extract<TimelineItem, { kind: "note" }>;

/** All words of an item, for the search inside a run. */
export function textOf(item: TimelineItem): string {
  switch (item.kind) {
    case "tool":
      return [item.name, JSON.stringify(item.arguments), item.output, ...item.files.map(({ path }) => path)].join("\n");
    case "question":
      return `${item.text}\n${item.answer?.text ?? ""}`;
    case "denied":
      return `${item.host}:${item.port} ${item.text}`;
    case "compacted":
      return item.summary;
    case "todo":
      return item.todo.map(({ text }) => text).join("\n");
    case "incident":
      return `${item.why}\n${item.text ?? ""}`;
    case "note":
      return `${item.title}\n${item.text ?? ""}`;
    case "step":
      return `step ${item.step}`;
    default:
      return item.text;
  }
}
