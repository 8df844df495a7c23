import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { connect as tlsConnect } from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { settled } from "../../../test/support/settled.ts";
import { createEgressRig, type EgressRig, readAll } from "./testing-egress.ts";

let rig: EgressRig;
beforeEach(async () => {
  rig = await createEgressRig();
  rig.names.set("site.test", ["127.0.0.1"]);
});
afterEach(() => rig[Symbol.asyncDispose]());

const allow = (port: number, more: object = {}) =>
  rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true, ...more }] });
const until = async (done: () => boolean) => {
  while (!done()) await new Promise((next) => setTimeout(next, 5));
};

/**
 * Returns the bytes in buffers that are still referenced. They are freed in the background, so a second collection
 * waits for the first.
 */
function memoryBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  collect();
  return process.memoryUsage().arrayBuffers;
}

/** Opens a connection as the guest carries it: a stream that is not a socket. */
function carried(): Duplex {
  const [near, far] = duplexPair();
  near.on("error", () => {});
  rig.egress.handle({ stream: far, destination: null });
  return near;
}

describe("streams that are not sockets", () => {
  test("carry CONNECT, inspected TLS and some megabytes both ways", async () => {
    const body = Buffer.alloc(3_000_000, "abcdefgh");
    const port = await rig.https((request, response) => {
      let length = 0;
      request.on("data", (chunk: Buffer) => {
        length += chunk.length;
      });
      request.on("end", () => response.end(Buffer.concat([Buffer.from(`${length} `), body])));
    });
    allow(port, { methods: ["POST"] });
    const near = carried();
    near.write(`CONNECT site.test:${port} HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    expect(String(await once(near, "data"))).toContain("200 Connection Established");
    const tls = tlsConnect({ socket: near, servername: "site.test", ca: rig.inside.certificatePem });
    await once(tls, "secureConnect");
    tls.write(`POST / HTTP/1.1\r\nHost: site.test:${port}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`);
    tls.write(body);
    const answer = await readAll(tls);
    expect(answer.slice(answer.indexOf("\r\n\r\n") + 4)).toBe(`${body.length} ${body}`);
    const closed = rig.eventsOf("network.closed")[0] ?? (await rig.event("network.closed"));
    expect(closed.sentBytes).toBeGreaterThan(body.length);
    expect(closed.receivedBytes).toBeGreaterThan(body.length);
  });
});

describe("misbehaving peers", () => {
  test("a slow reader slows down the server instead of filling memory", async () => {
    let written = 0;
    const chunk = Buffer.alloc(65_536);
    const port = await rig.tcp((socket) => {
      const fill = () => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length;
        written += chunk.length;
      };
      socket.on("drain", fill);
      fill();
    });
    allow(port);
    const { socket } = await rig.tunnel(`site.test:${port}`);
    // Waits until the server blocks. Whatever it could still send would have to be held in memory.
    const standsStill = () => settled(() => written);
    await standsStill();
    const memoryBefore = memoryBytes();
    expect(written).toBeLessThan(30_000_000);
    const passed = rig.egress.stats().receivedBytes;
    expect(passed).toBeLessThan(10_000_000);
    // A reader that takes a little at a time gets its data, and nothing accumulates behind it.
    for (let bytesRead = 0; bytesRead < 50_000_000; ) {
      const piece: Buffer | null = socket.read();
      if (piece === null) await once(socket, "readable");
      else bytesRead += piece.length;
    }
    await standsStill();
    expect(rig.egress.stats().receivedBytes).toBeGreaterThan(passed + 30_000_000);
    expect(memoryBytes() - memoryBefore).toBeLessThan(5_000_000);
    // The egress can be closed without a reader.
    await rig.egress.close();
    socket.destroy();
  });

  test("a half-open peer's end is passed on, and its connection ends when silent", async () => {
    await using hasty = await createEgressRig({ limits: { idleMs: 100 } });
    hasty.names.set("site.test", ["127.0.0.1"]);
    let ended = false;
    const port = await hasty.tcp((socket) => socket.resume().on("end", () => (ended = true)));
    hasty.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
    const { socket } = await hasty.tunnel(`site.test:${port}`);
    socket.end("\0bye");
    await until(() => ended);
    expect(await readAll(socket)).toBe("");
    await until(() => hasty.egress.stats().connections === 0);
  });

  test("a server that resets within an answer does not appear to have finished it", async () => {
    const port = await rig.tcp((socket) => {
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", () => socket.resetAndDestroy()));
    });
    allow(port);
    const socket = await rig.dial();
    socket.write(`GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    const failed = new Promise((resolve) => socket.once("error", resolve));
    socket.resume();
    expect(await failed).toMatchObject({ code: "ECONNRESET" });
  });

  test("a client that disconnects while we connect leaves nothing behind", async () => {
    const waiting: (() => void)[] = [];
    await using slow = await createEgressRig({ resolve: () => new Promise((resolve) => waiting.push(() => resolve(["127.0.0.1"]))) });
    const port = await slow.tcp((socket) => void socket.resume());
    slow.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
    const socket = await slow.dial();
    socket.write(`CONNECT site.test:${port} HTTP/1.1\r\nHost: site.test\r\n\r\n`);
    await until(() => waiting.length === 1);
    socket.resetAndDestroy();
    await once(socket, "close");
    waiting[0]?.();
    await expect.poll(() => slow.egress.stats().connections).toBe(0);
    await slow.egress.close();
  });

  test("a client is refused if the policy changes during the lookup", async () => {
    const waiting: (() => void)[] = [];
    await using slow = await createEgressRig({ resolve: () => new Promise((resolve) => waiting.push(() => resolve(["127.0.0.1"]))) });
    let connections = 0;
    const port = await slow.tcp(() => void connections++);
    slow.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
    const socket = await slow.dial();
    socket.write(`CONNECT site.test:${port} HTTP/1.1\r\nHost: site.test\r\n\r\n`);
    await until(() => waiting.length === 1);
    slow.setPolicy({ mode: "none" });
    slow.egress.enforce();
    waiting[0]?.();
    expect(await readAll(socket)).toBe("");
    expect(connections).toBe(0);
  });
});

describe("load", () => {
  test("allows a thousand connections at once, half of them tunnels", async () => {
    const echo = await rig.tcp((socket) => socket.pipe(socket));
    const http = await rig.http((_request, response) => response.end("hello"));
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [echo, http], private: true }] });
    const streams = Array.from({ length: 1000 }, carried);
    const answers = streams.map(async (near, index) => {
      if (index % 2 === 0) {
        near.write(`GET http://site.test:${http}/ HTTP/1.1\r\nHost: site.test:${http}\r\n\r\n`);
        return String(await once(near, "data")).includes("200 OK");
      }
      near.write(`CONNECT site.test:${echo} HTTP/1.1\r\nHost: site.test:${echo}\r\n\r\n`);
      await once(near, "data");
      near.write(`\0${index}`);
      return String(await once(near, "data")) === `\0${index}`;
    });
    expect((await Promise.all(answers)).every((fine) => fine)).toBe(true);
    expect(rig.egress.stats().connections).toBe(1000);
    const more = carried();
    for (let index = 0; index < 24; index++) carried();
    more.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await rig.egress.close();
    expect(rig.egress.stats().connections).toBe(0);
    expect(rig.eventsOf("network.closed")).toHaveLength(1000);
    expect(rig.eventsOf("network.denied")).toMatchObject([{ reason: "too_many" }]);
  });

  test("answers hundreds of requests under a thousand rules", async () => {
    const port = await rig.http((_request, response) => response.end("hello"));
    rig.setPolicy({
      mode: "allow",
      rules: [
        ...Array.from({ length: 999 }, (_, index) => ({ host: `h${index}.test` })),
        { host: "site.test", ports: [port], private: true },
      ],
    });
    const near = carried();
    let answers = 0;
    near.on("data", (chunk: Buffer) => {
      answers += String(chunk).split("200 OK").length - 1;
    });
    for (let index = 0; index < 500; index++) near.write(`GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    await until(() => answers === 500);
    expect(rig.lookedUp).toEqual(["site.test"]);
  });
});
