import { answers, type Decoded, decodeFields, type Encodable, encodeFields, type Shape, shapes } from "./fields.ts";
import { frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import type { Link, StreamHandler } from "./link.ts";
import { ANSWER_BOUND, type Bound, cancelledError, TRANSFER_BOUND, type Wait } from "./waits.ts";

/** The maximum size of one `ENTRY`: a name and a link target of 4,095 bytes each, and some numbers. */
const ENTRY_BYTES_MAX = 16_384;

interface Request<Name extends keyof typeof shapes> {
  type: Name;
  values: Encodable<(typeof shapes)[Name]>;
  /** The attempted action, for the error message. */
  what: string;
  /** Cancels the request, which then rejects with `cancelled`. */
  signal?: AbortSignal | undefined;
}

/**
 * Sends a request that is answered by one `OK` or `ERROR`. `read` converts the answer, and throws `protocol` errors for
 * invalid values.
 */
export function ask<Name extends keyof typeof shapes, Answer extends Shape, Result>(
  link: Link,
  request: Request<Name> & { answer: Answer; read: (answer: Decoded<Answer>) => Result },
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const { type, answer, what, read } = request;
    const handler: StreamHandler = {
      onFrame(code, payload) {
        wait.end();
        if (code === frameCode.OK) resolve(read(decodeFields(`the answer to ${type}`, answer, payload)));
        else if (code === frameCode.ERROR) reject(errorFromGuest(what, payload));
        else throw protocolError(`${frameName(code)} as an answer to ${type}`);
        return true;
      },
      onLost: reject,
    };
    const { wait } = openAndWait(link, handler, { ...request, bound: ANSWER_BOUND, onGivenUp: reject });
  });
}

/** Sends a request whose answer carries nothing but success. */
export function tell<Name extends keyof typeof shapes>(link: Link, request: Request<Name>): Promise<void> {
  return ask(link, { ...request, answer: answers.nothing, read: () => undefined });
}

/**
 * Sends a request that is answered by `ENTRY` frames and an `OK`. More than `entriesMax` entries are a `protocol`
 * error.
 */
export function askForEntries<Name extends keyof typeof shapes, Entry extends Shape, Answer extends Shape, Item>(
  link: Link,
  request: Request<Name> & {
    entry: Entry;
    answer: Answer;
    entriesMax: number;
    /** Converts an entry to an item. Throws `protocol` errors for invalid values. */
    read: (entry: Decoded<Entry>) => Item;
  },
): Promise<{ items: Item[]; answer: Decoded<Answer> }> {
  return new Promise((resolve, reject) => {
    const { type, entry, answer, entriesMax, what, read } = request;
    const items: Item[] = [];
    const handler: StreamHandler = {
      onFrame(code, payload) {
        if (code === frameCode.ENTRY) {
          if (items.length >= entriesMax) throw protocolError(`more than ${entriesMax} entries for ${type}`);
          if (payload.length > ENTRY_BYTES_MAX) throw protocolError(`an entry of ${payload.length} bytes`);
          items.push(read(decodeFields("ENTRY", entry, payload)));
          wait.moved(payload.length);
          return false;
        }
        wait.end();
        if (code === frameCode.OK) resolve({ items, answer: decodeFields(`the answer to ${type}`, answer, payload) });
        else if (code === frameCode.ERROR) reject(errorFromGuest(what, payload));
        else throw protocolError(`${frameName(code)} as an answer to ${type}`);
        return true;
      },
      onLost: reject,
    };
    const { wait } = openAndWait(link, handler, { ...request, bound: TRANSFER_BOUND, onGivenUp: reject });
  });
}

/**
 * Opens a stream, sends its first frame, and limits the wait for the answer. Throws `cancelled` before it sends
 * anything.
 */
export function openAndWait<Name extends keyof typeof shapes>(
  link: Link,
  handler: StreamHandler,
  request: Request<Name> & { bound: Bound; onGivenUp: (error: ReturnType<typeof cancelledError>) => void },
): { stream: number; wait: Wait } {
  const { type, values, what, bound, signal, onGivenUp } = request;
  if (signal?.aborted) throw cancelledError(what);
  const stream = openWith(link, handler, type, values);
  return { stream, wait: link.waits.begin({ what, stream, bound, signal, onGivenUp }) };
}

/** Opens a stream and sends its first frame. If encoding fails (too large), no stream stays open. */
function openWith<Name extends keyof typeof shapes>(
  link: Link,
  handler: StreamHandler,
  type: Name,
  values: Encodable<(typeof shapes)[Name]>,
): number {
  const stream = link.open(handler);
  try {
    // The signature ties the name to its values; here we only need some shape with matching values.
    link.send(encodeFields(type, stream, shapes[type] as Shape, values as Encodable<Shape>));
  } catch (error) {
    link.retire(stream);
    throw error;
  }
  return stream;
}
