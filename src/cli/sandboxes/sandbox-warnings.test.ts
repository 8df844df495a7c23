import { mkdtempDisposableSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Line } from "../terminal/line.ts";
import { printSandboxWarnings } from "./sandbox-warnings.ts";

const HOUR_MS = 3_600_000;

function useState() {
  const folder = mkdtempDisposableSync(join(tmpdir(), "caisson-warnings-"));
  const printed: string[] = [];
  const context = { stateDir: folder.path, stderr: { print: async (line: Line) => void printed.push(line.text) } };
  const printWarnings = async (runtime: "oci" | "host", warnings: string[], nowMs: number) => {
    printed.length = 0;
    await printSandboxWarnings(context, { runtime, warnings }, nowMs);
    return [...printed];
  };
  return { printWarnings, folder: folder.path, [Symbol.dispose]: () => folder.remove() };
}

test("prints the same warning once a day, and a new one at once", async () => {
  using state = useState();
  expect(await state.printWarnings("oci", ["no memory limit"], HOUR_MS)).toEqual(["caisson: no memory limit"]);
  expect(await state.printWarnings("oci", ["no memory limit"], 24 * HOUR_MS)).toEqual([]);
  expect(await state.printWarnings("oci", ["no memory limit", "no git"], 24 * HOUR_MS)).toEqual(["caisson: no git"]);
  expect(await state.printWarnings("oci", ["no memory limit"], 25 * HOUR_MS)).toEqual(["caisson: no memory limit"]);
  expect(readdirSync(state.folder)).toEqual(["told.json"]);
});

test("always warns about missing isolation, and again after a damaged file", async () => {
  using state = useState();
  for (let time = 0; time < 2; time++) expect(await state.printWarnings("host", ["no isolation"], HOUR_MS)).toHaveLength(1);
  writeFileSync(join(state.folder, "told.json"), "{");
  expect(await state.printWarnings("oci", ["a"], 5 * HOUR_MS)).toHaveLength(1);
  expect(await state.printWarnings("oci", ["a"], HOUR_MS)).toHaveLength(1);
});
