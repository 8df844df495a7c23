import { CaissonError } from "../contract/error/error.ts";
import type { AppendOptions, NewEvent } from "./log.ts";

/** One event's data as JSON text. Tool output is truncated long before this; larger data belongs in a file. */
export const EVENT_BYTES_MAX = 4 * 1024 * 1024;
export const EVENTS_PER_APPEND_MAX = 1000;
export const STREAM_NAME_BYTES_MAX = 200;
export const READ_LIMIT_DEFAULT = 10_000;
export const STREAMS_LIMIT_DEFAULT = 1000;

/** Checks an append against the bounds and returns each event's data as JSON text. Throws `invalid`, `too_large`. */
export function encodeEvents(stream: string, events: readonly NewEvent[]): string[] {
  if (stream.length === 0 || Buffer.byteLength(stream) > STREAM_NAME_BYTES_MAX || /[\0\n]/.test(stream)) {
    throw new CaissonError(
      "invalid",
      `a stream name must be 1 to ${STREAM_NAME_BYTES_MAX} bytes on one line; got ${JSON.stringify(stream.slice(0, 80))}`,
    );
  }
  if (events.length > EVENTS_PER_APPEND_MAX) {
    throw new CaissonError("too_large", `${events.length} events in one append to ${stream}; the maximum is ${EVENTS_PER_APPEND_MAX}`);
  }
  return events.map((event) => {
    const text = JSON.stringify(event.data);
    if (text === undefined) throw new CaissonError("invalid", `the data of ${event.type} for ${stream} is not JSON`);
    if (Buffer.byteLength(text) > EVENT_BYTES_MAX) {
      throw new CaissonError(
        "too_large",
        `${event.type} for ${stream} has ${Buffer.byteLength(text)} bytes of data; the maximum is ${EVENT_BYTES_MAX}`,
      );
    }
    return text;
  });
}

/**
 * Checks an append that begins an heir. Throws `conflict` if the stream has events, `invalid` if the append has none.
 */
export function checkInherits(
  { stream, events, options: { isRetold = false } }: { stream: string; events: readonly NewEvent[]; options: AppendOptions },
  lastSeq: number,
): void {
  if (lastSeq !== 0) throw wrongSequence(stream, { expectedSeq: 0, lastSeq });
  if (events.length === 0 || isRetold)
    throw new CaissonError("invalid", `an append that begins ${stream} with inherited events must add one`);
}

export function wrongSequence(stream: string, options: { expectedSeq: number; lastSeq: number }): CaissonError {
  return new CaissonError("conflict", `${stream} is at ${options.lastSeq}, not at ${options.expectedSeq}: another writer appended`, {
    details: { lastSeq: options.lastSeq },
  });
}

export function fencedOut(stream: string, options: { epoch: number; current: number }): CaissonError {
  return new CaissonError("superseded", `another process took ${stream} over (epoch ${options.current}, ours was ${options.epoch})`, {
    hint: "Let that process continue; everything acknowledged so far is in the log.",
    details: { epoch: options.epoch, current: options.current },
  });
}
