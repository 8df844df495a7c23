import { mkdtempDisposable, readdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keepAppliedDiff, listApplies, readAppliedDiff } from "./applied-diffs.ts";
import type { Change } from "./change.ts";

const change = (path: string, after: string | Buffer): Change => ({
  path,
  from: null,
  before: null,
  after: { kind: "file", mode: 0o644, content: Buffer.from(after) },
  changedOutside: false,
});
const folder = "/home/me/project";
const at = "2026-01-01T00:00:00.000Z";

test("keeps the last applies only, and removes the files of older ones", async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), "applied-"));
  for (let count = 1; count <= 12; count += 1) await keepAppliedDiff(dir.path, { folder, at, changes: [change(`${count}.txt`, "x\n")] });
  expect((await listApplies(dir.path)).map(({ apply }) => apply)).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
  expect(await readdir(dir.path)).toHaveLength(11);
  expect(await readAppliedDiff(dir.path, 12)).toMatchObject({ apply: 12, files: [{ path: "12.txt" }] });
  expect(await readAppliedDiff(dir.path, 2)).toBeNull();
});

test("keeps names and line counts of a large apply, and the patches that fit", async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), "applied-"));
  const long = (letter: string) => `${letter.repeat(99)}\n`.repeat(6_000);
  const many = Array.from({ length: 1_100 }, (_, index) => change(`many/${index}`, ""));
  const changes = [change("a.txt", long("a")), change("b.txt", long("b")), change("c.bin", Buffer.from([0, 1])), ...many];
  await keepAppliedDiff(dir.path, { folder, at, changes });
  const diff = await readAppliedDiff(dir.path, 1);
  expect(diff?.files.slice(0, 2)).toMatchObject([
    { path: "a.txt", linesAdded: 6_000, patch: { encoding: "utf8" } },
    { path: "b.txt", linesAdded: 6_000, patch: null },
  ]);
  expect(diff?.files).toHaveLength(1_000);
  expect(diff?.isWhole).toBe(false);
  expect(await listApplies(dir.path)).toMatchObject([{ count: 1_103, folder }]);
});

test("treats a damaged or missing record as empty and replaces it", async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), "applied-"));
  expect(await listApplies(dir.path)).toEqual([]);
  await writeFile(join(dir.path, "applies.json"), "{");
  await writeFile(join(dir.path, "applied-9.json"), "left by one that was killed");
  expect(await readAppliedDiff(dir.path, 9)).toBeNull();
  await keepAppliedDiff(dir.path, { folder, at, changes: [change("a.txt", "x\n")] });
  expect((await readdir(dir.path)).sort()).toEqual(["applied-1.json", "applies.json"]);
});
