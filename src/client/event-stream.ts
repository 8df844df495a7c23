import type { Problem } from "../contract/api/problem.ts";
import { CaissonError } from "../contract/error/error.ts";
import { ignore } from "../lib/failures.ts";
import type { RouteName } from "../verbs/routes.ts";
import { ATTEMPTS_MAX, pauseBefore } from "./attempts.ts";
import { type Answer, type Connection, errorOf, send } from "./request.ts";

const LINE_CHARACTERS_MAX = 64 * 1024 * 1024;
/** The station sends at least a keep-alive every 15 s. After this much silence we consider the connection dead. */
const SILENCE_MS = 60_000;

interface StreamInput {
  params?: Readonly<Record<string, string>>;
  query?: object;
  body?: unknown;
  signal?: AbortSignal;
}

interface ReceivedEvent {
  id: string | null;
  type: string;
  data: string;
}

/**
 * Yields the data of every event, each once, in order. With `resume`, a broken or silent connection is reopened after
 * the last event received. Ends with the stream or the signal. Throws the station's errors, and `unavailable` after
 * some failed attempts.
 */
export async function* eventData<Data>(
  to: Connection,
  name: RouteName,
  { input, resume }: { input: StreamInput; resume: boolean },
): AsyncGenerator<Data> {
  let lastId: string | null = null;
  // `attempts` counts connections without events and determines the pause; `unreached` counts failed ones and bounds
  // them.
  let attempts = 0;
  let unreached = 0;
  for (;;) {
    try {
      const headers: Record<string, string> = lastId === null ? {} : { "last-event-id": lastId };
      const response = await send(to, name, { input, accept: "text/event-stream", headers });
      unreached = 0;
      for await (const event of eventsIn(response)) {
        if (event.type === "end" || input.signal?.aborted) return;
        if (event.type === "problem") throw errorOf(JSON.parse(event.data) as Problem);
        attempts = 0;
        if (event.id !== null) lastId = event.id;
        yield JSON.parse(event.data) as Data;
      }
      throw new CaissonError("unavailable", "the stream broke off");
    } catch (error) {
      if (input.signal?.aborted) return;
      attempts += 1;
      unreached += 1;
      if (!resume || unreached > ATTEMPTS_MAX || !(error instanceof CaissonError) || error.code !== "unavailable") throw error;
    }
    await pauseBefore(attempts, input.signal);
    if (input.signal?.aborted) return;
  }
}

/** Like `eventData` without resuming. Resolves once the station is listening, or throws its error. */
export async function openEvents<Data>(to: Connection, name: RouteName, input: StreamInput): Promise<AsyncIterable<Data>> {
  const response = await send(to, name, { input, accept: "text/event-stream" });
  return dataIn<Data>(response, input.signal);
}

async function* dataIn<Data>(response: Answer, signal: AbortSignal | undefined): AsyncGenerator<Data> {
  try {
    for await (const event of eventsIn(response)) {
      if (event.type === "end" || signal?.aborted) return;
      if (event.type === "problem") throw errorOf(JSON.parse(event.data) as Problem);
      yield JSON.parse(event.data) as Data;
    }
  } catch (error) {
    if (signal?.aborted) return;
    throw error;
  }
  if (!signal?.aborted) throw new CaissonError("unavailable", "the stream broke off");
}

/** Throws `unavailable` when the connection breaks or falls silent. */
export async function* eventsIn(response: Pick<Answer, "body">): AsyncGenerator<ReceivedEvent> {
  let event: ReceivedEvent = { id: null, type: "message", data: "" };
  for await (const line of linesIn(response)) {
    if (line === "") {
      if (event.data !== "") yield event;
      event = { id: null, type: "message", data: "" };
      continue;
    }
    const [, field = "", value = ""] = /^([a-z]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === "id") event.id = value;
    else if (field === "event") event.type = value;
    else if (field === "data") event.data += event.data === "" ? value : `\n${value}`;
  }
}

async function* linesIn(response: Pick<Answer, "body">): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  // Collects pieces: a long line arrives in many chunks, and joining each one to the text so far would take quadratic
  // time.
  let pieces: string[] = [];
  let characters = 0;
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      if (done) return;
      const [first = "", ...others] = value.split("\n");
      pieces.push(first);
      characters += first.length;
      const rest = others.pop();
      if (rest !== undefined) {
        yield pieces.join("");
        yield* others;
        pieces = [rest];
        characters = rest.length;
      }
      if (characters > LINE_CHARACTERS_MAX) throw new CaissonError("protocol", "a line of the stream is too long");
    }
  } finally {
    await ignore(reader.cancel(), "the stream is no longer read");
  }
}

/** The timer runs only while we wait for data: a slow reader does not make the other side silent. */
async function withinSilence<Read>(read: Promise<Read>): Promise<Read> {
  const silent = Promise.withResolvers<never>();
  const timer = setTimeout(() => silent.reject(new Error(`no data for ${SILENCE_MS} ms`)), SILENCE_MS);
  try {
    return await Promise.race([read, silent.promise]);
  } catch (cause) {
    throw new CaissonError("unavailable", "the stream broke off", { cause });
  } finally {
    clearTimeout(timer);
  }
}
