import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { guardedPaths } from "./guarded-paths.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-guarded-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (path: string, text = "") => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const guarded = (home = "/nowhere") => guardedPaths(folder, { home }).sort();

describe("guarded paths of a read-write folder", () => {
  test("are empty for an ordinary folder", () => {
    put("Makefile");
    expect(guarded()).toEqual([]);
  });

  test("include git's hooks and settings, also of submodules, and start-up files", () => {
    put(".git/config");
    put(".git/hooks/pre-commit");
    put(".git/modules/group/lib/HEAD");
    put(".git/modules/group/lib/config");
    put(".git/modules/group/lib/hooks/x");
    put(".bashrc");
    expect(guarded()).toEqual([".bashrc", ".git/config", ".git/hooks", ".git/modules/group/lib/config", ".git/modules/group/lib/hooks"]);
  });

  test("include a linked work tree's .git file", () => {
    put(".git", "gitdir: /elsewhere");
    expect(guarded()).toEqual([".git"]);
  });

  test("reject paths that are missing or links, because they cannot be guarded", () => {
    put(".git/config");
    expect(() => guarded()).toThrow(expect.objectContaining({ code: "unsupported", hint: expect.stringContaining("--allow-hooks") }));
    symlinkSync("../shared", join(folder, ".git/hooks"));
    expect(() => guarded()).toThrow(/is a link/);
  });

  test("reject a home folder, where missing start-up files could be created", () => {
    expect(() => guarded(folder)).toThrow(
      expect.objectContaining({ code: "unsupported", message: expect.stringContaining("your home folder") }),
    );
  });
});
