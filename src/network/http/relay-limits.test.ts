import type { Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { ok, rigWith } from "../../../test/support/http-relay-rig.ts";
import { closed, GET } from "./testing-http.ts";

describe("limits", () => {
  test("answers 408 to a head that takes too long", async () => {
    const { client } = await rigWith({ upstream: () => {}, limits: { headMs: 100 } });
    client.send("GET / HTTP/1.1\r\nHos");
    const drip = setInterval(() => client.send("t"), 20);
    onTestFinished(() => clearInterval(drip));
    expect((await client.closed()).text).toContain("HTTP/1.1 408 Request Timeout");
  });

  test("closes the connection of a silent client", async () => {
    const { client } = await rigWith({
      upstream: (socket) => socket.on("data", () => socket.write(ok("x"))),
      limits: { keepAliveMs: 100 },
    });
    client.send(GET);
    expect(await client.closed()).toMatchObject({ clean: true });
  });

  test("answers 504 if connecting takes too long, and destroys the late connection", async () => {
    const { promise, resolve } = Promise.withResolvers<Duplex>();
    const { client } = await rigWith({ upstream: () => {}, forward: () => ({ connect: () => promise }), limits: { connectMs: 100 } });
    client.send(GET);
    await client.until("HTTP/1.1 504 Gateway Timeout");
    const [late] = duplexPair();
    resolve(late);
    await new Promise((done) => setImmediate(done));
    expect(late.destroyed).toBe(true);
  });

  test("answers 504 for a silent upstream, and breaks off if it stops midway", async () => {
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

  test("closes the connection if the client does not", async () => {
    const { rig, client } = await rigWith({ upstream: () => {}, limits: { lingerMs: 100 } });
    client.socket.removeAllListeners("end");
    client.send("nonsense\n");
    await client.until("HTTP/1.1 400 Bad Request");
    expect(await rig.settled()).toHaveLength(1);
  });

  test("ends both sides on abort", async () => {
    const abort = new AbortController();
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => abort.abort()), signal: abort.signal });
    client.send(GET);
    expect((await client.closed()).text).toBe("");
    await rig.settled();
    await closed(rig.upstreams[0]);
  });
});

describe("an answer before the end of the request body", () => {
  const early = (socket: Socket) => socket.once("data", () => socket.write(ok("enough")));
  const post = (bytes: number) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`;

  test("drops a short remainder, and the next request is served", async () => {
    const { rig, client } = await rigWith({ upstream: early });
    client.send(`${post(1000)}${"x".repeat(100)}`);
    await client.until("enough");
    client.send(`${"x".repeat(900)}${GET}`);
    await client.until("enough");
    // The first connection still has unwanted bytes in flight.
    expect(rig.upstreams).toHaveLength(2);
  });

  test("arrives even if a long remainder closes the connection", async () => {
    const { client } = await rigWith({ upstream: early, limits: { drainBytesMax: 100_000 } });
    client.send(post(50_000_000));
    expect(await client.until("enough")).toContain("200 OK");
    client.socket.write(Buffer.alloc(1_000_000));
    await client.closed();
  });

  test("is a 400 for a malformed body, and ends the upstream's connection", async () => {
    const { rig, client } = await rigWith({ upstream: (socket) => socket.once("data", () => client.send("xyz")) });
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    expect((await client.closed()).text).toContain("HTTP/1.1 400 Bad Request");
    await closed(rig.upstreams[0]);
  });
});
