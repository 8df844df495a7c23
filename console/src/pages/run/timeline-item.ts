import type { FinishReason } from "../../../../src/contract/outcome.ts";
import type { MessageMode, MessageSource, TodoList, ToolOutcome } from "../../../../src/contract/run/run.ts";

/** The common fields of all timeline items. `seq` is the number of the item's first event. */
interface ItemBase {
  seq: number;
  at: string;
  /** Hidden unless the user shows all events. */
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
  /** The output so far, then the result for the model. */
  output: string;
  /** The number of characters cut from the beginning. */
  cutCharacters: number;
  durationMs: number | null;
  files: readonly FileChange[];
  /** The sub-run that does the task, as soon as it is known. */
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

/** Returns all text of an item, for the search in a run. */
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
