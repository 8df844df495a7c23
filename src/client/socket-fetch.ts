import { type ClientRequest, type IncomingMessage, type RequestOptions, request } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type { Fetch } from "./request.ts";
import { webStreamOf } from "./web-stream.ts";

/** `fetch` over a socket of this machine, whatever host the address names. */
export function socketFetch(socketPath: string): Fetch {
  return (url, init) => {
    const { pathname, search } = new URL(url);
    // One connection each: whoever asks once need not wait for it to be closed.
    return sent(init, (common) =>
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

/** What `fetch` does, by a request of Node's own making. */
export async function sent(init: RequestInit, begin: (common: RequestOptions) => ClientRequest): Promise<Response> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
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
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) headers.set(name, String(value));
  const status = answer.statusCode ?? 502;
  const empty = status === 204 || status === 304;
  if (empty) answer.resume();
  return new Response(empty ? null : webStreamOf(answer), { status, headers });
}
