import { chmodSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KnownFiles } from "./known-files.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "caisson-test-known-files-"));
});
afterEach(() => rmSync(dir, { recursive: true }));
const LONG_AGO = new Date("2026-01-01T00:00:00Z");

function place(path: string, content: string, at: Date): void {
  writeFileSync(`${path}.new`, content);
  utimesSync(`${path}.new`, at, at);
  renameSync(`${path}.new`, path);
}

test("reads a file once until it is replaced, and forgets it when it is removed", async () => {
  const path = join(dir, "file");
  const files = new KnownFiles<{ read: number }>({ max: 10 });
  let read = 0;
  const get = () => files.get(path, async () => ({ read: ++read }));
  expect(await get()).toBeNull();
  place(path, "one", LONG_AGO);
  expect(await get()).toEqual({ read: 1 });
  expect(await get()).toEqual({ read: 1 });
  // Same size and time, as when a file is replaced while the clock is stopped.
  place(path, "two", LONG_AGO);
  expect(await get()).toEqual({ read: 2 });
  rmSync(path);
  expect(await get()).toBeNull();
});

test("reads a file again after it became writable to others", async () => {
  const path = join(dir, "file");
  const files = new KnownFiles<number>({ max: 10 });
  let read = 0;
  place(path, "one", LONG_AGO);
  chmodSync(path, 0o600);
  await files.get(path, async () => ++read);
  chmodSync(path, 0o620);
  expect(await files.get(path, async () => ++read)).toBe(2);
});

test("does not cache a file that was written just now", async () => {
  const path = join(dir, "file");
  const files = new KnownFiles<number>({ max: 10 });
  let read = 0;
  place(path, "one", new Date());
  await files.get(path, async () => ++read);
  expect(await files.get(path, async () => ++read)).toBe(2);
});

test("keeps only the most recently read files, up to the maximum", async () => {
  const files = new KnownFiles<string>({ max: 2 });
  const read: string[] = [];
  const names = ["a", "b", "c"];
  for (const name of names) place(join(dir, name), name, LONG_AGO);
  const get = (name: string) =>
    files.get(join(dir, name), async () => {
      read.push(name);
      return name;
    });
  for (const name of [...names, "c", "b", "a"]) await get(name);
  expect(read).toEqual(["a", "b", "c", "a"]);
});
