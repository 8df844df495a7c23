import type { Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { ok, rigWith } from "../../../test/support/http-relay-rig.ts";
import { closed, GET } from "./testing.ts";

describe("limits", () => {
  test("a head that takes too long is answered with 408", async () => {
    const { client } = await rigWith({ upstream: () => {}, limits: { headMs: 100 } });
    client.send("GET / HTTP/1.1\r\nHos");
    const drip = setInterval(() => client.send("t"), 20);
    onTestFinished(() => clearInterval(drip));
    expect((await client.closed()).text).toContain("HTTP/1.1 408 Request Timeout");
  });

  test("a client that says nothing is closed", async () => {
    const { client } = await rigWith({
      upstream: (socket) => socket.on("data", () => socket.write(ok("x"))),
      limits: { keepAliveMs: 100 },
    });
    client.send(GET);
    expect(await client.closed()).toMatchObject({ clean: true });
  });

  test("connecting that takes too long is a 504, and what comes late is destroyed", async () => {
    const { promise, resolve } = Promise.withResolvers<Duplex>();
    const { client } = await rigWith({ upstream: () => {}, forward: () => ({ connect: () => promise }), limits: { connectMs: 100 } });
    client.send(GET);
    await client.until("HTTP/1.1 504 Gateway Timeout");
    const [late] = duplexPair();
    resolve(late);
    await new Promise((done) => setImmediate(done));
    expect(late.destroyed).toBe(true);
  });

  test("an upstream that does not answer is a 504; one that stops answering breaks the connection", async () => {
    const { rig, client } = await rigWith({
      upstream: (socket, index) => socket.on("data", () => index === 1 && socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na")),
      limits: { idleMs: 100 },
    });
    client.send(GET);
    await client.until("HTTP/1.1 504 Gateway Timeout");
    client.send(GET);
    expect((await client.closed()).clean).toBe(false);
    await closed(rig.upstreams[1]);
  });

  test("a client that does not close after us is closed", async () => {
    const { rig, client } = await rigWith({ upstream: () => {}, limits: { lingerMs: 100 } });
    client.socket.removeAllListeners("end");
    client.send("nonsense\n");
    await client.until("HTTP/1.1 400 Bad Request");
    expect(await rig.settled()).toHaveLength(1);
  });

  test("abort ends both sides", async () => {
    const abort = new AbortController();
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => abort.abort()), signal: abort.signal });
    client.send(GET);
    expect((await client.closed()).text).toBe("");
    await rig.settled();
    await closed(rig.upstreams[0]);
  });
});

describe("an answer that comes before the whole body was sent", () => {
  const early = (socket: Socket) => socket.once("data", () => socket.write(ok("enough")));
  const post = (bytes: number) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`;

  test("a short rest is dropped, and the next request is answered", async () => {
    const { rig, client } = await rigWith({ upstream: early });
    client.send(`${post(1000)}${"x".repeat(100)}`);
    await client.until("enough");
    client.send(`${"x".repeat(900)}${GET}`);
    await client.until("enough");
    // The first has bytes on their way that nobody asked for any more.
    expect(rig.upstreams).toHaveLength(2);
  });

  test("with a long rest the connection is closed, and the answer still arrives", async () => {
    const { client } = await rigWith({ upstream: early, limits: { drainBytesMax: 100_000 } });
    client.send(post(50_000_000));
    expect(await client.until("enough")).toContain("200 OK");
    client.socket.write(Buffer.alloc(1_000_000));
    await client.closed();
  });

  test("a body that turns out not to be one is answered with 400, and ends the upstream's connection", async () => {
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => client.send("xyz")) });
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    expect((await client.closed()).text).toContain("HTTP/1.1 400 Bad Request");
    await closed(rig.upstreams[0]);
  });
});
