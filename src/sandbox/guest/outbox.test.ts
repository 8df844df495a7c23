import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { encodeFrame } from "./frame.ts";
import { Link } from "./link.ts";
import { Outbox } from "./outbox.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A socket that notes what it is given at once, and takes it when told to. */
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

test("what the first work of a turn sends goes at its end, and what the rest sends together", async () => {
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

test("the small pieces of one piece of work are one write, in order, and copied", async () => {
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

test("a large piece goes at once, after what came before it", () => {
  const { socket, writes } = slowSocket();
  const outbox = new Outbox(socket);
  outbox.add(Buffer.from("head"));
  outbox.add(Buffer.alloc(100_000, "b"));
  expect(writes.map(({ length }) => length)).toEqual([100_004]);
  expect(writes[0]?.toString("latin1", 0, 5)).toBe("headb");
});

test("what is more than a turn may hold back goes at once, whatever its pieces", async () => {
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

test("who waits is told when the socket took the bytes, in order, and not before", async () => {
  const { socket, take } = slowSocket();
  const outbox = new Outbox(socket);
  const told: string[] = [];
  outbox.whenWritten(() => told.push("nothing to wait for"));
  outbox.add(Buffer.alloc(50_000));
  outbox.whenWritten(() => told.push("first"));
  outbox.add(Buffer.from("second"));
  outbox.whenWritten(() => told.push("second"));
  await turn();
  expect(told).toEqual(["nothing to wait for"]);
  await take();
  await turn();
  expect(told).toEqual(["nothing to wait for", "first"]);
  take();
  await turn();
  expect(told).toEqual(["nothing to wait for", "first", "second"]);
});

test("who waits only after a small piece was written is told, too", async () => {
  const { socket, take } = slowSocket();
  const outbox = new Outbox(socket);
  let told = false;
  outbox.add(Buffer.from("small"));
  await turn();
  outbox.whenWritten(() => {
    told = true;
  });
  await turn();
  expect(told).toBe(false);
  take();
  await turn();
  take();
  await turn();
  expect(told).toBe(true);
});

test("who waits is told when it is dropped, and nothing more is written", async () => {
  const { socket, writes } = slowSocket();
  const outbox = new Outbox(socket);
  let told = false;
  outbox.add(Buffer.from("never"));
  outbox.whenWritten(() => {
    told = true;
  });
  outbox.drop();
  await turn();
  expect({ told, writes, queued: outbox.queuedBytes }).toEqual({ told: true, writes: [], queued: 0 });
});

test("a guest that makes us answer and reads nothing is given up, with bounded memory", async () => {
  const { socket } = slowSocket();
  const link = new Link({ socket });
  let sent = 0;
  for (; !link.isClosed && sent < 10_000_000; sent++) link.send(encodeFrame("CANCEL", 1));
  expect(await link.closed).toMatchObject({ code: "protocol" });
  expect(sent * 12).toBeLessThan(33 * 1024 * 1024);
});

test("a thousand connections that send little hold little", async () => {
  const { socket, writes } = slowSocket();
  socket.setMaxListeners(0);
  const before = process.memoryUsage().arrayBuffers;
  const outboxes = Array.from({ length: 1000 }, () => new Outbox(socket));
  for (const outbox of outboxes) outbox.add(encodeFrame("CANCEL", 1));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1000 * 4096);
  await turn();
  expect(writes.length).toBeGreaterThan(0);
});

test("pieces of any size come out whole and in order, while the room for them grows", async () => {
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
