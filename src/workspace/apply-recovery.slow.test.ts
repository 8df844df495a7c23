import { mkdirSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readTree } from "../../test/support/tree-on-disk.ts";
import { lookAtFolder, settleFolder } from "./apply-recovery.ts";
import { type ApplyPlace, applyAndDie, change, file, makeApplyPlace, recordsLeft } from "./testing-apply.ts";

let base = "";
let folder = "";
let stateDir = "";
let apply: ApplyPlace["apply"];
const before = { "sub/a": "file 644 old", "sub/b": "file 644 old", "sub/gone": "file 644 old" };
const files = { "sub/a": ["old", "new"], "sub/b": ["old", "new"], "sub/gone": ["old", null], made: [null, "new"] } as Record<
  string,
  [string | null, string | null]
>;
/** Half of the files are new, half are still old. */
const HALF = 5;

beforeEach(() => {
  const place = makeApplyPlace();
  ({ base, folder, apply } = place);
  stateDir = join(base, "state");
  for (const path of Object.keys(before)) place.put(path, "old");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const die = (at = HALF) => applyAndDie({ folder, stateDir, at, files });
const read = async () => readTree(folder);

describe("reading a folder", () => {
  test("shows it without the changes of a dead apply", async () => {
    die();
    expect(readTree(folder)).not.toEqual(before);
    expect(await lookAtFolder(folder, { stateDir }, read)).toEqual(before);
    expect(recordsLeft(base)).toEqual([]);
  });

  test.each([
    ["around", ""],
    ["in", "sub"],
  ])("%s the apply's folder rolls it back as well", async (_, below) => {
    die();
    const place = below === "" ? base : join(folder, below);
    await lookAtFolder(place, { stateDir }, async () => expect(readTree(folder)).toEqual(before));
  });

  test("rolls back interrupted applies to other folders, even removed ones", async () => {
    die();
    const other = join(base, "other");
    mkdirSync(other);
    await lookAtFolder(other, { stateDir }, async () => expect(readTree(folder)).toEqual(before));
    die();
    rmSync(folder, { recursive: true });
    expect(await lookAtFolder(other, { stateDir }, async () => "seen")).toBe("seen");
  });

  test("is repeated after an apply died and was rolled back", async () => {
    const seen: unknown[] = [];
    const look = async () => {
      if (seen.length === 0) die();
      seen.push(readTree(folder));
      return seen.at(-1);
    };
    expect(await lookAtFolder(folder, { stateDir }, look)).toEqual(before);
    expect(seen).toHaveLength(2);
  });

  test("waits for a running apply", async () => {
    let isDone = false;
    const { promise: start, resolve: begin } = Promise.withResolvers<void>();
    const applied = apply([change("made", null, file("x"))], {
      alive: () => true,
      beforeEffects: async () => {
        begin();
        await new Promise((resolve) => setTimeout(resolve, 60));
        isDone = true;
      },
    });
    await start;
    expect(await lookAtFolder(folder, { stateDir }, async () => isDone)).toBe(true);
    await applied;
  });

  test("fails and changes nothing if the dead apply's record is unreadable", async () => {
    die();
    const half = readTree(folder);
    const [record = ""] = recordsLeft(base);
    truncateSync(join(stateDir, "applies", record, "journal.json"), 65 * 1024 * 1024);
    await expect(lookAtFolder(folder, { stateDir }, read)).rejects.toMatchObject({ code: "conflict", hint: expect.any(String) });
    expect(readTree(folder)).toEqual(half);
  });
});

test("does not apply changes that were computed before a rollback", async () => {
  const { stamp: seen } = await settleFolder(folder, { stateDir });
  die();
  const late = apply([change("made", null, file("x"))], { seen });
  await expect(late).rejects.toMatchObject({ code: "conflict", details: { takenBack: true } });
  expect([readTree(folder), recordsLeft(base), readdirSync(folder)]).toEqual([before, [], ["sub"]]);
});
