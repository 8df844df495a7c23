import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { bodyChunks } from "./body-chunks.ts";

const PIECE_BYTES = 1024;

/** Returns an endless body that counts the pieces read from it. */
function endless(): { body: IncomingMessage; pieces: () => number } {
  let pieces = 0;
  const body = new Readable({
    highWaterMark: 4 * PIECE_BYTES,
    read() {
      pieces += 1;
      this.push(Buffer.alloc(PIECE_BYTES, pieces));
    },
  });
  return { body: body as IncomingMessage, pieces: () => pieces };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("yields a body in its original pieces, in order", async () => {
  const body = Readable.from([Buffer.from("a"), Buffer.from("bc"), Buffer.from("d")], { objectMode: false }) as IncomingMessage;
  const seen: string[] = [];
  for await (const piece of bodyChunks(body)) seen.push(Buffer.from(piece).toString());
  expect(seen).toEqual(["a", "bc", "d"]);
});

test("reads no further than the limit while no consumer asks", async () => {
  const { body, pieces } = endless();
  const reader = bodyChunks(body)[Symbol.asyncIterator]();
  const first = await reader.next();
  expect((first.value as Uint8Array)[0]).toBe(1);
  for (let turn = 0; turn < 50; turn++) await settled();
  const ahead = pieces();
  // The queue here plus the stream's own buffer.
  expect(ahead).toBeLessThanOrEqual(12);
  for (let turn = 0; turn < 50; turn++) await settled();
  expect(pieces()).toBe(ahead);
  for (let number = 2; number < 40; number++) expect(((await reader.next()).value as Uint8Array)[0]).toBe(number);
  await reader.return?.();
});

test("stops reading an abandoned body but keeps its connection open", async () => {
  const { body, pieces } = endless();
  const reader = bodyChunks(body)[Symbol.asyncIterator]();
  await reader.next();
  await reader.return?.();
  await settled();
  const read = pieces();
  for (let turn = 0; turn < 50; turn++) await settled();
  expect(pieces()).toBe(read);
  expect(body.destroyed).toBe(false);
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});

test("reports a broken body to pending and late readers", async () => {
  const waiting = new Readable({ read() {} }) as IncomingMessage;
  const reader = bodyChunks(waiting)[Symbol.asyncIterator]();
  const next = reader.next();
  const isBroken = expect(next).rejects.toThrow("torn");
  waiting.destroy(new Error("torn"));
  await isBroken;
  await expect(reader.next()).rejects.toThrow("torn");
  await expect(bodyChunks(waiting)[Symbol.asyncIterator]().next()).rejects.toThrow("torn");
  const silent = new Readable({ read() {} }) as IncomingMessage;
  const late = bodyChunks(silent)[Symbol.asyncIterator]();
  silent.destroy();
  await expect(late.next()).rejects.toThrow("closed");
});
