import { CaissonError } from "../contract/error/error.ts";
import type { Usage } from "../contract/model/usage.ts";
import { compactionStep } from "./decide-step.ts";
import type { Journal } from "./journal.ts";
import type { Model, ModelMessage } from "./model/model.ts";

const SUMMARY_CHARACTERS_MAX = 20_000;
const LINE_CHARACTERS_MAX = 300;
/** Characters of each tool result that the summarizing model sees. */
const RESULT_CHARACTERS_MAX = 4000;
/** Characters of the transcript per token of the context window. Two is a cautious estimate. */
const TRANSCRIPT_CHARACTERS_PER_TOKEN = 2;

const request = `Summarize the work above so that it can continue without this transcript. Keep: findings (files, functions, commands and
their results that matter), what was changed and why, decisions, remaining work, and every instruction given along the way. Leave out what no longer matters.
Answer with the summary only.`;

interface Options {
  journal: Journal;
  model: Model;
  signal: AbortSignal;
}

/**
 * Replaces everything but the protected tail with a summary; the log keeps all of it. Lists the calls instead if the
 * model fails or is interrupted.
 */
export async function compact(options: Options): Promise<void> {
  const { journal, model } = options;
  const { conversation } = journal.state;
  const beforeStep = compactionStep(journal.state, model.contextTokens);
  const old = conversation.entries().filter((entry) => entry.step < beforeStep);
  const messages = old.map((entry) => entry.message);
  const tokensBefore = conversation.estimatedTokens();
  const modelSummary = await summarise(options, messages);
  const text = modelSummary?.text ?? withEarlier(conversation.summary(), transcript(messages, LINE_CHARACTERS_MAX));
  const summary = text.length <= SUMMARY_CHARACTERS_MAX ? text : `…\n${text.slice(-SUMMARY_CHARACTERS_MAX)}`;
  const oldTokens = old.reduce((sum, entry) => sum + entry.tokens, 0) + Math.ceil((conversation.summary()?.length ?? 0) / 4);
  const tokensAfter = Math.max(0, tokensBefore - oldTokens) + Math.ceil(summary.length / 4);
  const spent = modelSummary ? { usage: modelSummary.usage, costUsd: model.cost(modelSummary.usage) } : {};
  const how = modelSummary ? ("model" as const) : ("cut" as const);
  await journal.append([{ type: "context.compacted", data: { beforeStep, summary, tokensBefore, tokensAfter, how, ...spent } }]);
}

/**
 * Shows the old messages to the model as a shortened transcript. The messages themselves would be too long again, and
 * providers reject tool messages without the tools' schemas. Returns null if the model returns no summary.
 */
async function summarise(options: Options, messages: readonly ModelMessage[]): Promise<{ text: string; usage: Usage } | null> {
  const { state } = options.journal;
  const [system, task] = state.conversation.messages();
  if (system?.role !== "system" || task?.role !== "user") return null;
  const past = shorten(withEarlier(state.conversation.summary(), transcript(messages, RESULT_CHARACTERS_MAX)), options.model.contextTokens);
  const from = {
    agent: state.definition.name,
    position: state.position,
    purpose: "summary" as const,
    estimatedTokens: Math.ceil(past.length / 4),
  };
  const ask: ModelMessage = { role: "user", text: `The task:\n${task.text}\n\nWhat was done so far:\n${past}\n\n${request}` };
  let text = "";
  let usage: Usage | null = null;
  try {
    for await (const chunk of options.model.stream({ from, messages: [system, ask], tools: [] }, { signal: options.signal })) {
      if (chunk.kind === "text") text += chunk.text;
      if (chunk.kind === "end") usage = chunk.usage;
    }
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    return null;
  }
  return text.trim() === "" || usage === null ? null : { text: text.trim().slice(0, SUMMARY_CHARACTERS_MAX), usage };
}

/** Puts an earlier summary before the text, since it covers the steps before it. */
function withEarlier(summary: string | null, text: string): string {
  return summary === null ? text : `Before that:\n${summary}\n\n${text}`;
}

function shorten(text: string, contextTokens: number): string {
  const charactersMax = Math.max(2000, contextTokens * TRANSCRIPT_CHARACTERS_PER_TOKEN);
  if (text.length <= charactersMax) return text;
  const half = Math.floor(charactersMax / 2);
  return `${text.slice(0, half)}\n[…]\n${text.slice(-half)}`.toWellFormed();
}

function transcript(messages: readonly ModelMessage[], charactersMax: number): string {
  const cut = (text: string) => (text.length <= charactersMax ? text : `${text.slice(0, charactersMax).toWellFormed()}…`);
  const lines = messages.flatMap((message): string[] => {
    if (message.role === "user") return [`Told: ${cut(message.text)}`];
    if (message.role === "assistant") {
      return message.parts.flatMap((part) => {
        if (part.kind === "text" && part.text.trim() !== "") return [`Said: ${cut(part.text.trim())}`];
        return part.kind === "toolCall" ? [`Called ${part.name} ${cut(JSON.stringify(part.arguments))}`] : [];
      });
    }
    return message.role === "tool" ? message.results.map((result) => `→ ${cut(result.text)}`) : [];
  });
  return lines.join("\n");
}
