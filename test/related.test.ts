import { describe, expect, test } from "vitest";
import { chosenTests, distances, importedBy, readImporters } from "../scripts/related.ts";

describe("npm run related", () => {
  test("follows imports and lazy imports, but not types", () => {
    const text = [
      'import type { A } from "./type.ts";',
      'export type { B } from "./type.ts";',
      'import { c } from "./static.ts";',
      'export { d } from "../exported.ts";',
      'const { e } = await import("./lazy.ts");',
      'import "node:fs";',
    ].join("\n");
    expect(importedBy("src/cli/one.ts", text)).toEqual(["src/cli/static.ts", "src/exported.ts", "src/cli/lazy.ts"]);
  });

  test("counts imports from the changed file, even in a cycle", () => {
    const importers = new Map([
      ["a.ts", ["b.ts"]],
      ["b.ts", ["a.ts", "c.test.ts"]],
    ]);
    expect([...distances(["a.ts"], importers)]).toEqual([
      ["a.ts", 0],
      ["b.ts", 1],
      ["c.test.ts", 2],
    ]);
  });

  test("picks the nearest tests, and slow ones only next to the changed file", () => {
    const found = new Map([
      ...Array.from({ length: 40 }, (_, index) => [`far-${index}.test.ts`, 5] as const),
      ["near.slow.test.ts", 1],
      ["elsewhere/far.slow.test.ts", 1],
      ["real.e2e.test.ts", 1],
      ["source.ts", 0],
    ]);
    const { chosen, leftOut } = chosenTests(found, { isAll: false });
    expect(chosen.length).toBe(8);
    expect(chosen.slice(0, 2)).toEqual(["near.slow.test.ts", "far-0.test.ts"]);
    expect(leftOut).toBe(34);
    expect(chosenTests(found, { isAll: true }).chosen).toHaveLength(42);
  });

  test("finds the tests of this repository", () => {
    const found = distances(["src/lib/quantity.ts"], readImporters());
    expect([...found.keys()]).toContain("src/lib/quantity.test.ts");
  });
});
