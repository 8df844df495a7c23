import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { breakableLink } from "../../test/support/console-link.ts";
import { streamPrograms } from "../api/streams/testing.ts";
import { useServer } from "../api/testing.ts";
import { parseSpec } from "../sandbox/spec.ts";
import { connect } from "./connect.ts";
import { socketFetch } from "./socket-fetch.ts";

const { server, start, token, endedRun } = useServer({ programs: streamPrograms });
const silenceMs = 500;

/** What answers connections with these bytes, and then with nothing. */
async function speaking(bytes: string, { ends }: { ends: boolean }) {
  const sockets = new Set<Socket>();
  const listening = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("data", () => (ends ? socket.end(bytes) : socket.write(bytes)));
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const { port } = listening.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      listening.close();
    },
  };
}

describe("a connection that goes silent without closing", () => {
  test("ends a process that cannot be had again, and a held sandbox", async () => {
    await using link = await breakableLink(server().status.url);
    const { streams } = connect({ url: link.url, token: await token("run"), silenceMs });
    const held = await streams.createHeld({ spec: parseSpec({ keep: true }) });
    const process = await streams.openProcess(held.info.id, { argv: ["sleep", "1000"] });
    process.discardOutput();
    link.silenceStreams();
    expect(await process.ended).toMatchObject({ kind: "lost" });
    expect(await held.closed).toEqual({ why: "lost" });
    await held.release();
  });

  test("is found while a request waits, and while its answer does", async () => {
    for (const bytes of ["", 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"pid":']) {
      using silent = await speaking(bytes, { ends: false });
      // Only the first connection is answered at all: a sign of life is asked for over another.
      const { status } = connect({ url: silent.url, token: "x", silenceMs, fetch: once(silent.url) });
      await expect(status()).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("does not answer") });
    }
  });

  test("that ends in the middle of an answer is said to have done so", async () => {
    using broken = await speaking("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", { ends: true });
    await expect(connect({ url: broken.url, token: "x" }).status()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("broke off in the middle of its answer"),
    });
  });
});

/** The first request gets through; the health check after it finds no listener. */
function once(url: string): typeof fetch {
  return (asked, init) => (String(asked) === `${url}/healthz` ? Promise.reject(new Error("no line")) : fetch(asked, init));
}

test("a redirect is not followed, with the token or without", async () => {
  let asked = 0;
  const other = createServer((socket) => {
    asked += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  using lying = await speaking(`HTTP/1.1 307 Away\r\nlocation: http://127.0.0.1:${port}/\r\ncontent-length: 0\r\n\r\n`, { ends: true });
  await expect(connect({ url: lying.url, token: "x" }).shutDown()).rejects.toMatchObject({ code: "protocol" });
  other.close();
  expect(asked).toBe(0);
});

test("a client waits for a station to restart only if it had reached it before", async () => {
  const { socketPath } = server();
  const client = connect({ url: "http://station", fetch: socketFetch(socketPath) });
  const run = await endedRun();
  await client.status();
  await server().close();
  const waiting = client.runs.wait(run);
  await expect(connect({ url: "http://station", fetch: socketFetch(socketPath) }).status()).rejects.toMatchObject({
    code: "unavailable",
    details: { isAbsent: true },
  });
  await using _again = await start();
  expect(await waiting).toMatchObject({ run, finish: "done" });
});

test("an answer that does not end is given up, by fetch and by the socket", async () => {
  const endless = createHttpServer((_request, answer) => {
    answer.writeHead(200, { "content-type": "application/json" });
    const piece = `"${"a".repeat(1024 * 1024)}",`;
    const send = (left: number): void => {
      if (left === 0 || answer.destroyed) return void answer.end();
      answer.write(piece, () => send(left - 1));
    };
    answer.write("[");
    send(200);
  });
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-endless-"));
  const path = join(folder, "socket");
  try {
    for (const place of [path, 0]) {
      await new Promise<void>((resolve) => endless.listen(...([place] as [string]), resolve));
      const { port } = typeof place === "string" ? { port: 0 } : (endless.address() as { port: number });
      const to = typeof place === "string" ? { url: "http://station", fetch: socketFetch(path) } : { url: `http://127.0.0.1:${port}` };
      await expect(connect(to).status()).rejects.toMatchObject({ code: "protocol", message: expect.stringContaining("longer than") });
      endless.closeAllConnections();
      await new Promise((resolve) => endless.close(resolve));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
