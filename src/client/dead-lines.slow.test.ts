import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { breakableLink } from "../../test/support/console-link.ts";
import { streamPrograms } from "../api/streams/testing-streams.ts";
import { parseSandboxConfig } from "../sandbox/sandbox-config.ts";
import { connect } from "./connect.ts";
import { socketFetch } from "./socket-fetch.ts";

const { server, start, token, endedRun } = useServer({ programs: streamPrograms });
const silenceMs = 500;

/** Answers each connection with these bytes, then ends it or stays silent. */
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
  test("ends a process that cannot be resumed, and a held sandbox", async () => {
    await using link = await breakableLink(server().status.url);
    const { streams } = connect({ url: link.url, token: await token("run"), silenceMs });
    const held = await streams.createHeld({ spec: parseSandboxConfig({ keep: true }) });
    const process = await streams.openProcess(held.info.id, { argv: ["sleep", "1000"] });
    process.discardOutput();
    link.silenceStreams();
    expect(await process.ended).toMatchObject({ kind: "lost" });
    expect(await held.closed).toEqual({ why: "lost" });
    await held.release();
  });

  test("fails a request before and in the middle of its answer", async () => {
    for (const bytes of ["", 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"pid":']) {
      using silent = await speaking(bytes, { ends: false });
      // Only the first connection is answered: health checks use another.
      const { status } = connect({ url: silent.url, token: "x", silenceMs, fetch: once(silent.url) });
      await expect(status()).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("does not answer") });
    }
  });

  test("reports an answer that ends midway", async () => {
    using broken = await speaking("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", { ends: true });
    await expect(connect({ url: broken.url, token: "x" }).status()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("broke off in the middle of its answer"),
    });
  });
});

/** Fails the health check, so only the first request gets through. */
function once(url: string): typeof fetch {
  return (input, init) => (String(input) === `${url}/healthz` ? Promise.reject(new Error("no line")) : fetch(input, init));
}

test("does not follow a redirect", async () => {
  let connectionCount = 0;
  const other = createServer((socket) => {
    connectionCount += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  using lying = await speaking(`HTTP/1.1 307 Away\r\nlocation: http://127.0.0.1:${port}/\r\ncontent-length: 0\r\n\r\n`, { ends: true });
  await expect(connect({ url: lying.url, token: "x" }).shutDown()).rejects.toMatchObject({ code: "protocol" });
  other.close();
  expect(connectionCount).toBe(0);
});

test("waits for a restarting station only if it was reached before", async () => {
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

test("gives up on an endless answer, with fetch and with the socket", async () => {
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
