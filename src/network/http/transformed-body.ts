import type { Transform } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { BodyFraming } from "./body.ts";
import { encodeChunk, LAST_CHUNK } from "./chunked-coding.ts";
import type { BodyTransform } from "./relay-options.ts";

export interface TransformedBodyOptions {
  transform: BodyTransform;
  /** The framing of the result. With `length`, the transform must keep the length. */
  framing: BodyFraming;
  /** Returns false if the caller must wait for `sinkDrained`. */
  write: (bytes: Buffer) => boolean;
  /** Called when more payload is welcome after `push` returned false. */
  onDrain: () => void;
  /** Called when the whole body was written, including its end. */
  onWhole: () => void;
  onError: (error: Error) => void;
}

/** Takes payload and writes the framed result of the transform. */
export interface TransformedBody {
  /** Returns false if the caller must wait for `onDrain`. Throws the errors of a transform function. */
  push(payload: Buffer): boolean;
  /** Completes the payload. */
  end(): void;
  sinkDrained(): void;
  destroy(): void;
}

export function transformBody(options: TransformedBodyOptions): TransformedBody {
  return typeof options.transform === "function" ? byFunction(options, options.transform) : byStream(options, options.transform);
}

function byFunction(options: TransformedBodyOptions, transform: (chunk: Buffer) => Buffer): TransformedBody {
  return {
    push(payload) {
      if (payload.length === 0) return true;
      const result = transform(payload);
      if (result.length !== payload.length) throw lengthChanged();
      return options.write(encodePayload(options.framing, result));
    },
    end() {
      if (options.framing.kind === "chunked") options.write(LAST_CHUNK);
      options.onWhole();
    },
    sinkDrained: () => options.onDrain(),
    destroy() {},
  };
}

function byStream(options: TransformedBodyOptions, stream: Transform): TransformedBody {
  const { framing } = options;
  let bytes = 0;
  let over = false;
  const fail = (error: Error) => {
    if (over) return;
    over = true;
    stream.destroy();
    options.onError(error);
  };
  stream.on("error", fail);
  stream.on("close", () => fail(new CaissonError("internal", "the body transform was closed")));
  stream.on("drain", () => options.onDrain());
  stream.on("data", (chunk: Buffer) => {
    if (chunk.length === 0 || over) return;
    bytes += chunk.length;
    if (framing.kind === "length" && bytes > framing.bytes) fail(lengthChanged());
    else if (!options.write(encodePayload(framing, chunk))) stream.pause();
  });
  stream.on("end", () => {
    if (framing.kind === "length" && bytes !== framing.bytes) fail(lengthChanged());
    if (over) return;
    over = true;
    if (framing.kind === "chunked") options.write(LAST_CHUNK);
    options.onWhole();
  });
  return {
    push: (payload) => stream.write(payload),
    end: () => void stream.end(),
    sinkDrained: () => void stream.resume(),
    destroy() {
      over = true;
      stream.destroy();
    },
  };
}

function encodePayload(framing: BodyFraming, payload: Buffer): Buffer {
  return framing.kind === "chunked" ? encodeChunk(payload) : payload;
}

function lengthChanged(): CaissonError {
  return new CaissonError("internal", "the body transform changed the length of the body");
}
