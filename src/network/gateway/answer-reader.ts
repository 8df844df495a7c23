import { anthropicReader } from "./anthropic-reader.ts";
import type { GatewayUsage } from "./gateway-options.ts";
import { isObject, type JsonObject, parseObject } from "./json-value.ts";
import { chatReader, embeddingsReader, responsesReader } from "./openai-readers.ts";
import { type AnswerReader, createReading, type Reading } from "./reading.ts";
import type { AnswerKind } from "./routes.ts";
import { createSseSplitter } from "./sse-splitter.ts";

const LETTERS_PER_TOKEN = 4;
/**
 * If a call is abandoned before the first byte of its answer, we assume that the model produced this many tokens per
 * second until then.
 */
const TOKENS_PER_SECOND = 100;

const readers: Record<AnswerKind, AnswerReader | null> = {
  messages: anthropicReader,
  chat: chatReader,
  responses: responsesReader,
  embeddings: embeddingsReader,
  free: null,
};

/** Meters an answer while it is passed on. */
export interface AnswerMeter {
  readonly reading: Reading;
  /** Returns the bytes to pass on now. */
  push(chunk: Buffer): Buffer[];
  /** Returns the remaining bytes. Must be called once, after the last chunk. */
  end(): Buffer[];
}

export function createAnswerMeter(options: {
  kind: AnswerKind;
  streamed: boolean;
  /** Removes the last chunk of a chat, which contains only the usage, because only the gateway requested it. */
  withoutUsageChunk: boolean;
  limits: { eventBytesMax: number; answerBytesMax: number };
}): AnswerMeter {
  const reading = createReading();
  const reader = readers[options.kind];
  if (reader === null) return { reading, push: (chunk) => [chunk], end: () => [] };
  return options.streamed ? streamMeter(reader, reading, options) : wholeMeter(reader, reading, options.limits.answerBytesMax);
}

function streamMeter(
  reader: AnswerReader,
  reading: Reading,
  options: { withoutUsageChunk: boolean; limits: { eventBytesMax: number } },
): AnswerMeter {
  const splitter = createSseSplitter(options.limits);
  return {
    reading,
    push(chunk) {
      const chunks: Buffer[] = [];
      for (const { raw, data } of splitter.push(chunk)) {
        const event = data === null ? null : parseObject(data);
        if (event !== null) reader.event(reading, event);
        if (!(options.withoutUsageChunk && event !== null && isUsageChunk(event))) chunks.push(raw);
      }
      // Events are held back until complete only if one of them may have to be removed.
      return options.withoutUsageChunk ? chunks : [chunk];
    },
    end() {
      const rest = splitter.rest();
      return options.withoutUsageChunk && rest.length > 0 ? [rest] : [];
    },
  };
}

function wholeMeter(reader: AnswerReader, reading: Reading, answerBytesMax: number): AnswerMeter {
  let pieces: Buffer[] | null = [];
  let bytes = 0;
  return {
    reading,
    push(chunk) {
      bytes += chunk.length;
      if (bytes > answerBytesMax) pieces = null;
      pieces?.push(chunk);
      return [chunk];
    },
    end() {
      const answer = pieces === null ? null : parseObject(Buffer.concat(pieces).toString("utf8"));
      if (answer !== null) reader.whole(reading, answer);
      else reading.letters = bytes;
      return [];
    },
  };
}

function isUsageChunk(event: JsonObject): boolean {
  return Array.isArray(event.choices) && event.choices.length === 0 && isObject(event.usage);
}

/**
 * Returns the tokens of a call: as the upstream counted them, or an estimate if it was cut off before it reported them.
 */
export function meteredUsage(options: {
  kind: AnswerKind;
  reading: Reading | null;
  inputEstimate: number;
  outputMax: number | null;
  /** How long the upstream worked on the call. */
  workedMs: number;
}): { usage: GatewayUsage; estimated: boolean } {
  const { reading, outputMax } = options;
  const known = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0, cacheWriteInputTokens: 0, ...reading?.usage };
  if (options.kind === "free") return { usage: known, estimated: false };
  if (reading?.usageIsFinal) return { usage: known, estimated: false };
  const outputEstimate = reading === null ? (options.workedMs / 1000) * TOKENS_PER_SECOND : reading.letters / LETTERS_PER_TOKEN;
  const output = options.kind === "embeddings" ? 0 : Math.ceil(Math.min(outputMax ?? Number.MAX_SAFE_INTEGER, outputEstimate));
  return {
    usage: {
      ...known,
      inputTokens: reading?.usage.inputTokens ?? options.inputEstimate,
      outputTokens: Math.max(known.outputTokens, output),
    },
    estimated: true,
  };
}
