import { CaissonError } from "../contract/error.ts";
import { compactionStep } from "./decide.ts";
import type { Journal } from "./journal.ts";
import type { Model, ModelMessage } from "./model/model.ts";

const SUMMARY_CHARACTERS_MAX = 20_000;
const LINE_CHARACTERS_MAX = 300;

const request = `Summarise the conversation so far for yourself, so that the work can go on without it. Keep: what was found out (files, functions, commands and
their results that matter), what was changed and why, what was decided, what is still to be done, and every instruction given on the way. Leave out what no longer matters.
Answer with the summary alone.`;

/** Replaces everything but the protected tail by a summary; the log keeps it all. Without a model's help (it failed, it is interrupted) the calls are listed instead. */
export async function compact(options: { journal: Journal; model: Model; signal: AbortSignal }): Promise<void> {
  const { journal, model } = options;
  const { state } = journal;
  const beforeStep = compactionStep(state, model.contextTokens);
  const old = state.conversation.entries().filter((entry) => entry.step < beforeStep);
  const tokensBefore = state.conversation.estimatedTokens();
  const summary = await summarise(
    options,
    old.map((entry) => entry.message),
  );
  const text = summary ?? listOfCalls(old.map((entry) => entry.message));
  const oldTokens = old.reduce((sum, entry) => sum + entry.tokens, 0);
  const tokensAfter = Math.max(0, tokensBefore - oldTokens) + Math.ceil(text.length / 4);
  await journal.append([
    { type: "context.compacted", data: { beforeStep, summary: text, tokensBefore, tokensAfter, how: summary === null ? "cut" : "model" } },
  ]);
}

async function summarise(
  options: { journal: Journal; model: Model; signal: AbortSignal },
  messages: ModelMessage[],
): Promise<string | null> {
  const { state } = options.journal;
  const head = state.conversation.messages().slice(0, 2);
  let text = "";
  try {
    const stream = options.model.stream(
      {
        from: {
          agent: state.definition.name,
          position: state.position,
          purpose: "summary",
          estimatedTokens: state.conversation.estimatedTokens(),
        },
        messages: [...head, ...messages, { role: "user", text: request }],
        tools: [],
      },
      { signal: options.signal },
    );
    for await (const chunk of stream) if (chunk.kind === "text") text += chunk.text;
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    return null;
  }
  return text.trim() === "" ? null : text.slice(0, SUMMARY_CHARACTERS_MAX);
}

function listOfCalls(messages: readonly ModelMessage[]): string {
  const lines = messages.flatMap((message): string[] => {
    if (message.role === "user") return [`Told: ${message.text.slice(0, LINE_CHARACTERS_MAX)}`];
    if (message.role === "assistant") {
      return message.parts.flatMap((part) => {
        if (part.kind === "text" && part.text.trim() !== "") return [`Said: ${part.text.trim().slice(0, LINE_CHARACTERS_MAX)}`];
        return part.kind === "toolCall" ? [`Called ${part.name} ${JSON.stringify(part.arguments).slice(0, LINE_CHARACTERS_MAX)}`] : [];
      });
    }
    return message.role === "tool" ? message.results.map((result) => `→ ${result.text.slice(0, LINE_CHARACTERS_MAX)}`) : [];
  });
  const text = lines.join("\n");
  return text.length <= SUMMARY_CHARACTERS_MAX ? text : `…\n${text.slice(-SUMMARY_CHARACTERS_MAX)}`;
}
