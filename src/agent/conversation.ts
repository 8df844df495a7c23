import { createHash } from "node:crypto";
import type { AssistantPart, MessageSource } from "../contract/run/run.ts";
import type { ModelMessage } from "./model/model.ts";

/** Roughly the characters of a token; used only until the provider's own count is known. */
const CHARACTERS_PER_TOKEN = 4;
/**
 * Longest argument of an old call that survives a compaction without a model; longer ones are cut. The newest messages
 * keep theirs.
 */
const OLD_ARGUMENT_CHARACTERS_MAX = 500;
const NEWEST_MESSAGES = 4;

interface Entry {
  step: number;
  message: ModelMessage;
  tokens: number;
}

/**
 * The messages that the model gets, updated with each event, so a call at step 2,000 costs no more than one at step 10.
 * The system text and the task are stored apart from the rest, so compaction can never lose them.
 */
export interface Conversation {
  begin(options: { system: string; task: string }): void;
  /** Sets the rules, memory and skills, which follow the system text and are never compacted. */
  setRules(text: string): void;
  rules(): string;
  startStep(step: number): void;
  addUser(text: string, source: MessageSource): void;
  addAssistant(parts: readonly AssistantPart[]): void;
  addToolResult(result: { providerCall: string; name: string; text: string; isError: boolean }): void;
  compact(options: { beforeStep: number; summary: string; how: "model" | "cut" }): void;
  messages(): ModelMessage[];
  /** A digest of everything that `messages` returns. */
  digest(): string;
  estimatedTokens(): number;
  /** Returns the first step such that its messages and all later ones fit into this many tokens. */
  stepWithinTokens(tokens: number): number;
  entries(): readonly Readonly<Entry>[];
  /** The summary of the compacted messages, or null before the first compaction. */
  summary(): string | null;
}

export function createConversation(): Conversation {
  let head: ModelMessage[] = [];
  let rules = "";
  let system = "";
  let task = "";
  let summary: string | null = null;
  let entries: Entry[] = [];
  let step = 0;
  let tokens = 0;
  let chain = "";

  const extendChain = (message: ModelMessage) => {
    chain = createHash("sha256").update(chain).update(JSON.stringify(message)).digest("hex");
  };
  const rebuild = () => {
    head = [
      { role: "system", text: rules === "" ? system : `${system}\n\n${rules}` },
      { role: "user", text: task },
    ];
    if (summary !== null)
      head.push({ role: "user", text: `Summary of the work so far, written to save room; the task above still applies:\n\n${summary}` });
    chain = "";
    tokens = 0;
    for (const message of head) tokens += tokensOf(message);
    for (const entry of entries) tokens += entry.tokens;
    for (const message of head) extendChain(message);
    for (const entry of entries) extendChain(entry.message);
  };
  const add = (message: ModelMessage) => {
    const entry = { step, message, tokens: tokensOf(message) };
    entries.push(entry);
    tokens += entry.tokens;
    extendChain(message);
  };

  return {
    begin(options) {
      system = options.system;
      task = options.task;
      rebuild();
    },
    setRules(text) {
      if (text === rules) return;
      rules = text;
      rebuild();
    },
    rules: () => rules,
    startStep(number) {
      step = number;
    },
    addUser(text, source) {
      add({ role: "user", text: source === "user" ? text : `[${source}] ${text}` });
    },
    addAssistant(parts) {
      if (parts.length > 0) add({ role: "assistant", parts });
    },
    addToolResult(result) {
      const last = entries.at(-1);
      if (last?.message.role === "tool" && last.step === step) {
        // Providers require the results of one step in one message.
        const message: ModelMessage = { role: "tool", results: [...last.message.results, result] };
        tokens -= last.tokens;
        last.message = message;
        last.tokens = tokensOf(message);
        tokens += last.tokens;
        extendChain({ role: "tool", results: [result] });
        return;
      }
      add({ role: "tool", results: [result] });
    },
    compact(options) {
      const keptEntries = entries.filter((entry) => entry.step >= options.beforeStep);
      const old = keptEntries.length - NEWEST_MESSAGES;
      entries = options.how === "cut" ? keptEntries.map((entry, at) => (at < old ? cutOldArguments(entry) : entry)) : keptEntries;
      summary = options.summary;
      rebuild();
    },
    messages() {
      return [...head, ...entries.map((entry) => entry.message)];
    },
    digest: () => chain.slice(0, 32),
    estimatedTokens: () => tokens,
    stepWithinTokens(limit) {
      let sum = 0;
      let first = step + 1;
      for (let at = entries.length - 1; at >= 0; at--) {
        const entry = entries[at];
        if (!entry) break;
        sum += entry.tokens;
        if (sum > limit) break;
        first = entry.step;
      }
      // A step is kept or dropped as a whole: providers reject an answer without its tool results.
      const cut = entries.some((entry) => entry.step === first && !fits(entries, first, limit));
      return cut ? first + 1 : first;
    },
    entries: () => entries,
    summary: () => summary,
  };
}

function fits(entries: readonly Entry[], fromStep: number, limit: number): boolean {
  return entries.reduce((sum, entry) => (entry.step >= fromStep ? sum + entry.tokens : sum), 0) <= limit;
}

function tokensOf(message: ModelMessage): number {
  return Math.ceil(JSON.stringify(message).length / CHARACTERS_PER_TOKEN);
}

function cutOldArguments(entry: Entry): Entry {
  if (entry.message.role !== "assistant") return entry;
  const parts = entry.message.parts.map((part) => {
    if (part.kind !== "toolCall" || part.arguments === null || typeof part.arguments !== "object" || Array.isArray(part.arguments))
      return part;
    const cut = Object.entries(part.arguments).map(([key, value]) => [key, cutText(value)] as const);
    return { ...part, arguments: Object.fromEntries(cut) };
  });
  const message: ModelMessage = { role: "assistant", parts };
  return { ...entry, message, tokens: tokensOf(message) };
}

function cutText(value: unknown): AssistantArguments {
  if (typeof value !== "string" || value.length <= OLD_ARGUMENT_CHARACTERS_MAX) return value as AssistantArguments;
  return `${value.slice(0, OLD_ARGUMENT_CHARACTERS_MAX)}… (${value.length} characters, cut to save room)`;
}

type AssistantArguments = Extract<AssistantPart, { kind: "toolCall" }>["arguments"];
