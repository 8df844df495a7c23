import { once } from "node:events";
import { connect, createServer } from "node:net";
import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { settled } from "../../../test/support/settled.ts";
import type { CaissonError } from "../../contract/error/error.ts";
import { createForward } from "./forward.ts";
import { connectLocal, exchange, serveLocal } from "./testing-preview.ts";

async function forwardTo(port: number, options: { onRefused?: (error: unknown) => void } = {}) {
  const forward = await createForward({ connect: connectLocal, port, ...options });
  return { ...forward, [Symbol.asyncDispose]: () => forward.close() };
}

test("carries bytes both ways, and passes on a half-close", async () => {
  // Answers only after the client has sent everything.
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    let bytes = 0;
    for await (const part of socket) bytes += (part as Buffer).length;
    socket.end(`got ${bytes}`);
  });
  await using inside = await serveLocal(server);
  await using forward = await forwardTo(inside.port);
  const socket = connect({ port: forward.listenPort, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(Buffer.alloc(3_000_000));
  expect(String((await once(socket, "data"))[0])).toBe("got 3000000");
  await once(socket, "end");
});

test("carries a server that speaks first and closes", async () => {
  await using inside = await serveLocal(createServer((socket) => socket.end("hello")));
  await using forward = await forwardTo(inside.port);
  expect(await exchange(forward.listenPort, "")).toBe("hello");
});

test("slows down the writer inside if the reader does not read", async () => {
  let written = 0;
  const nearlyEndless = () =>
    new Duplex({
      read() {
        written += 65_536;
        this.push(written > 64_000_000 ? null : Buffer.alloc(65_536));
      },
      write: (_chunk, _encoding, done) => done(),
    });
  const forward = await createForward({ connect: async () => nearlyEndless(), port: 1 });
  const socket = connect(forward.listenPort, "127.0.0.1").pause();
  await once(socket, "connect");
  await expect.poll(() => written).toBeGreaterThan(0);
  expect(await settled(() => written)).toBeLessThan(32_000_000);
  socket.destroy();
  await forward.close();
});

test("resets the client if nothing listens inside, and reports it", async () => {
  const refused = Promise.withResolvers<unknown>();
  await using forward = await forwardTo(1, { onRefused: refused.resolve });
  const socket = connect(forward.listenPort, "127.0.0.1");
  await expect(once(socket, "close")).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(await refused.promise).toMatchObject({ code: "unavailable" } satisfies Partial<CaissonError>);
});

test("breaks the connection inside if the client's breaks", async () => {
  const accepted = Promise.withResolvers<Duplex>();
  await using inside = await serveLocal(createServer((socket) => accepted.resolve(socket)));
  await using forward = await forwardTo(inside.port);
  const socket = connect(forward.listenPort, "127.0.0.1");
  socket.write("x");
  const other = await accepted.promise;
  const closed = once(other.resume(), "close");
  socket.resetAndDestroy();
  await closed;
  expect(forward.connections()).toBe(0);
});

test("ends every connection at once on close", async () => {
  await using inside = await serveLocal(createServer((socket) => socket.write("hi")));
  const forward = await createForward({ connect: connectLocal, port: inside.port });
  const socket = connect(forward.listenPort, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "data");
  await Promise.all([forward.close(), once(socket, "close")]);
  await expect(createForward({ connect: connectLocal, port: 1, listenPort: inside.port })).rejects.toMatchObject({ code: "conflict" });
});
