import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { CaissonError } from "../../contract/error.ts";
import type { GatewayWire } from "../../contract/network.ts";
import type { AnswerMeter } from "./answer-reader.ts";
import { allowsModel } from "./asked.ts";
import { isObject, objectsIn, textIn } from "./json-value.ts";
import type { KeyScrubber } from "./key-scrubber.ts";
import { answerHeaders } from "./passed-headers.ts";
import { wireErrorEvent } from "./wire-error.ts";

interface Passing {
  wire: GatewayWire;
  answer: IncomingMessage;
  response: ServerResponse;
  scrubber: KeyScrubber;
  signal: AbortSignal;
}

export function isStreamed(answer: IncomingMessage): boolean {
  return /^text\/event-stream\b/i.test(answer.headers["content-type"] ?? "");
}

/**
 * Passes an answer on as it comes, no faster than it is taken. When the upstream breaks off, the client is told in the stream and sees it end before its end; then it
 * throws `protocol`, and by the signal its reason.
 */
export async function passAnswer(options: Passing & { meter: AnswerMeter; withoutUsageChunk: boolean; moved: () => void }): Promise<void> {
  const { answer, response, scrubber, meter, signal, moved } = options;
  const headers = answerHeaders(answer.headers, scrubber.text);
  if (options.withoutUsageChunk) delete headers["content-length"];
  response.writeHead(answer.statusCode ?? 200, headers);
  response.flushHeaders();
  let broken: unknown = null;
  const chunks = async function* () {
    try {
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        moved();
        for (const piece of meter.push(scrubber.push(chunk))) if (piece.length > 0) yield piece;
        moved();
      }
    } catch (error) {
      broken = signal.aborted ? signal.reason : new CaissonError("protocol", "The model's server broke off its answer.", { cause: error });
    }
    yield* [...meter.push(scrubber.rest()), ...meter.end()].filter((piece) => piece.length > 0);
    if (broken !== null && isStreamed(answer)) yield Buffer.from(wireErrorEvent(options.wire, broken));
  };
  try {
    await pipeline(chunks(), response, { end: false, signal });
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
  if (broken === null) return void response.end();
  // Without the last chunk: whoever does not understand the event must not take the answer for whole.
  response.socket?.end();
  throw broken;
}

/** Passes on what an upstream said instead of an answer, with every secret taken out. Gives back the text. */
export async function passRefusal(options: Passing & { redact: (text: string) => string; bytesMax: number }): Promise<string> {
  const { answer, response, scrubber } = options;
  const text = options.redact(scrubber.text(await readText(answer, options)));
  const { "content-length": _, ...headers } = answerHeaders(answer.headers, (value) => options.redact(scrubber.text(value)));
  response.writeHead(answer.statusCode ?? 502, headers).end(text);
  return text;
}

/** Passes on a list of models, with those alone that may be asked for. */
export async function passModels(options: Passing & { patterns: readonly string[]; bytesMax: number }): Promise<void> {
  const { answer, response, scrubber, wire, patterns } = options;
  const list: unknown = JSON.parse(scrubber.text(await readText(answer, options)));
  if (!isObject(list)) throw new CaissonError("protocol", "The model's server sent no list of models.");
  const data = objectsIn(list.data).filter((model) => allowsModel(wire, textIn(model.id), patterns));
  const { "content-length": _, ...headers } = answerHeaders(answer.headers, scrubber.text);
  response.writeHead(200, headers).end(JSON.stringify({ ...list, data }));
}

/** Reads no further than the bound. */
async function readText(answer: IncomingMessage, options: { bytesMax: number; signal: AbortSignal }): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      pieces.push(chunk.subarray(0, options.bytesMax - bytes));
      bytes += chunk.length;
      if (bytes >= options.bytesMax) break;
    }
  } catch (error) {
    if (options.signal.aborted) throw options.signal.reason;
    throw new CaissonError("protocol", "The model's server broke off its answer.", { cause: error });
  }
  return Buffer.concat(pieces).toString("utf8");
}
