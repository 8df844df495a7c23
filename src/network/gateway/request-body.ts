import type { IncomingMessage } from "node:http";
import { CaissonError } from "../../contract/error.ts";
import { isObject, type JsonObject } from "./json-value.ts";

/** A body that counts as held until it is disposed of. */
export interface ReadBody extends Disposable {
  body: JsonObject;
  bytes: number;
}

export interface BodyReader {
  /**
   * Throws `too_large`, `busy` when too much is held already, `unsupported` for a coded body, `invalid` for one that is
   * no JSON object, `cancelled` when it breaks off.
   */
  read(request: IncomingMessage): Promise<ReadBody>;
}

/** Reads requests' bodies, each bounded and all together. */
export function createBodyReader(limits: { bodyBytesMax: number; bodiesBytesMax: number }): BodyReader {
  let heldBytes = 0;
  return {
    async read(request) {
      const coding = request.headers["content-encoding"];
      if (coding !== undefined && coding !== "identity") {
        throw new CaissonError("unsupported", `the gateway reads no body in the coding ${JSON.stringify(coding)}`, {
          hint: "Send it plain.",
        });
      }
      let bytes = 0;
      const release = () => {
        heldBytes -= bytes;
        bytes = 0;
      };
      try {
        const pieces: Buffer[] = [];
        // Left early, it must not take the connection with it: there is an answer to be given.
        for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
          bytes += piece.length;
          heldBytes += piece.length;
          if (bytes > limits.bodyBytesMax) throw new CaissonError("too_large", `the body is longer than ${limits.bodyBytesMax} bytes`);
          if (heldBytes > limits.bodiesBytesMax) {
            throw new CaissonError("busy", `the requests under way are longer than ${limits.bodiesBytesMax} bytes together`);
          }
          pieces.push(piece);
        }
        return { body: parseBody(Buffer.concat(pieces)), bytes, [Symbol.dispose]: release };
      } catch (error) {
        release();
        throw error instanceof CaissonError ? error : new CaissonError("cancelled", "the request broke off", { cause: error });
      }
    },
  };
}

/**
 * Throws `invalid`. What goes upstream is always this value written anew, never the bytes that came: a name given twice
 * would mean one thing here and might mean another there.
 */
export function parseBody(bytes: Buffer): JsonObject {
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // Numbers of more digits than a double has are kept as they were written.
    value = /[\d.]{16}/.test(text) ? JSON.parse(text, asWritten) : JSON.parse(text);
  } catch (error) {
    throw new CaissonError("invalid", "the body is not JSON", { cause: error });
  }
  if (!isObject(value)) throw new CaissonError("invalid", "the body is not a JSON object");
  return value;
}

/** Throws `invalid` for what is nested too deeply to be written. */
export function writeBody(body: JsonObject): Buffer {
  try {
    return Buffer.from(JSON.stringify(body));
  } catch (error) {
    throw new CaissonError("invalid", "the body is nested too deeply", { cause: error });
  }
}

/** Node has both for years; TypeScript's library has neither yet. */
const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON;

function asWritten(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && source.length >= 16 && String(value) !== source ? rawJson(source) : value;
}
