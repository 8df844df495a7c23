import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { finishRestore } from "./layer-copies.ts";

let layer = "";
beforeEach(() => {
  layer = mkdtempSync(join(tmpdir(), "caisson-test-layer-"));
});
afterEach(() => rmSync(layer, { recursive: true, force: true }));

function put(name: string): void {
  mkdirSync(join(layer, name));
  writeFileSync(join(layer, name, "file"), name);
}
const upper = () => (existsSync(join(layer, "upper")) ? readFileSync(join(layer, "upper", "file"), "utf8") : null);

test("a restore whose process died after the old files gave way is finished by whoever comes next", () => {
  put("upper-next");
  put("upper-old");
  finishRestore(layer);
  expect(upper()).toBe("upper-next");
});

test("one that did not get so far has not happened", () => {
  put("upper");
  put("upper-next");
  put("upper-draft");
  finishRestore(layer);
  expect(upper()).toBe("upper");
});

test("a copy that is not whole never counts", () => {
  put("upper-draft");
  finishRestore(layer);
  expect(upper()).toBeNull();
});
