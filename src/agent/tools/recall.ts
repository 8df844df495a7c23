import { z } from "zod";
import type { RunEvent } from "../../contract/run-event.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Tool } from "../tool.ts";
import { BASH_CHARACTERS_MAX, cutMiddle, RECALL_MATCHES_MAX } from "./limits.ts";

const AROUND_CHARACTERS = 150;

const Arguments = z.strictObject({
  query: z.string().min(1).max(500).optional().describe("Words that must all occur, in any case."),
  call: z
    .string()
    .regex(/^[mt]\d+(\.\d+)?$/)
    .optional()
    .describe("Shows one call in full, by the name a search gave, such as t12.1."),
});

/** Looks into the run's log, which keeps what compaction took out of the conversation. */
export const recallTool: Tool<z.infer<typeof Arguments>> = {
  name: "recall",
  description: `Searches everything that was said and done in this run, also what is no longer in the conversation because it was summarised: at most ${RECALL_MATCHES_MAX} matches, newest first. With call it shows one of them in full, at most ${BASH_CHARACTERS_MAX} characters.`,
  parameters: Arguments,
  parallel: true,
  repeatable: true,
  subject: () => "recall",
  async run(args, context) {
    if ((args.query === undefined) === (args.call === undefined)) return { outcome: "error", text: "Give either query or call." };
    const words = (args.query ?? "")
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    const found: { call: string; text: string }[] = [];
    for await (const { event } of context.history.events()) {
      for (const piece of piecesOf(event)) {
        if (piece.call === context.call) continue;
        if (args.call === undefined ? matchesAll(piece.text, words) : piece.call === args.call) found.push(piece);
      }
    }
    if (found.length === 0) return { outcome: "ok", text: "Nothing of that is in the history." };
    if (args.call !== undefined) {
      const { text } = cutMiddle(found.map((piece) => piece.text).join("\n\n"), { charactersMax: BASH_CHARACTERS_MAX });
      return { outcome: "ok", text };
    }
    const shown = found.reverse().slice(0, RECALL_MATCHES_MAX);
    const list = shown.map((piece) => `${piece.call}: ${around(piece.text, words[0] ?? "")}`).join("\n");
    const more = found.length > shown.length ? `\n\n[${found.length - shown.length} more; use more words]` : "";
    return { outcome: "ok", text: `${list}${more}` };
  },
};

/** What an event has to say, under the name of its call. */
function piecesOf(event: RunEvent): { call: string; text: string }[] {
  switch (event.type) {
    case "run.created":
      return [{ call: "task", text: event.data.task }];
    case "model.ended":
      return event.data.parts.flatMap((part) =>
        part.kind === "text" && part.text.trim() !== "" ? [{ call: event.data.call, text: part.text }] : [],
      );
    case "tool.requested":
      return [{ call: event.data.call, text: `${event.data.name} ${JSON.stringify(event.data.arguments)}` }];
    case "tool.ended":
      return [{ call: event.data.call, text: `→ ${event.data.text}` }];
    case "message.received":
      return [{ call: event.data.source, text: event.data.text }];
    // What the run's owner and the machine did, and pieces of what is there whole.
    case "run.queued":
    case "run.prioritized":
    case "run.labelled":
    case "run.noticed":
    case "run.claimed":
    case "run.sandboxed":
    case "run.paused":
    case "run.continued":
    case "run.stop_requested":
    case "run.ended":
    case "run.reopened":
    case "step.started":
    case "model.requested":
    case "model.streamed":
    case "model.failed":
    case "tool.started":
    case "tool.streamed":
    case "file.changed":
    case "permission.asked":
    case "permission.answered":
    case "context.compacted":
    case "loop.noticed":
    case "todo.changed":
    case "network.denied":
    case "network.failed":
    case "network.closed":
    case "network.changed":
    case "secret.used":
    case "secret.withheld":
    case "secret.revoked":
    case "gateway.called":
    case "port.opened":
    case "port.closed":
    case "health.changed":
    case "health.restart_started":
    case "health.restart_ended":
    case "health.escalated":
    case "sandbox.reported":
    case "artifact.stored":
    case "guardian.decided":
    case "guardian.settled":
    case "guardian.judged":
      return [];
    default:
      return unreachable(event);
  }
}

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
