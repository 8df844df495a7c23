import type { IncomingMessage } from "node:http";
import { CaissonError } from "../../contract/error/error.ts";
import { isObject, type JsonObject } from "./json-value.ts";

/** A body that counts as held until it is disposed of. */
export interface ReadBody extends Disposable {
  body: JsonObject;
  bytes: number;
}

export interface BodyReader {
  /**
   * Throws `too_large`, `busy` if too much is already held, `unsupported` for an encoded body, `invalid` for one that
   * is not a JSON object, `cancelled` if it ends early.
   */
  read(request: IncomingMessage): Promise<ReadBody>;
}

/** Reads request bodies, limited each and in total. */
export function createBodyReader(limits: { bodyBytesMax: number; bodiesBytesMax: number }): BodyReader {
  let heldBytes = 0;
  return {
    async read(request) {
      const coding = request.headers["content-encoding"];
      if (coding !== undefined && coding !== "identity") {
        throw new CaissonError("unsupported", `the gateway does not accept a body with the encoding ${JSON.stringify(coding)}`, {
          hint: "Send it without an encoding.",
        });
      }
      let bytes = 0;
      const release = () => {
        heldBytes -= bytes;
        bytes = 0;
      };
      try {
        const pieces: Buffer[] = [];
        // Leaving early must not close the connection, because the answer still has to be sent.
        for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
          bytes += piece.length;
          heldBytes += piece.length;
          if (bytes > limits.bodyBytesMax) throw new CaissonError("too_large", `the body is longer than ${limits.bodyBytesMax} bytes`);
          if (heldBytes > limits.bodiesBytesMax) {
            throw new CaissonError("busy", `the requests in progress exceed ${limits.bodiesBytesMax} bytes in total`);
          }
          pieces.push(piece);
        }
        return { body: parseBody(Buffer.concat(pieces)), bytes, [Symbol.dispose]: release };
      } catch (error) {
        release();
        throw error instanceof CaissonError ? error : new CaissonError("cancelled", "the request ended early", { cause: error });
      }
    },
  };
}

/**
 * Throws `invalid`. We always send this value serialized again, never the original bytes: a duplicate key could mean
 * one thing here and another upstream.
 */
export function parseBody(bytes: Buffer): JsonObject {
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // Numbers with more digits than a double can hold are kept as they were written.
    value = /[\d.]{16}/.test(text) ? JSON.parse(text, asWritten) : JSON.parse(text);
  } catch (error) {
    throw new CaissonError("invalid", "the body is not JSON", { cause: error });
  }
  if (!isObject(value)) throw new CaissonError("invalid", "the body is not a JSON object");
  return value;
}

/** Throws `invalid` for a body that is nested too deeply to be written. */
export function writeBody(body: JsonObject): Buffer {
  try {
    return Buffer.from(JSON.stringify(body));
  } catch (error) {
    throw new CaissonError("invalid", "the body is nested too deeply", { cause: error });
  }
}

/** Node has supported `JSON.rawJSON` and `context.source` for years, but TypeScript's library declares neither. */
const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON;

function asWritten(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && source.length >= 16 && String(value) !== source ? rawJson(source) : value;
}
