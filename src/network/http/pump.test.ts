import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type Duplex, duplexPair, PassThrough, Transform } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { pump } from "./pump.ts";

/** Returns both ends of a TCP connection on loopback. */
async function tcpPair(): Promise<[Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const near = connect({ port: (server.address() as { port: number }).port, host: "127.0.0.1", allowHalfOpen: true });
  const [far] = (await once(server, "connection")) as [Socket];
  server.close();
  for (const socket of [near, far]) socket.on("error", () => {});
  onTestFinished(() => {
    near.destroy();
    far.destroy();
  });
  return [near, far];
}

async function read(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test("carries bytes unchanged both ways, and passes on each end separately", async () => {
  const [client, a] = await tcpPair();
  const [b, server] = await tcpPair();
  let sent = 0;
  let received = 0;
  const pumped = pump(a, b, {
    first: Buffer.from("first"),
    onBytes: (out, back) => {
      sent += out;
      received += back;
    },
  });
  const question = randomBytes(3_000_000);
  const answer = randomBytes(2_000_000);
  client.end(question);
  const arrived = await read(server);
  expect(arrived.subarray(0, 5).toString()).toBe("first");
  expect(arrived.subarray(5).equals(question)).toBe(true);
  server.end(answer);
  expect(
    createHash("sha256")
      .update(await read(client))
      .digest("hex"),
  ).toBe(createHash("sha256").update(answer).digest("hex"));
  expect(await pumped).toEqual({ sent: question.length + 5, received: answer.length, error: null });
  expect([sent, received]).toEqual([question.length + 5, answer.length]);
  expect([a.destroyed, b.destroyed]).toEqual([true, true]);
});

test("transforms what comes back, including early bytes", async () => {
  const [client, a] = duplexPair();
  const [b, server] = duplexPair();
  const transformBack = new Transform({ transform: (chunk, _encoding, done) => done(null, chunk.toString().toUpperCase()) });
  const pumped = pump(a, b, { firstBack: Buffer.from("early "), transformBack });
  server.end("late");
  client.end("x");
  expect((await read(client)).toString()).toBe("EARLY LATE");
  expect((await read(server)).toString()).toBe("x");
  expect((await pumped).error).toBeNull();
});

test.each(["client", "server"])("a reset of the %s destroys both, and the other sees no clean end", async (who) => {
  const [client, a] = await tcpPair();
  const [b, server] = await tcpPair();
  const pumped = pump(a, b);
  client.write("hello");
  await once(server, "data");
  const [resetSocket, left] = who === "client" ? [client, server] : [server, client];
  const ends: string[] = [];
  left.on("end", () => ends.push("end")).resume();
  resetSocket.resetAndDestroy();
  await new Promise((resolve) => left.once("close", resolve));
  expect(ends).toEqual([]);
  expect((await pumped).error).toBeInstanceOf(Error);
  expect([a.destroyed, b.destroyed]).toEqual([true, true]);
});

test("destroys both if the transform fails", async () => {
  const [client, a] = duplexPair();
  const [b, server] = duplexPair();
  client.on("error", () => {});
  server.on("error", () => {});
  const pumped = pump(a, b, { transformBack: new Transform({ transform: (_chunk, _encoding, done) => done(new Error("no")) }) });
  server.write("x");
  expect((await pumped).error?.message).toBe("no");
});

test("destroys the other side if one was already destroyed", async () => {
  const [, a] = duplexPair();
  const [b] = duplexPair();
  a.destroy();
  await once(a, "close");
  expect((await pump(a, b)).error).toBeInstanceOf(Error);
  expect(b.destroyed).toBe(true);
});

test("destroys both when idle or aborted", async () => {
  for (const options of [{ idleMs: 40 }, { signal: AbortSignal.timeout(20) }, { signal: AbortSignal.abort() }]) {
    const [, a] = duplexPair();
    const [b] = duplexPair();
    expect((await pump(a, b, options)).error).toMatchObject({ code: "idleMs" in options ? "timeout" : "cancelled" });
    expect([a.destroyed, b.destroyed]).toEqual([true, true]);
  }
});

test("is not idle while there is traffic", async () => {
  const [client, a] = duplexPair();
  const [b, server] = duplexPair();
  const pumped = pump(a, b, { idleMs: 80 });
  server.resume();
  for (let i = 0; i < 15; i += 1) {
    client.write("x");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  client.end();
  server.end();
  client.resume();
  expect(await pumped).toEqual({ sent: 15, received: 0, error: null });
});

test.each([
  ["directly", undefined],
  ["through a transform", new PassThrough()],
])("slows down the writer if the reader does not read, %s", async (_name, transformBack) => {
  const [client, a] = duplexPair();
  const [b, server] = duplexPair();
  const abort = new AbortController();
  const pumped = pump(a, b, { signal: abort.signal, ...(transformBack === undefined ? {} : { transformBack }) });
  const chunk = Buffer.alloc(65_536);
  let written = 0;
  for (;;) {
    written += chunk.length;
    if (!server.write(chunk)) {
      const drained = await Promise.race([once(server, "drain"), new Promise<null>((resolve) => setTimeout(resolve, 200, null))]);
      if (drained === null) break;
    }
    expect(written).toBeLessThan(1_000_000);
  }
  let got = 0;
  client.on("data", (bytes: Buffer) => {
    got += bytes.length;
  });
  while (got < written) await once(client, "data");
  abort.abort();
  client.on("error", () => {});
  server.on("error", () => {});
  await pumped;
});
