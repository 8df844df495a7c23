import type { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { RequestLife } from "../open-requests.ts";

/** What a client may leave unread. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** An answer that is being streamed. */
export interface OpenStream {
  /** It has nothing more to say. Idempotent. */
  end(): void;
}

interface Streaming {
  life: RequestLife;
  /** What it is the answer to. */
  requests: readonly RequestId[];
  connection: { open: Map<RequestId | OpenStream, OpenStream>; transport: WebStandardStreamableHTTPServerTransport };
}

/**
 * The transport's stream, with the life of its request: it ends when the caller may do this no longer and when the
 * server does. Calls whose answer nobody is there to hear are cancelled, since nobody could ask for it again.
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
    void reader.cancel().catch(() => {});
    for (const requestId of requests) {
      transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason: "the caller has gone" } });
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
      const { done, value } = await reader.read().catch(() => ({ done: true as const, value: undefined }));
      if (isOver) return;
      if (done) break;
      controller.enqueue(value);
      // The transport knows no back-pressure: a reader that takes nothing is let go before it costs more.
      if ((controller.desiredSize ?? 0) < 0) return end();
    }
    over();
    controller.close();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given;
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
