import { once } from "node:events";
import type { Socket } from "node:net";
import { type Duplex, duplexPair, PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ResponseHead } from "./head.ts";
import { relayHttp } from "./relay.ts";
import type { BodyTransform } from "./relay-options.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const _closed = (socket: Socket | undefined) => (socket === undefined || socket.closed ? Promise.resolve() : once(socket, "close"));

describe("back pressure", () => {
  const BOUND = 1_000_000;
  const QUIET_MS = 200;
  const PATIENCE_MS = 5_000;
  const chunk = Buffer.alloc(65_536, 1);

  /** Writes as long as the stream accepts it. Resolves with the byte count when nothing was accepted for a while. */
  async function fill(stream: Duplex, quietMs: number): Promise<number> {
    let bytes = 0;
    while (bytes < BOUND * 10) {
      stream.write(chunk);
      bytes += chunk.length;
      if (!stream.writableNeedDrain) continue;
      const drained = await Promise.race([once(stream, "drain"), new Promise<null>((resolve) => setTimeout(resolve, quietMs, null))]);
      if (drained === null) return bytes;
    }
    return bytes;
  }

  async function pair(request: string, transform?: () => BodyTransform) {
    const [client, relayClient] = duplexPair();
    const [upstream, relayUpstream] = duplexPair();
    const response = transform === undefined ? {} : { response: (head: ResponseHead) => ({ head, body: transform() }) };
    const over = relayHttp(relayClient, {
      decide: (head) => ({ kind: "forward", key: "k", request: head, connect: async () => relayUpstream, ...response }),
    });
    client.write(request);
    upstream.once("readable", () => upstream.read());
    await once(upstream, "readable");
    onTestFinished(async () => {
      client.destroy();
      relayClient.destroy();
      upstream.destroy();
      await over;
    });
    return { client, upstream };
  }

  test.each([
    ["plain", undefined],
    ["through a Transform", () => new PassThrough()],
    ["through a function", () => (bytes: Buffer) => bytes],
  ])("holds up the answer, %s", async (_name, transform) => {
    const { client, upstream } = await pair(GET, transform);
    upstream.write(`HTTP/1.1 200 OK\r\nContent-Length: ${BOUND * 100}\r\n\r\n`);
    const before = await fill(upstream, QUIET_MS);
    expect(before).toBeLessThan(BOUND);
    let read = 0;
    client.on("data", (bytes: Buffer) => {
      read += bytes.length;
    });
    while (read < before) await once(client, "data");
    expect(await fill(upstream, PATIENCE_MS)).toBeGreaterThan(BOUND * 9);
  });

  test("holds up the request", async () => {
    const { client, upstream } = await pair(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${BOUND * 100}\r\n\r\n`);
    const before = await fill(client, QUIET_MS);
    expect(before).toBeLessThan(BOUND);
    upstream.resume();
    upstream.on("data", () => {});
    expect(await fill(client, PATIENCE_MS)).toBeGreaterThan(BOUND * 9);
  });

  test("holds up the decisions on pipelined requests", async () => {
    const [client, relayClient] = duplexPair();
    let decisions = 0;
    const over = relayHttp(relayClient, {
      decide: () => {
        decisions += 1;
        return { kind: "answer", status: 200, body: "x".repeat(10_000) };
      },
    });
    client.write(GET.repeat(1000));
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    expect(decisions).toBeLessThan(30);
    let read = 0;
    client.on("data", (bytes: Buffer) => {
      read += bytes.length;
    });
    while (read < 10_000 * 1000) await once(client, "data");
    expect(decisions).toBe(1000);
    client.destroy();
    relayClient.destroy();
    await over;
  });
});
