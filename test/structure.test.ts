import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { structureOf } from "../scripts/structure.ts";

const source = join(import.meta.dirname, "..", "src");

test.each([".", "station", "contract"])("no import runs against the order of the rooms in src/%s", (folder) => {
  const { arrows, upward } = structureOf(join(source, folder));
  // Otherwise the graph could be empty.
  expect(arrows).toBeGreaterThan(50);
  expect(upward).toEqual([]);
});

test("an import cycle is found, and its arrow with the fewest imports named", () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-structure-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = {
    "low/one.ts": 'import type { Two } from "../high/two.ts";',
    "high/two.ts": 'import { one } from "../low/one.ts";',
    "high/three.ts": 'const { one } = await import("../low/one.ts");',
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  expect(structureOf(folder)).toEqual({
    rooms: 2,
    floors: 2,
    arrows: 2,
    upward: [["low", "high"]],
    largest: { room: "high", files: 2 },
  });
});
