import { expect, test } from "vitest";
import { refOf, type ScriptedPeer, useScriptedGuest } from "../../../test/support/scripted-guest.ts";
import type { OutputChunk } from "../sandbox.ts";
import type { GuestConnection } from "./connection.ts";
import { decodeFields, shapes } from "./fields.ts";
import type { GuestProcess } from "./process.ts";

let connection: GuestConnection;
let peer: ScriptedPeer;
useScriptedGuest((each) => {
  ({ connection, peer } = each);
});

async function spawned(
  values: { stdin?: boolean; existing?: boolean; stdinBytes?: number; stdinWritten?: number } = {},
): Promise<{ process: GuestProcess; stream: number }> {
  const { stdin = false, ...started } = values;
  const promise = connection.spawn({ ref: "r", argv: ["cat"], stdin });
  const frame = await peer.next("SPAWN");
  peer.started(frame.stream, refOf(frame), started);
  return { process: await promise, stream: frame.stream };
}

async function collect(process: GuestProcess): Promise<OutputChunk[]> {
  const chunks: OutputChunk[] = [];
  for await (const chunk of process.output) chunks.push(chunk);
  return chunks;
}
const textOf = (chunks: OutputChunk[], stream: string) =>
  Buffer.concat(chunks.filter((chunk) => chunk.stream === stream).map(({ data }) => data)).toString();
const ackedOf = (payload: Buffer | undefined) => Number(payload?.readBigUInt64LE(1));

test("delivers the output of both streams in order, then the outcome", async () => {
  const { process, stream } = await spawned();
  peer.output(stream, 1, 0, Buffer.from("one "));
  peer.output(stream, 2, 0, Buffer.from("oops"));
  peer.output(stream, 1, 4, Buffer.from("two"));
  peer.ended(stream, { exitCode: 3, stdoutBytes: 7, stderrBytes: 4, durationMs: 12, memoryKills: 1 });
  const chunks = await collect(process);
  expect(textOf(chunks, "stdout")).toBe("one two");
  expect(textOf(chunks, "stderr")).toBe("oops");
  expect(await process.ended).toEqual({ kind: "exited", exitCode: 3, durationMs: 12, stdoutBytes: 7, stderrBytes: 4, memoryKills: 1 });
});

test.each([
  [
    { kind: 2, signal: 9 },
    { kind: "signaled", signal: "SIGKILL" },
  ],
  [{ kind: 3 }, { kind: "timedOut" }],
  [{ kind: 4 }, { kind: "killed", why: "memory" }],
  [{ kind: 5 }, { kind: "killed", why: "output" }],
  [{ kind: 6 }, { kind: "killed", why: "cancelled" }],
])("converts the end %o to %o", async (wire, outcome) => {
  const { process, stream } = await spawned();
  peer.ended(stream, wire);
  expect(await process.ended).toMatchObject(outcome);
});

test("does not ask an older guest to keep the last output", async () => {
  await expect(connection.spawn({ ref: "r", argv: ["cat"], keepLast: true })).rejects.toMatchObject({ code: "unsupported" });
  expect(peer.seen).toEqual([]);
});

test("detaches a reader without `follow` at the end of the current output", async () => {
  const attaching = connection.attach({ ref: "r" }, { follow: false });
  const { stream } = await peer.next("ATTACH");
  peer.started(stream, "r", { existing: true, stdoutBytes: 103, stderrBytes: 2 });
  const process = await attaching;
  peer.output(stream, 1, 100, Buffer.from("one and more"));
  peer.output(stream, 2, 0, Buffer.from("er"));
  peer.output(stream, 1, 112, Buffer.from(" that was not asked for"));
  expect((await collect(process)).map(({ data }) => data.toString())).toEqual(["one and more", "er"]);
  expect((await process.ended).kind).toBe("lost");
  await peer.next("CANCEL");
  expect(connection.isClosed).toBe(false);
});

test("ended waits until the output is consumed or discarded", async () => {
  const { process, stream } = await spawned();
  peer.output(stream, 1, 0, Buffer.from("x"));
  peer.ended(stream, { stdoutBytes: 1 });
  await until(() => process.output.isFinished);
  let settled = false;
  void process.ended.then(() => {
    settled = true;
  });
  await Promise.resolve();
  expect(settled).toBe(false);
  process.discardOutput();
  expect((await process.ended).stdoutBytes).toBe(1);
});

test("acknowledges consumed output in batches, and the rest when idle", async () => {
  const { process, stream } = await spawned();
  const iterator = process.output[Symbol.asyncIterator]();
  peer.output(stream, 1, 0, Buffer.alloc(200_000));
  peer.output(stream, 1, 200_000, Buffer.alloc(200_000));
  let consumedBytes = 0;
  while (consumedBytes < 400_000) consumedBytes += (await iterator.next()).value?.data.length ?? 0;
  void iterator.next();
  let acked = 0;
  let acks = 0;
  for (; acked < 400_000; acks += 1) acked = ackedOf((await peer.next("ACK")).payload);
  expect(acks).toBeLessThan(8);
  expect(acked).toBe(400_000);
});

test("acknowledges output that is consumed after the end", async () => {
  const { process, stream } = await spawned();
  peer.output(stream, 2, 0, Buffer.from("late"));
  peer.ended(stream, { stderrBytes: 4 });
  await collect(process);
  const ack = await peer.next("ACK");
  expect([ack.stream, ack.payload[0], ackedOf(ack.payload)]).toEqual([stream, 2, 4]);
});

test("leaving the loop keeps the remaining output for the next loop", async () => {
  const { process, stream } = await spawned();
  peer.output(stream, 1, 0, Buffer.from("a"));
  peer.output(stream, 1, 1, Buffer.from("b"));
  peer.ended(stream, { stdoutBytes: 2 });
  for await (const chunk of process.output) {
    expect(Buffer.from(chunk.data).toString()).toBe("a");
    break;
  }
  expect(textOf(await collect(process), "stdout")).toBe("b");
});

test("delivers a flood of single bytes to a slow consumer in few chunks", async () => {
  const { process, stream } = await spawned();
  const expected = { 1: Buffer.alloc(20_000), 2: Buffer.alloc(20_000) };
  for (let at = 0; at < 20_000; at += 1) {
    for (const descriptor of [1, 2] as const) {
      expected[descriptor][at] = (at * 7 + descriptor) & 0xff;
      peer.output(stream, descriptor, at, expected[descriptor].subarray(at, at + 1));
    }
  }
  peer.ended(stream, { stdoutBytes: 20_000, stderrBytes: 20_000 });
  await until(() => process.output.isFinished);
  const chunks = await collect(process);
  expect(Buffer.concat(chunks.filter((c) => c.stream === "stdout").map((c) => c.data)).equals(expected[1])).toBe(true);
  expect(Buffer.concat(chunks.filter((c) => c.stream === "stderr").map((c) => c.data)).equals(expected[2])).toBe(true);
  expect(chunks.length).toBeLessThan(1_100);
});

test("stdin stays within the window and resumes with acknowledgements", async () => {
  const { process, stream } = await spawned({ stdin: true });
  const data = Buffer.alloc(600_000, "s");
  const writing = process.write(data);
  const receivedBytes = () => peer.seen.filter(({ type }) => type === "STDIN").reduce((sum, { payload }) => sum + payload.length - 8, 0);
  await until(() => receivedBytes() === 262_144);
  peer.send("STDIN_ACK", stream, u64(100_000));
  await until(() => receivedBytes() === 362_144);
  peer.send("STDIN_ACK", stream, u64(362_144));
  await writing;
  const closing = process.closeStdin();
  const end = await peer.next("STDIN_END");
  await closing;
  expect(Number(end.payload.readBigUInt64LE(0))).toBe(600_000);
  await expect(process.write(Buffer.from("x"))).rejects.toMatchObject({ code: "invalid" });
});

test("keeps concurrent writes in order", async () => {
  const { process, stream } = await spawned({ stdin: true });
  const writes = [process.write(Buffer.alloc(300_000, "a")), process.write(Buffer.from("b")), process.closeStdin()];
  peer.send("STDIN_ACK", stream, u64(0));
  await until(() => peer.seen.length > 4);
  peer.send("STDIN_ACK", stream, u64(262_144));
  await Promise.all(writes);
  await peer.next("STDIN_END");
  const received = Buffer.concat(peer.seen.filter(({ type }) => type === "STDIN").map(({ payload }) => payload.subarray(8)));
  expect(received.toString()).toBe(`${"a".repeat(300_000)}b`);
});

test("rejects a waiting write with `gone` when the process ends", async () => {
  const { process, stream } = await spawned({ stdin: true });
  const writing = process.write(Buffer.alloc(600_000));
  peer.ended(stream);
  await expect(writing).rejects.toMatchObject({ code: "gone" });
  await expect(process.write(Buffer.from("x"))).rejects.toMatchObject({ code: "gone" });
});

test("rejects writes to a process without stdin", async () => {
  const { process } = await spawned();
  await expect(process.write(Buffer.from("x"))).rejects.toMatchObject({ code: "invalid" });
});

test("continues an existing process at its offsets", async () => {
  const { process, stream } = await spawned({ existing: true, stdinBytes: 1000, stdinWritten: 1000 });
  await process.write(Buffer.from("hi"));
  expect(Number((await peer.next("STDIN")).payload.readBigUInt64LE(0))).toBe(1000);
  peer.output(stream, 1, 5_000_000, Buffer.from("tail"));
  peer.ended(stream, { stdoutBytes: 5_000_004 });
  expect(await collect(process)).toMatchObject([{ offset: 5_000_000 }]);
});

test("counts an existing process's unread stdin against the window", async () => {
  const { process, stream } = await spawned({ existing: true, stdinBytes: 200_000, stdinWritten: 0 });
  const writing = process.write(Buffer.alloc(100_000));
  const receivedBytes = () => peer.seen.filter(({ type }) => type === "STDIN").reduce((sum, { payload }) => sum + payload.length - 8, 0);
  await until(() => receivedBytes() === 62_144);
  peer.send("STDIN_ACK", stream, u64(200_000));
  await writing;
  expect(receivedBytes()).toBeLessThanOrEqual(100_000);
});

test("detach acknowledges, cancels, and ignores late frames of the stream", async () => {
  const { process, stream } = await spawned();
  peer.output(stream, 1, 0, Buffer.from("x"));
  const iterator = process.output[Symbol.asyncIterator]();
  await iterator.next();
  const rest = iterator.next();
  process.detach();
  expect((await peer.next("ACK")).stream).toBe(stream);
  expect((await peer.next("CANCEL")).stream).toBe(stream);
  expect(await rest).toEqual({ done: true, value: undefined });
  expect((await process.ended).kind).toBe("lost");
  peer.output(stream, 1, 1, Buffer.from("late"));
  peer.ended(stream, { stdoutBytes: 5 });
  const pong = connection.ping({ timeoutMs: 60_000 });
  peer.send("PONG", (await peer.next("PING")).stream);
  await pong;
});

test("ends quietly when another stream takes over", async () => {
  const { process, stream } = await spawned();
  peer.sendFields("ERROR", stream, shapes.ERROR, { code: 9, message: "taken over" });
  expect(await collect(process)).toEqual([]);
  expect((await process.ended).kind).toBe("lost");
  expect(connection.isClosed).toBe(false);
});

test("a closed connection gives the outcome `lost` with the bytes seen so far", async () => {
  const { process, stream } = await spawned({ stdin: true });
  peer.output(stream, 1, 0, Buffer.from("abc"));
  const iterator = process.output[Symbol.asyncIterator]();
  expect((await iterator.next()).value?.offset).toBe(0);
  peer.socket.destroy();
  expect(await process.ended).toMatchObject({ kind: "lost", stdoutBytes: 3, stderrBytes: 0 });
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
  await expect(process.write(Buffer.from("x"))).rejects.toMatchObject({ code: "lost" });
  await expect(process.kill()).rejects.toMatchObject({ code: "lost" });
  await expect(connection.spawn({ ref: "r2", argv: ["x"] })).rejects.toMatchObject({ code: "lost" });
});

test("sends signals by number to the tree or the leader, and rejects unknown names", async () => {
  const { process } = await spawned();
  const sent = process.signal("SIGTERM");
  const frame = await peer.next("SIGNAL");
  expect(decodeFields("SIGNAL", shapes.SIGNAL, frame.payload)).toEqual({ ref: "r", signal: 15, tree: true });
  peer.send("OK", frame.stream);
  await sent;
  const leader = process.signal("SIGINT", { scope: "leader" });
  const second = await peer.next("SIGNAL");
  expect(decodeFields("SIGNAL", shapes.SIGNAL, second.payload)).toEqual({ ref: "r", signal: 2, tree: false });
  peer.sendFields("ERROR", second.stream, shapes.ERROR, { code: 12, message: "forgotten" });
  await leader;
  await expect(process.signal("SIGNOPE" as NodeJS.Signals)).rejects.toMatchObject({ code: "invalid" });
});

test("makes the text of the guest's error safe to print", async () => {
  const promise = connection.spawn({ ref: "r", argv: ["nope"] });
  const frame = await peer.next("SPAWN");
  peer.sendFields("ERROR", frame.stream, shapes.ERROR, { code: 2, message: "no \u001b[31mnope\u202e", errno: 2 });
  await expect(promise).rejects.toMatchObject({
    code: "not_found",
    message: "starting nope: no \ufffd[31mnope\ufffd",
    details: { errno: 2 },
  });
});

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
