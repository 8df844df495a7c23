import { once } from "node:events";
import { type Duplex, duplexPair } from "node:stream";
import { connect as tlsConnect } from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { settled } from "../../../test/support/settled.ts";
import { createEgressRig, type EgressRig, readAll } from "./testing.ts";

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
 * What buffers hold that somebody still has. They are freed in the background: a second collection waits for the first.
 */
function memoryBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  collect();
  return process.memoryUsage().arrayBuffers;
}

/** A connection as the guest carries it: a stream that is no socket. */
function carried(): Duplex {
  const [near, far] = duplexPair();
  near.on("error", () => {});
  rig.egress.handle({ stream: far, destination: null });
  return near;
}

describe("streams that are no sockets", () => {
  test("CONNECT, inspected TLS, and a body of some megabytes both ways", async () => {
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

describe("peers that behave badly", () => {
  test("a slow reader slows the server down; memory does not grow", async () => {
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
    // Until the server stands still: what it sends then would be held in memory.
    const standsStill = () => settled(() => written);
    await standsStill();
    const memoryBefore = memoryBytes();
    expect(written).toBeLessThan(30_000_000);
    const passed = rig.egress.stats().receivedBytes;
    expect(passed).toBeLessThan(10_000_000);
    // A reader that takes a little now and then is let have it, and nothing piles up behind it.
    for (let taken = 0; taken < 50_000_000; ) {
      const piece: Buffer | null = socket.read();
      if (piece === null) await once(socket, "readable");
      else taken += piece.length;
    }
    await standsStill();
    expect(rig.egress.stats().receivedBytes).toBeGreaterThan(passed + 30_000_000);
    expect(memoryBytes() - memoryBefore).toBeLessThan(5_000_000);
    // It can be ended although nobody reads.
    await rig.egress.close();
    socket.destroy();
  });

  test("a half-open peer: the end of one side is passed on, silence ends the rest", async () => {
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

  test("a server that breaks off in the middle of an answer is not taken for a whole one", async () => {
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

  test("a client that goes away while we connect leaves nothing behind", async () => {
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

  test("a policy that changes while a name is looked up counts", async () => {
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

describe("many", () => {
  test("a thousand connections at once, half of them tunnels", async () => {
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

  test("a small rate of requests is not slowed down by rules", async () => {
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
