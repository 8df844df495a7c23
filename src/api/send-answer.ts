import type { ServerResponse } from "node:http";
import { ignore } from "../lib/failures.ts";
import { createPauses } from "../lib/pauses.ts";

/** The content of an answer that the server can write itself: a text in pieces, or a stream. */
export type Content = readonly string[] | SentStream;

export interface SentStream {
  chunks: AsyncIterable<Uint8Array>;
  /** Aborts what the stream waits for. */
  abort: () => void;
  /** Called once, however the stream ends. */
  release: () => Promise<void>;
}

const contents = new WeakMap<Response, Content>();

/**
 * Attaches the content to an answer. The body of a `Response` is a web stream, which takes longer than the work of most
 * requests.
 */
export function withContent(response: Response, content: Content): Response {
  contents.set(response, content);
  return response;
}

/** Tells the adaptor that everything was written. */
const alreadySent = () => new Response(null, { headers: { "x-hono-already-sent": "true" } });

/** Writes an answer with attached content, and leaves the adaptor nothing to do. */
export async function sendAnswer(response: Response, outgoing: ServerResponse): Promise<Response> {
  const content = contents.get(response);
  if (content === undefined) return response;
  const headers = Object.fromEntries(response.headers);
  // The body was complete after all, so the connection can stay, which saves accepting another one.
  if (headers.connection === "close" && outgoing.req?.complete === true) delete headers.connection;
  if (isText(content)) {
    const sizeBytes = content.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    outgoing.writeHead(response.status, { ...headers, "content-length": sizeBytes });
    await sendText(content, outgoing);
  } else {
    outgoing.writeHead(response.status, headers);
    await sendStream(content, outgoing);
  }
  return alreadySent();
}

const isText = (content: Content): content is readonly string[] => Array.isArray(content);

/** Each write copies its piece into the connection's buffer, so long texts would otherwise block the event loop. */
async function sendText(pieces: readonly string[], outgoing: ServerResponse): Promise<void> {
  const pause = createPauses();
  for (const piece of pieces.slice(0, -1)) {
    outgoing.write(piece);
    await pause();
  }
  outgoing.end(pieces.at(-1));
}

/**
 * Sends a stream, read only as fast as its reader accepts it. A failing stream breaks off, so no client mistakes it for
 * the whole.
 */
async function sendStream({ chunks, abort, release }: SentStream, outgoing: ServerResponse): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let isClosed = false;
  let onRoom = () => {};
  let onClosed = () => {};
  /** Avoids a race with one promise for all pieces, which would remember every piece until it settles. */
  const unlessClosed = <Result>(work: Promise<Result>) =>
    new Promise<Result | "closed">((resolve, reject) => {
      onClosed = () => resolve("closed");
      if (isClosed) onClosed();
      work.then(resolve, reject);
    });
  const onClose = () => {
    // Ends what the stream waits for, even if nothing would ever arrive.
    if (!isOver) abort();
    isClosed = true;
    onClosed();
  };
  outgoing.once("close", onClose).on("drain", () => onRoom());
  // The reader may have disconnected before this listener was added.
  if (outgoing.destroyed) onClose();
  outgoing.flushHeaders();
  const sendAll = async () => {
    for (;;) {
      const next = await unlessClosed(iterator.next());
      if (next === "closed") break;
      if (next.done) {
        isOver = true;
        break;
      }
      if (outgoing.write(next.value) || !outgoing.writableNeedDrain) continue;
      await unlessClosed(
        new Promise<void>((resolve) => {
          onRoom = resolve;
        }),
      );
    }
  };
  await ignore(sendAll(), "the connection is cut below, so the client sees an incomplete answer");
  // Before the end is sent, so that a client that has read everything finds everything released.
  await Promise.allSettled([iterator.return?.(), release()]);
  if (isOver) outgoing.end();
  else outgoing.destroy();
}
