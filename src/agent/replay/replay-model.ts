import { CaissonError, type ErrorCode, errorCodes } from "../../contract/error/error.ts";
import { sentence } from "../../contract/error/sentence.ts";
import type { AssistantPart } from "../../contract/run/run.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { createPauses } from "../../lib/pauses.ts";
import type { LoopClock } from "../loop-clock.ts";
import type { Model, ModelChunk } from "../model/model.ts";
import type { ReplayTrack } from "./replay-track.ts";

type ModelEnded = Extract<RunEvent, { type: "model.ended" }>;
type ModelFailed = Extract<RunEvent, { type: "model.failed" }>;

/** Answers each call with the recorded answer, summary or failure. */
export function createReplayModel(track: ReplayTrack, options: { name: string; contextTokens: number }): Model {
  let costUsd: number | null = null;
  const pause = createPauses();
  return {
    ...options,
    cost: () => costUsd,
    async *stream(request) {
      // Nothing else in a replay waits, and a station has other work.
      await pause();
      const event = track.cursor.next()?.event;
      // The recorded driver died or was released during this call; the next one repeats it.
      if (event === undefined) throw new CaissonError("cancelled", "the recording has no answer for this driver");
      if (request.from.purpose === "summary") {
        if (event.type !== "context.compacted" || event.data.how !== "model" || event.data.usage === undefined)
          throw new CaissonError("unavailable", "the model gave no summary in the recording");
        costUsd = event.data.costUsd ?? null;
        yield { kind: "text", text: event.data.summary };
        yield { kind: "end", stop: "end", usage: event.data.usage };
        return;
      }
      if (event.type === "model.failed") throw failureOf(event, afterFailure(track));
      if (event.type !== "model.ended") return track.differ("the loop waits for an answer of the model");
      // Asked with the last chunk.
      costUsd = event.data.costUsd;
      yield* answer(event, track);
    },
  };
}

async function* answer({ data: { parts, stop, usage } }: ModelEnded, track: ReplayTrack): AsyncGenerator<ModelChunk> {
  for (const part of parts) yield chunkOf(part);
  if (stop !== "interrupted") return yield { kind: "end", stop, usage };
  track.interrupt();
  throw new CaissonError("cancelled", "the recorded call was interrupted");
}

function chunkOf(part: AssistantPart): ModelChunk {
  if (part.kind === "text") return { kind: "text", text: part.text };
  const provider = part.provider === undefined ? {} : { provider: part.provider };
  if (part.kind === "thought") return { kind: "thought", text: part.text, ...provider };
  const { providerCall, name } = part;
  if (part.badArguments !== undefined) return { kind: "badToolCall", providerCall, name, text: part.badArguments };
  return { kind: "toolCall", providerCall, name, arguments: part.arguments, ...provider };
}

function failureOf({ data: { error, retryInMs } }: ModelFailed, ended: string | null): CaissonError {
  const code = Object.hasOwn(errorCodes, error.code) ? (error.code as ErrorCode) : "internal";
  const begin = `${sentence(error.message)} `;
  // The run's end repeats the error with its hint.
  const hint = ended?.startsWith(begin) ? { hint: ended.slice(begin.length) } : {};
  return new CaissonError(code, error.message, { ...hint, ...(retryInMs === null ? {} : { details: { retryAfterMs: retryInMs } }) });
}

/** Returns the text of the run's end if the failure ended it. */
function afterFailure(track: ReplayTrack): string | null {
  const event = track.cursor.afterNext()?.event;
  return event?.type === "run.ended" ? event.data.text : null;
}

/** Skips the pauses of the recording. A wait that ended otherwise lasts until the loop is interrupted. */
export function createReplayClock(track: ReplayTrack): LoopClock {
  return {
    async pause(_, signal) {
      const event = track.cursor.next()?.event;
      if (event?.type === "model.ended" && event.data.stop === "interrupted") return track.interrupt();
      if (event?.type === "model.requested" || (event?.type === "run.continued" && event.data.by === "retry")) return;
      const over = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => over.reject(new CaissonError("cancelled", "the pause was cancelled")), { once: true });
      if (signal.aborted) return;
      await over.promise;
    },
    after: () => () => {},
  };
}
