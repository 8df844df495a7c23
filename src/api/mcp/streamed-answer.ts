import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { ignore } from "../../lib/failures.ts";
import type { RequestLife } from "../open-requests.ts";

/** The most data that a client may leave unread. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** An open answer stream. */
export interface OpenStream {
  /** Ends the stream. Idempotent. */
  end(): void;
}

interface Streaming {
  life: RequestLife;
  /** The requests that the stream answers. */
  requests: readonly RequestId[];
  connection: { open: Map<RequestId | OpenStream, OpenStream>; transport: WebStandardStreamableHTTPServerTransport };
}

/**
 * Ties the transport's stream to its request: it ends when the caller loses the right to the call, and when the server
 * ends. If the client disconnects, its calls are cancelled, since it could not fetch the answer later.
 */
export function streamedAnswer(response: Response, { life, requests, connection }: Streaming): Response {
  const { open, transport } = connection;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let isOver = false;
  const over = () => {
    isOver = true;
    life.streamSignal.removeEventListener("abort", cut);
    for (const key of keys) if (open.get(key) === stream) open.delete(key);
    life.end();
  };
  const stop = () => {
    void ignore(reader.cancel(), "the rest of the answer is not needed");
    for (const requestId of requests) {
      transport.onmessage?.({
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId, reason: "the caller has disconnected" },
      });
    }
  };
  const end = () => {
    if (isOver) return;
    over();
    stop();
    controller.close();
  };
  const cut = end;
  const stream: OpenStream = { end };
  const keys = requests.length === 0 ? [stream] : requests;
  for (const key of keys) open.set(key, stream);
  const pump = async () => {
    for (;;) {
      const { done, value } = (await ignore(reader.read(), "a broken answer ends the stream")) ?? { done: true as const, value: undefined };
      if (isOver) return;
      if (done) break;
      controller.enqueue(value);
      // The transport has no back-pressure: a client that reads nothing is disconnected before it costs more.
      if ((controller.desiredSize ?? 0) < 0) return end();
    }
    over();
    controller.close();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started;
        void pump();
      },
      cancel() {
        if (isOver) return;
        over();
        stop();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_BYTES_MAX }),
  );
  if (life.streamSignal.aborted) cut();
  else life.streamSignal.addEventListener("abort", cut, { once: true });
  const headers = new Headers(response.headers);
  headers.set("cache-control", "no-store");
  return new Response(body, { status: response.status, headers });
}
