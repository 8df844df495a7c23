import type { ServerResponse } from "node:http";
import { createPauses } from "../lib/pauses.ts";

/** What an answer carries, for a server that can write it itself: a text in pieces, or a stream. */
export type Content = readonly string[] | SentStream;

export interface SentStream {
  chunks: AsyncIterable<Uint8Array>;
  /** Ends what the stream waits for. */
  abort: () => void;
  /** Called once, however the stream ends. */
  release: () => Promise<void>;
}

const contents = new WeakMap<Response, Content>();

/**
 * The same answer, whose content is known besides: the body of a `Response` is a stream of the web, which takes longer
 * than the work of most requests.
 */
export function withContent(response: Response, content: Content): Response {
  contents.set(response, content);
  return response;
}

/** What tells the adaptor that everything was written. */
const alreadySent = () => new Response(null, { headers: { "x-hono-already-sent": "true" } });

/** Writes an answer whose content is known, and gives the adaptor nothing more to do. */
export async function sendAnswer(response: Response, outgoing: ServerResponse): Promise<Response> {
  const content = contents.get(response);
  if (content === undefined) return response;
  const headers = Object.fromEntries(response.headers);
  // The body came to its end after all: a connection that stays is one less to accept.
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

/** Each piece is copied into the connection's buffer, so that long texts hold the event loop otherwise. */
async function sendText(pieces: readonly string[], outgoing: ServerResponse): Promise<void> {
  const pause = createPauses();
  for (const piece of pieces.slice(0, -1)) {
    outgoing.write(piece);
    await pause();
  }
  outgoing.end(pieces.at(-1));
}

/** As fast as its reader takes it, and no faster. One that fails breaks off, so that nobody takes it for the whole. */
async function sendStream({ chunks, abort, release }: SentStream, outgoing: ServerResponse): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  let isOver = false;
  let isClosed = false;
  let onRoom = () => {};
  let onClosed = () => {};
  /** Not a race with one promise for all pieces: that one would remember every piece until it settles. */
  const unlessClosed = <Result>(work: Promise<Result>) =>
    new Promise<Result | "closed">((resolve, reject) => {
      onClosed = () => resolve("closed");
      if (isClosed) onClosed();
      work.then(resolve, reject);
    });
  const onClose = () => {
    // What it waits for is told, whether or not anything ever comes.
    if (!isOver) abort();
    isClosed = true;
    onClosed();
  };
  outgoing.once("close", onClose).on("drain", () => onRoom());
  // Its reader may have gone while the answer was made; that is not told again.
  if (outgoing.destroyed) onClose();
  outgoing.flushHeaders();
  try {
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
  } catch {
    // `isOver` says that it was not the whole.
  }
  // Before its end is seen: whoever has read it all finds everything let go.
  await Promise.allSettled([iterator.return?.(), release()]);
  if (isOver) outgoing.end();
  else outgoing.destroy();
}
