import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { line } from "./line.ts";
import { createOutput } from "./output.ts";

test("bytes arrive in order, also when nobody waits for each", async () => {
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

test("a descriptor that cannot be written to is broken, not an exception", async () => {
  const fd = openSync("/dev/null", "r");
  const output = createOutput({ fd, terminal: null });
  await output.print(line`lost`);
  await expect(output.broken).resolves.toBeUndefined();
  closeSync(fd);
});
