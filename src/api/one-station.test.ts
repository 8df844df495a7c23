import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { takePlace } from "./one-station.ts";

let stateDir = "";
const note = { version: "0" } as Parameters<typeof takePlace>[1];
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  mkdirSync(join(stateDir, "station"), { mode: 0o700 });
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

test("replaces a damaged lock, which then excludes a second station", async () => {
  writeFileSync(join(stateDir, "station/lock"), "this is not a database, and was never one".repeat(100));
  await using _ = await takePlace(stateDir, note);
  await expect(takePlace(stateDir, note)).rejects.toMatchObject({ code: "conflict" });
});

test("reports a lock that cannot be opened as unusable, not as held", async () => {
  mkdirSync(join(stateDir, "station/lock"));
  await expect(takePlace(stateDir, note)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("cannot be used"),
    hint: expect.any(String),
  });
});
