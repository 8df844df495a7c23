import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { sendAnswer, withContent } from "./send-answer.ts";

const CHUNK = new Uint8Array(256 * 1024).fill(7);

/** A stream of the server's, and what became of it. */
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

/** One request to a server that answers as told. */
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

describe("an answer that is written by the server itself", () => {
  test("has all of a stream, and what it held is let go once", async () => {
    const { content, fate } = watched(
      (async function* () {
        for (let n = 0; n < 40; n += 1) yield CHUNK;
      })(),
    );
    await using asked = await served((outgoing) => sendAnswer(withContent(new Response(null), content), outgoing));
    expect(await lengthOf(await asked.response)).toBe(40 * CHUNK.length);
    expect(fate).toEqual({ aborted: 0, released: 1 });
  });

  test("of a stream that fails breaks off, so that nobody takes it for the whole", async () => {
    const { content, fate, over } = watched(
      (async function* () {
        yield CHUNK;
        throw new Error("the disk went away");
      })(),
    );
    await using asked = await served((outgoing) => sendAnswer(withContent(new Response(null), content), outgoing));
    await expect(lengthOf(await asked.response)).rejects.toMatchObject({ code: "ECONNRESET" });
    await over;
    expect(fate.released).toBe(1);
  });

  test("whose reader goes away ends what the stream waits for", async () => {
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
    await using asked = await served((outgoing) => sendAnswer(withContent(new Response(null), content), outgoing));
    (await asked.response).destroy();
    await over;
    expect(fate).toEqual({ aborted: 1, released: 1 });
  });

  test("whose reader had gone before it began is not begun", async () => {
    const { content, fate, over } = watched(
      (async function* () {
        await new Promise(() => {});
        yield CHUNK;
      })(),
    );
    await using asked = await served(async (outgoing) => {
      asked.request.destroy();
      await once(outgoing, "close");
      await sendAnswer(withContent(new Response(null), content), outgoing);
    });
    await asked.response.catch(() => {});
    await over;
    expect(fate).toEqual({ aborted: 1, released: 1 });
  });
});
