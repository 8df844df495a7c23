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

test("is made with the folders above it, for its user alone, and taken where it is there", () => {
  const folder = join(base, "a/b");
  openStateFolder(folder);
  openStateFolder(folder);
  expect(existsSync(folder)).toBe(true);
});

test.each([
  ["", /empty/],
  ["state", /not an absolute path/],
  ["/proc/x", /in \/proc, where nothing can be kept/],
  ["/proc", /in \/proc/],
  ["/sys/x/y", /in \/sys/],
  ["/dev/x", /in \/dev/],
])("%j is refused at once, with what to do", (folder, told) => {
  const before = readdirSync(".");
  expect(() => openStateFolder(folder)).toThrow(
    expect.objectContaining({
      code: "invalid",
      message: expect.stringMatching(told),
      hint: expect.stringContaining("CAISSON_HOME"),
    }),
  );
  expect(readdirSync(".")).toEqual(before);
});

test("a link into /proc is seen through", () => {
  symlinkSync("/proc", join(base, "link"));
  expect(() => openStateFolder(join(base, "link/x"))).toThrow(expect.objectContaining({ code: "invalid" }));
});

test("a file in its place, or on the way to it, is named", () => {
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

test.runIf(process.getuid?.() !== 0)("one that may not be written is denied", () => {
  mkdirSync(join(base, "shut"), { mode: 0o500 });
  expect(() => openStateFolder(join(base, "shut"))).toThrow(expect.objectContaining({ code: "denied" }));
});
