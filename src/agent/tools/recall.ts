import { z } from "zod";
import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { runEvents } from "../../contract/run/run-event.ts";
import type { Tool } from "../tool.ts";
import { BASH_CHARACTERS_MAX, cutMiddle, RECALL_MATCHES_MAX } from "./limits.ts";

const AROUND_CHARACTERS = 150;

const Arguments = z.strictObject({
  query: z.string().min(1).max(500).optional().describe("Words that must all occur. Case is ignored."),
  call: z
    .string()
    .regex(/^[mt]\d+(\.\d+)?$/)
    .optional()
    .describe("Shows one call in full, by its name in the search results, such as t12.1."),
});

/** Searches the run log, which still has what compaction removed from the conversation. */
export const recallTool: Tool<z.infer<typeof Arguments>> = {
  name: "recall",
  description: `Searches everything said and done in this run, including what left the conversation when it was summarized: at most ${RECALL_MATCHES_MAX} matches, newest first. With call, shows one of them in full, at most ${BASH_CHARACTERS_MAX} characters.`,
  parameters: Arguments,
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: () => "recall",
  async run(args, context) {
    if ((args.query === undefined) === (args.call === undefined)) return { outcome: "error", text: "Give either query or call." };
    const words = (args.query ?? "")
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    const found: Piece[] = [];
    for await (const { event } of context.history.events()) {
      for (const piece of handle(pieces, event, undefined) ?? []) {
        if (piece.call === context.call) continue;
        if (args.call === undefined ? matchesAll(piece.text, words) : piece.call === args.call) found.push(piece);
      }
    }
    if (found.length === 0) return { outcome: "ok", text: "No matches in the history." };
    if (args.call !== undefined) {
      const { text } = cutMiddle(found.map((piece) => piece.text).join("\n\n"), { charactersMax: BASH_CHARACTERS_MAX });
      return { outcome: "ok", text };
    }
    const shownMatches = found.reverse().slice(0, RECALL_MATCHES_MAX);
    const list = shownMatches.map((piece) => `${piece.call}: ${around(piece.text, words[0] ?? "")}`).join("\n");
    const more = found.length > shownMatches.length ? `\n\n[${found.length - shownMatches.length} more; use more words]` : "";
    return { outcome: "ok", text: `${list}${more}` };
  },
};

interface Piece {
  call: string;
  text: string;
}

/** The text of each kind of event, with the name of its call. Machine events and streamed pieces are left out. */
const pieces: Handlers<EventFor<typeof runEvents, "recall">, void, Piece[]> = {
  "run.created": ({ data }) => [{ call: "task", text: data.task }],
  "model.ended": ({ data: { call, parts } }) =>
    parts.flatMap((part) => (part.kind === "text" && part.text.trim() !== "" ? [{ call, text: part.text }] : [])),
  "tool.requested": ({ data }) => [{ call: data.call, text: `${data.name} ${JSON.stringify(data.arguments)}` }],
  "tool.ended": ({ data }) => [{ call: data.call, text: `→ ${data.text}` }],
  "message.received": ({ data }) => [{ call: data.source, text: data.text }],
};

function matchesAll(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

function around(text: string, word: string): string {
  const at = Math.max(0, text.toLowerCase().indexOf(word));
  const from = Math.max(0, at - AROUND_CHARACTERS);
  const piece = text.slice(from, at + word.length + AROUND_CHARACTERS).replaceAll(/\s+/g, " ");
  return `${from > 0 ? "…" : ""}${piece.toWellFormed()}${from + piece.length < text.length ? "…" : ""}`;
}
