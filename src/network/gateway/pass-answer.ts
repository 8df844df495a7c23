import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayWire } from "../../contract/network/network.ts";
import type { AnswerMeter } from "./answer-reader.ts";
import { objectsIn, parseObject, textIn } from "./json-value.ts";
import type { KeyRedactor } from "./key-redactor.ts";
import { answerHeaders } from "./passed-headers.ts";
import { allowsModel } from "./read-model-request.ts";
import { wireErrorEvent } from "./wire-error.ts";

interface Passing {
  wire: GatewayWire;
  answer: IncomingMessage;
  response: ServerResponse;
  redactor: KeyRedactor;
  signal: AbortSignal;
}

export function isStreamed(answer: IncomingMessage): boolean {
  return /^text\/event-stream\b/i.test(answer.headers["content-type"] ?? "");
}

/**
 * Passes an answer on as it arrives, only as fast as the client reads it. If the upstream breaks off, the client gets
 * an error event and sees the stream end early. Then throws `protocol`, or the signal's reason if that fired.
 */
export async function passAnswer(options: Passing & { meter: AnswerMeter; withoutUsageChunk: boolean; moved: () => void }): Promise<void> {
  const { answer, response, redactor, meter, signal, moved } = options;
  const headers = answerHeaders(answer.headers, redactor.text);
  if (options.withoutUsageChunk) delete headers["content-length"];
  response.writeHead(answer.statusCode ?? 200, headers);
  response.flushHeaders();
  const rest = () => Buffer.concat([...meter.push(redactor.rest()), ...meter.end()]);
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      moved();
      for (const piece of meter.push(redactor.push(chunk))) {
        signal.throwIfAborted();
        if (piece.length > 0 && !response.write(piece)) await once(response, "drain", { signal });
      }
      moved();
    }
  } catch (error) {
    const broken = signal.aborted
      ? signal.reason
      : new CaissonError("protocol", "the model's server broke off in the middle of its answer", { cause: error });
    breakOff(response, [rest(), isStreamed(answer) ? wireErrorEvent(options.wire, broken) : ""]);
    throw broken;
  }
  response.end(rest());
}

/**
 * Ends without the last chunk, so that a client that does not understand the error event does not consider the answer
 * complete.
 */
function breakOff(response: ServerResponse, last: readonly (Buffer | string)[]): void {
  if (response.destroyed) return;
  // A client that has stopped reading would not read the error either, and would keep the connection open.
  if (response.writableNeedDrain) return void response.destroy();
  for (const piece of last) if (piece.length > 0) response.write(piece);
  response.socket?.end();
}

/** Passes on an upstream's refusal with every secret redacted, and returns its text. */
export async function passRefusal(options: Passing & { redact: (text: string) => string; bytesMax: number }): Promise<string> {
  const { answer, response, redactor } = options;
  const text = options.redact(redactor.text(await readText(answer, options)));
  const { "content-length": _, ...headers } = answerHeaders(answer.headers, (value) => options.redact(redactor.text(value)));
  response.writeHead(answer.statusCode ?? 502, headers).end(text);
  return text;
}

/** Passes on a list of models, reduced to the allowed ones. */
export async function passModels(options: Passing & { patterns: readonly string[]; bytesMax: number }): Promise<void> {
  const { answer, response, redactor, wire, patterns } = options;
  const list = parseObject(redactor.text(await readText(answer, options)));
  if (list === null) throw new CaissonError("protocol", "the model's server sent no list of models");
  const data = objectsIn(list.data).filter((model) => allowsModel(wire, textIn(model.id), patterns));
  const { "content-length": _, ...headers } = answerHeaders(answer.headers, redactor.text);
  response.writeHead(200, headers).end(JSON.stringify({ ...list, data }));
}

/** Reads at most `bytesMax` bytes. */
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
    throw new CaissonError("protocol", "the model's server broke off in the middle of its answer", { cause: error });
  }
  return Buffer.concat(pieces).toString("utf8");
}
