import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { sendAnswer, withContent } from "./send-answer.ts";

const CHUNK = new Uint8Array(256 * 1024).fill(7);

/** Records what happens to a stream of the server. */
function watched(chunks: AsyncIterable<Uint8Array>) {
  const fate = { aborted: 0, released: 0 };
  const over = Promise.withResolvers<void>();
  const content = {
    chunks,
    abort: () => void fate.aborted++,
    async release() {
      fate.released += 1;
      over.resolve();
    },
  };
  return { content, fate, over: over.promise };
}

/** Sends one request to a server with this answer. */
async function served(answer: (outgoing: ServerResponse) => Promise<unknown>) {
  const server = createServer((_, outgoing) => void answer(outgoing));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const request = get({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  request.on("error", () => {});
  return {
    request,
    response: once(request, "response").then(([incoming]) => incoming as IncomingMessage),
    async [Symbol.asyncDispose]() {
      request.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function lengthOf(incoming: IncomingMessage): Promise<number> {
  let length = 0;
  for await (const chunk of incoming) length += (chunk as Buffer).length;
  return length;
}

describe("an answer that the server writes itself", () => {
  test("contains the whole stream, which is released once", async () => {
    const { content, fate } = watched(
      (async function* () {
        for (let n = 0; n < 40; n += 1) yield CHUNK;
      })(),
    );
    await using exchange = await served((outgoing) => sendAnswer(withContent(new Response(null), content), outgoing));
    expect(await lengthOf(await exchange.response)).toBe(40 * CHUNK.length);
    expect(fate).toEqual({ aborted: 0, released: 1 });
  });

  test("breaks off if its stream fails, so no client mistakes it for the whole", async () => {
    const { content, fate, over } = watched(
      (async function* () {
        yield CHUNK;
        throw new Error("the disk went away");
      })(),
    );
    await using exchange = await served((outgoing) => sendAnswer(withContent(new Response(null), content), outgoing));
    await expect(lengthOf(await exchange.response)).rejects.toMatchObject({ code: "ECONNRESET" });
    await over;
    expect(fate.released).toBe(1);
  });

  test("aborts its stream if its reader disconnects", async () => {
    const stopped = Promise.withResolvers<void>();
    const { content, fate, over } = watched(
      (async function* () {
        yield CHUNK;
        await stopped.promise;
      })(),
    );
    const abort = content.abort;
    content.abort = () => {
      abort();
      stopped.resolve();
    };
    await using exchange = await served((outgoing) => sendAnswer(withContent(new Response(null), content), outgoing));
    (await exchange.response).destroy();
    await over;
    expect(fate).toEqual({ aborted: 1, released: 1 });
  });

  test("aborts its stream if its reader disconnected before the start", async () => {
    const { content, fate, over } = watched(
      (async function* () {
        await new Promise(() => {});
        yield CHUNK;
      })(),
    );
    await using exchange = await served(async (outgoing) => {
      exchange.request.destroy();
      await once(outgoing, "close");
      await sendAnswer(withContent(new Response(null), content), outgoing);
    });
    await exchange.response.catch(() => {});
    await over;
    expect(fate).toEqual({ aborted: 1, released: 1 });
  });
});
