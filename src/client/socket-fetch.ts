import { type ClientRequest, type IncomingMessage, type RequestOptions, request } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { byteCounter } from "./bounded-json.ts";
import type { Answer } from "./request.ts";
import { webStreamOf } from "./web-stream.ts";

/** Implements `fetch` over a Unix socket, whatever host the URL names. */
export function socketFetch(socketPath: string): (url: string, init: RequestInit) => Promise<SocketAnswer> {
  return (url, init) => {
    const { pathname, search } = new URL(url);
    // One connection per request: a single request need not wait for keep-alive to end.
    return sendRequest(init, (common) =>
      request({
        ...common,
        socketPath,
        path: `${pathname}${search}`,
        agent: false,
        headers: { ...(common.headers as Record<string, string>), host: "station" },
      }),
    );
  };
}

/** Implements `fetch` with a request of Node's `http`. */
export async function sendRequest(init: RequestInit, begin: (common: RequestOptions) => ClientRequest): Promise<SocketAnswer> {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = begin({
      method: init.method ?? "GET",
      headers: { ...(init.headers as Record<string, string> | undefined) },
      ...(init.signal && { signal: init.signal }),
    });
    request.once("response", resolve).once("error", reject);
    const { body } = init;
    if (body === undefined || body === null) request.end();
    else if (typeof body === "string" || body instanceof Uint8Array) request.end(body);
    else
      Readable.fromWeb(body as NodeStream)
        .on("error", (error) => {
          request.destroy(error);
          reject(error);
        })
        .pipe(request);
  });
  return answerOf(message);
}

/** An answer with its headers. */
export interface SocketAnswer extends Answer {
  readonly headers: Readonly<Record<string, string>>;
}

function answerOf(message: IncomingMessage): SocketAnswer {
  const status = message.statusCode ?? 502;
  const isEmpty = status === 204 || status === 304;
  if (isEmpty) message.resume();
  let body: SocketAnswer["body"] | undefined;
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, String(value)])),
    get body() {
      body ??= isEmpty ? null : (webStreamOf(message) as NonNullable<SocketAnswer["body"]>);
      return body;
    },
    async json() {
      const pieces: Buffer[] = [];
      const count = byteCounter();
      for await (const piece of message) {
        count((piece as Buffer).length);
        pieces.push(piece as Buffer);
      }
      return JSON.parse(Buffer.concat(pieces).toString("utf8"));
    },
  };
}
