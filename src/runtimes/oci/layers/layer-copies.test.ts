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

test("finishes a restore whose process died after moving the old files", () => {
  put("upper-next");
  put("upper-old");
  finishRestore(layer);
  expect(upper()).toBe("upper-next");
});

test("drops a restore whose process died before that", () => {
  put("upper");
  put("upper-next");
  put("upper-draft");
  finishRestore(layer);
  expect(upper()).toBe("upper");
});

test("ignores an incomplete copy", () => {
  put("upper-draft");
  finishRestore(layer);
  expect(upper()).toBeNull();
});
