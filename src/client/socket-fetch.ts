import { type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import type { Fetch } from "./request.ts";

/** `fetch` over a socket of this machine, whatever host the address names. */
export function socketFetch(socketPath: string): Fetch {
  return async (url, init) => {
    const { pathname, search } = new URL(url);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({
        socketPath,
        path: `${pathname}${search}`,
        method: init.method ?? "GET",
        // One connection each: whoever asks once need not wait for it to be closed.
        agent: false,
        headers: { ...(init.headers as Record<string, string> | undefined), host: "station" },
        ...(init.signal && { signal: init.signal }),
      });
      sent.once("response", resolve).once("error", reject);
      const { body } = init;
      if (body === undefined || body === null) sent.end();
      else if (typeof body === "string" || body instanceof Uint8Array) sent.end(body);
      else
        Readable.fromWeb(body as NodeStream)
          .on("error", reject)
          .pipe(sent);
    });
    const headers = new Headers();
    for (const [name, value] of Object.entries(answer.headers)) headers.set(name, String(value));
    const status = answer.statusCode ?? 502;
    const empty = status === 204 || status === 304;
    if (empty) answer.resume();
    return new Response(empty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>), { status, headers });
  };
}
