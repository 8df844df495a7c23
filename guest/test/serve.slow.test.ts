import { readdirSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { decodeFields, entries, shapes } from "../../src/sandbox/guest/fields.ts";
import { encodeCredit, encodeDataHead } from "../../src/sandbox/guest/raw.ts";
import { isSanitised } from "./files-client.ts";
import { errorCode, type Link, type Stream, startGuest, useGuest } from "./guest-driver.ts";
import { statusOf, until } from "./machine-processes.ts";

const { guest, link } = useGuest();
const sockets: Socket[] = [];
afterAll(() => {
  for (const socket of sockets) socket.destroy();
});

/** Returns a loopback port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function claim(over: Link, port: number): Promise<Stream> {
  const stream = over.open("LISTEN", { port });
  const answer = await stream.next();
  expect(answer.type === "ERROR" ? errorCode(answer) : answer.type).toBe("OK");
  return stream;
}

const lastIds = new WeakMap<Link, number>();
/** Returns the next connection that a link gets: the guest's ids are 2, 4, 6 … on each link. */
async function accepted(over: Link, port: number): Promise<Stream> {
  const id = (lastIds.get(over) ?? 0) + 2;
  lastIds.set(over, id);
  const stream = over.stream(id);
  const frame = await stream.next();
  expect(frame.type).toBe("ACCEPTED");
  expect(decodeFields("ACCEPTED", shapes.ACCEPTED, frame.payload)).toEqual({ port, address: "", addressPort: 0 });
  return stream;
}

function dial(port: number, host = "127.0.0.1"): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, allowHalfOpen: true });
    sockets.push(socket);
    socket.once("connect", () => resolve(socket)).once("error", reject);
    socket.on("error", () => {});
  });
}
async function readAll(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
const outcome = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
    socket.on("end", () => resolve("end"));
    socket.resume();
  });

describe("a port that the host serves", () => {
  test.each(["127.0.0.1", "::1"])("carries bytes of a connection to %s both ways, with half-close", async (host) => {
    const port = await freePort();
    await claim(link, port);
    const socket = await dial(port, host);
    const stream = await accepted(link, port);
    const sent = Buffer.alloc(60_000, "pattern");
    socket.end(sent);
    const got: Buffer[] = [];
    for (let frame = await stream.next(); frame.type === "DATA"; frame = await stream.next()) got.push(frame.payload);
    expect(Buffer.concat(got).equals(sent)).toBe(true);
    for (let at = 0; at < sent.length; at += 10_000) {
      link.send(encodeDataHead(stream.id, 10_000));
      link.send(sent.subarray(at, at + 10_000));
    }
    link.frame("END", stream.id);
    expect((await readAll(socket)).equals(sent)).toBe(true);
  });

  test("waits for the host's credit, and grants its own", async () => {
    const port = await freePort();
    await claim(link, port);
    const socket = await dial(port);
    const stream = await accepted(link, port);
    const total = 5_000_000;
    socket.write(Buffer.alloc(total));
    let received = 0;
    while (received < 65_536) received += (await stream.next()).payload.length;
    expect(received).toBe(65_536);
    await link.ping(); // more data would have arrived before the answer
    link.send(encodeCredit(stream.id, total - received));
    while (received < total) received += (await stream.next()).payload.length;
    // A connection in use is worth the full window.
    link.send(encodeDataHead(stream.id, 65_536));
    link.send(Buffer.alloc(65_536));
    const credit = await stream.next();
    expect([credit.type, credit.payload.readUInt32LE(0)]).toEqual(["CREDIT", 1_048_576]);
    link.frame("CANCEL", stream.id);
    expect(await outcome(socket)).toBe("ECONNRESET");
  });

  test("closes a connection that sends more than the window", async () => {
    const port = await freePort();
    const other = await guest.link();
    await claim(other, port);
    const socket = await dial(port);
    socket.pause();
    const { id } = await accepted(other, port);
    for (let at = 0; at < 256; at++) {
      other.send(encodeDataHead(id, 262_144));
      other.send(Buffer.alloc(262_144));
    }
    await expect(other.closed, "it is closed").resolves.toBeUndefined();
    await expect(link.ping(), "others are served").resolves.toBeUndefined();
  });

  test("reports that the client broke the connection", async () => {
    const port = await freePort();
    await claim(link, port);
    const socket = await dial(port);
    const stream = await accepted(link, port);
    socket.resetAndDestroy();
    expect(errorCode(await stream.next())).toBe("io");
  });

  test("passes connections to the newest claim, then to the one before it", async () => {
    const port = await freePort();
    const [second, third] = [await guest.link(), await guest.link()];
    await claim(link, port);
    const two = await claim(second, port);
    await claim(third, port);
    await dial(port);
    await accepted(third, port);
    third.close();
    const socket = await untilServedBy(second, port);
    second.frame("CANCEL", two.id);
    await second.ping();
    await dial(port);
    await accepted(link, port);
    // A connection continues without the claim that accepted it.
    socket.write("still");
    expect((await second.stream(lastIds.get(second) as number).next()).payload.toString()).toBe("still");
    second.close();
    expect(await outcome(socket)).toBe("ECONNRESET");
  });

  /** The end of another connection is not visible on this one: dials until the guest uses this one. */
  async function untilServedBy(over: Link, port: number): Promise<Socket> {
    for (;;) {
      const socket = await dial(port);
      const first = await Promise.race([accepted(over, port), outcome(socket)]);
      if (typeof first !== "string") return socket;
      lastIds.set(over, (lastIds.get(over) as number) - 2);
    }
  }

  test("answers that no process serves it, without a reset for long requests", async () => {
    const port = await freePort();
    const { id } = await claim(link, port);
    link.frame("CANCEL", id);
    await link.ping();
    for (const size of [0, 10, 300_000]) {
      const socket = await dial(port);
      // A client that still writes after the answer has arrived must be able to read it: a reset would fail the write,
      // and with it the connection.
      for (let i = 0; i < 3; i++) {
        socket.write(Buffer.alloc(size, "x"));
        await link.ping();
      }
      const text = (await readAll(socket)).toString();
      expect(text).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
      const [head, body] = text.split("\r\n\r\n") as [string, string];
      expect(head).toContain(`content-length: ${body.length}`);
      expect(head).toContain("connection: close");
      expect(body).toMatch(/no process on the host/i);
      socket.end();
    }
  });

  test("disconnects a refused client that keeps its connection open", async () => {
    const port = await freePort();
    const { id } = await claim(link, port);
    link.frame("CANCEL", id);
    await link.ping();
    const socket = await dial(port);
    await readAll(socket);
    await until("the connection is closed", () => {
      socket.write("are you there?");
      return socket.destroyed;
    });
    expect(socket.destroyed).toBe(true);
  });

  test("is refused if it is in use or invalid", async () => {
    const server: Server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    expect(await link.ask("LISTEN", { port })).toBe("exists");
    await new Promise((resolve) => server.close(resolve));
    expect(await link.ask("LISTEN", { port: 0 })).toBe("invalid");
    expect(await link.ask("LISTEN", { port: 65_536 })).toBe("invalid");
  });

  test("stays reserved without a claim, and is not listed", async () => {
    const port = await freePort();
    const { id } = await claim(link, port);
    link.frame("CANCEL", id);
    await link.ping();
    const server = createServer();
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => server.once("error", resolve).listen(port, "127.0.0.1"));
    expect(error.code).toBe("EADDRINUSE");
    const listing = link.open("LISTENERS", {});
    const ports = [];
    for (let frame = await listing.next(); frame.type === "ENTRY"; frame = await listing.next())
      ports.push(decodeFields("ENTRY", entries.listener, frame.payload).port);
    expect(ports).not.toContain(port);
  });

  test("ignores frames that do not belong on a claim", async () => {
    const port = await freePort();
    const { id } = await claim(link, port);
    for (const type of ["DATA", "END", "CREDIT", "ACK", "STDIN"] as const) link.frame(type, id, Buffer.alloc(4));
    await expect(link.ping(), "others are served").resolves.toBeUndefined();
    link.frame("CANCEL", id);
  });
});

test("connections past the limit wait until others end", async () => {
  // Connections that other tests left open would count as well.
  await using fresh = await startGuest();
  const port = await freePort();
  const other = await fresh.link();
  await claim(other, port);
  const dialled: Promise<Socket>[] = [];
  for (let i = 0; i < 2_148; i++) dialled.push(dial(port));
  const clients = await Promise.all(dialled);
  const streams: Stream[] = [];
  for (let i = 0; i < 2_048; i++) streams.push(await accepted(other, port));
  await other.ping();
  const waiting = accepted(other, port);
  let came = false;
  void waiting.then(() => {
    came = true;
  });
  await other.ping();
  expect(came).toBe(false);
  // All of them are alive at once.
  for (const [i, client] of clients.slice(0, 50).entries()) client.write(String(i));
  for (const stream of streams.slice(0, 200)) other.frame("CANCEL", stream.id);
  await waiting;
  for (let i = 1; i < 100; i++) await accepted(other, port);
  other.close();
  for (const client of clients) client.destroy();
});

// The sanitizer holds freed memory back on purpose.
test.skipIf(isSanitised)("connections leave no memory and no descriptor behind", async () => {
  const port = await freePort();
  const other = await guest.link();
  await claim(other, port);
  const round = async () => {
    for (let i = 0; i < 500; i++) {
      const socket = await dial(port);
      const stream = await accepted(other, port);
      socket.end("question");
      while ((await stream.next()).type !== "END");
      other.send(encodeDataHead(stream.id, 6));
      other.send(Buffer.from("answer"));
      other.frame("END", stream.id);
      expect((await readAll(socket)).toString()).toBe("answer");
    }
    const pid = guest.child.pid as number;
    await other.ping();
    return { memoryKib: statusOf(pid, "VmRSS"), descriptors: readdirSync(`/proc/${pid}/fd`).length };
  };
  await round();
  const before = await round();
  const after = await round();
  expect(after.memoryKib - before.memoryKib).toBeLessThan(200);
  expect(after.descriptors).toBe(before.descriptors);
  other.close();
});
