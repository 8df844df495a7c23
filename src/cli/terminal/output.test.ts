import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { line } from "./line.ts";
import { createOutput, waitUntilWritten } from "./output.ts";

test("writes bytes in order, even if the caller does not await each write", async () => {
  const file = join(tmpdir(), `caisson-test-output-${process.pid}`);
  const fd = openSync(file, "w");
  const output = createOutput({ fd, terminal: null });
  const parts = Array.from({ length: 50 }, (_, index) => Buffer.alloc(1000 + index, index));
  void Promise.all(parts.slice(0, -1).map((part) => output.writeRaw(part)));
  expect(output.pending()).toBe(true);
  await output.writeRaw(parts.at(-1) as Buffer);
  closeSync(fd);
  expect(readFileSync(file).equals(Buffer.concat(parts))).toBe(true);
  expect(output.pending()).toBe(false);
  rmSync(file);
});

test("writes unawaited pieces in batches, and resolves when few bytes remain", async () => {
  const writes: number[] = [];
  let take = () => {};
  const reader = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, callback) {
      writes.push(chunk.length);
      take = callback;
    },
  });
  const output = createOutput({ fd: 1, terminal: null, reader });
  const all = Array.from({ length: 1000 }, (_, at) => output.printJson({ at }));
  await output.room();
  await expect.poll(() => writes).toHaveLength(1);
  void output.writeRaw(Buffer.alloc(300 * 1024));
  let hasRoom = false;
  const room = output.room().then(() => {
    hasRoom = true;
  });
  take();
  await Promise.all(all);
  expect(hasRoom).toBe(false);
  await expect.poll(() => writes).toHaveLength(2);
  take();
  await room;
  expect(output.pending()).toBe(false);
});

test("waits for a write that is just ending, but not for a reader that is stuck", async () => {
  let take = () => {};
  const reader = new Writable({
    highWaterMark: 1,
    write: (_chunk, _encoding, callback) => {
      take = callback;
    },
  });
  const output = createOutput({ fd: 1, terminal: null, reader });
  void output.print(line`one`);
  expect(await waitUntilWritten([output])).toBe(false);
  const ending = waitUntilWritten([output]);
  take();
  expect(await ending).toBe(true);
});

test("reports an unwritable descriptor as broken instead of throwing", async () => {
  const fd = openSync("/dev/null", "r");
  const output = createOutput({ fd, terminal: null });
  await output.print(line`lost`);
  await expect(output.broken).resolves.toBeUndefined();
  closeSync(fd);
});
