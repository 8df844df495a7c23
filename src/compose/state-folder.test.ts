import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStateFolder } from "./state-folder.ts";

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-state-folder-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test("creates the folder and its parents, or uses an existing one", () => {
  const folder = join(base, "a/b");
  openStateFolder(folder);
  openStateFolder(folder);
  expect(existsSync(folder)).toBe(true);
});

test.each([
  ["", /empty/],
  ["state", /not an absolute path/],
  ["/proc/x", /in \/proc, where nothing can be stored/],
  ["/proc", /in \/proc/],
  ["/sys/x/y", /in \/sys/],
  ["/dev/x", /in \/dev/],
])("rejects %j immediately with a hint", (folder, pattern) => {
  const before = readdirSync(".");
  expect(() => openStateFolder(folder)).toThrow(
    expect.objectContaining({
      code: "invalid",
      message: expect.stringMatching(pattern),
      hint: expect.stringContaining("CAISSON_HOME"),
    }),
  );
  expect(readdirSync(".")).toEqual(before);
});

test("rejects a link into /proc", () => {
  symlinkSync("/proc", join(base, "link"));
  expect(() => openStateFolder(join(base, "link/x"))).toThrow(expect.objectContaining({ code: "invalid" }));
});

test("rejects a file in place of the folder or one of its parents", () => {
  writeFileSync(join(base, "file"), "");
  for (const folder of [join(base, "file"), join(base, "file/below")]) {
    expect(() => openStateFolder(folder)).toThrow(
      expect.objectContaining({
        code: "invalid",
        message: expect.stringContaining("a file is in its place"),
      }),
    );
  }
});

test.runIf(process.getuid?.() !== 0)("rejects a folder that it cannot write", () => {
  mkdirSync(join(base, "shut"), { mode: 0o500 });
  expect(() => openStateFolder(join(base, "shut"))).toThrow(expect.objectContaining({ code: "denied" }));
});
