import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { encodeFrame } from "./frame.ts";
import { Link } from "./link.ts";
import { Outbox } from "./outbox.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A socket that records writes immediately, and completes them when `take` is called. */
function slowSocket() {
  const writes: Buffer[] = [];
  const takers: (() => void)[] = [];
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      writes.push(Buffer.from(chunk));
      takers.push(done);
    },
    writev(chunks: { chunk: Buffer }[], done) {
      writes.push(Buffer.concat(chunks.map(({ chunk }) => chunk)));
      takers.push(done);
    },
  });
  return { socket, writes, take: () => takers.shift()?.() };
}

const tick = () => new Promise<void>((resolve) => process.nextTick(resolve));

test("sends a turn's first piece at the end of its tick, and batches the rest", async () => {
  const { socket, writes, take } = slowSocket();
  const outbox = new Outbox(socket);
  await turn();
  outbox.add(Buffer.from("first"));
  await tick();
  expect(writes.map(String)).toEqual(["first"]);
  await take();
  for (const word of ["second", "third", "fourth"]) {
    outbox.add(Buffer.from(word));
    await tick();
  }
  expect(writes).toHaveLength(1);
  await turn();
  expect(writes.map(String)).toEqual(["first", "secondthirdfourth"]);
});

test("copies small pieces of the same work into one write, in order", async () => {
  const { socket, writes } = slowSocket();
  const outbox = new Outbox(socket);
  const piece = Buffer.from("abc");
  for (let i = 0; i < 100; i++) {
    outbox.add(piece);
    piece[0] = 97 + (i % 26);
  }
  expect(writes).toHaveLength(0);
  expect(outbox.queuedBytes).toBe(300);
  await turn();
  expect(writes).toHaveLength(1);
  expect(writes[0]?.toString().slice(0, 12)).toBe("abcabcbbccbc");
});

test("sends a large piece immediately, after the pieces before it", () => {
  const { socket, writes } = slowSocket();
  const outbox = new Outbox(socket);
  outbox.add(Buffer.from("head"));
  outbox.add(Buffer.alloc(100_000, "b"));
  expect(writes.map(({ length }) => length)).toEqual([100_004]);
  expect(writes[0]?.toString("latin1", 0, 5)).toBe("headb");
});

test("sends immediately if more is held back than a turn may hold", async () => {
  const { socket, writes, take } = slowSocket();
  const outbox = new Outbox(socket);
  const sent = Array.from({ length: 1_000 }, (_, i) => Buffer.alloc(1_000, i));
  for (const piece of sent) outbox.add(piece);
  expect(writes.length).toBeGreaterThan(0);
  for (let i = 0; i < 10; i++) {
    await turn();
    take();
  }
  expect(Buffer.concat(writes).equals(Buffer.concat(sent))).toBe(true);
});

test("resolves waiters in order, when the socket has taken their bytes", async () => {
  const { socket, take } = slowSocket();
  const outbox = new Outbox(socket);
  const calls: string[] = [];
  outbox.whenWritten(() => calls.push("nothing to wait for"));
  outbox.add(Buffer.alloc(50_000));
  outbox.whenWritten(() => calls.push("first"));
  outbox.add(Buffer.from("second"));
  outbox.whenWritten(() => calls.push("second"));
  await turn();
  expect(calls).toEqual(["nothing to wait for"]);
  await take();
  await turn();
  expect(calls).toEqual(["nothing to wait for", "first"]);
  take();
  await turn();
  expect(calls).toEqual(["nothing to wait for", "first", "second"]);
});

test("resolves a waiter that is added after a small write", async () => {
  const { socket, take } = slowSocket();
  const outbox = new Outbox(socket);
  let isNotified = false;
  outbox.add(Buffer.from("small"));
  await turn();
  outbox.whenWritten(() => {
    isNotified = true;
  });
  await turn();
  expect(isNotified).toBe(false);
  take();
  await turn();
  take();
  await turn();
  expect(isNotified).toBe(true);
});

test("drop resolves the waiters and writes nothing more", async () => {
  const { socket, writes } = slowSocket();
  const outbox = new Outbox(socket);
  let isNotified = false;
  outbox.add(Buffer.from("never"));
  outbox.whenWritten(() => {
    isNotified = true;
  });
  outbox.drop();
  await turn();
  expect({ told: isNotified, writes, queued: outbox.queuedBytes }).toEqual({ told: true, writes: [], queued: 0 });
});

test("the link drops a guest that makes us answer but reads nothing", async () => {
  const { socket } = slowSocket();
  const link = new Link({ socket });
  let sent = 0;
  for (; !link.isClosed && sent < 10_000_000; sent++) link.send(encodeFrame("CANCEL", 1));
  expect(await link.closed).toMatchObject({ code: "protocol" });
  expect(sent * 12).toBeLessThan(33 * 1024 * 1024);
});

test("a thousand mostly idle connections take little memory", async () => {
  const { socket, writes } = slowSocket();
  socket.setMaxListeners(0);
  const before = process.memoryUsage().arrayBuffers;
  const outboxes = Array.from({ length: 1000 }, () => new Outbox(socket));
  for (const outbox of outboxes) outbox.add(encodeFrame("CANCEL", 1));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1000 * 4096);
  await turn();
  expect(writes.length).toBeGreaterThan(0);
});

test("writes pieces of any size whole and in order while the slab grows", async () => {
  const { socket, writes, take } = slowSocket();
  const outbox = new Outbox(socket);
  const pieces = Array.from({ length: 400 }, (_, at) => Buffer.alloc((at * 977) % 20_000, at));
  for (const [at, piece] of pieces.entries()) {
    outbox.add(piece);
    if (at % 50 === 0) await turn();
    take();
  }
  for (let at = 0; at < 1000; at++) {
    await turn();
    take();
  }
  expect(Buffer.concat(writes).equals(Buffer.concat(pieces))).toBe(true);
});
