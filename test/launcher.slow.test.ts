import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const launcher = join(import.meta.dirname, "..", "caisson");
const stampMs = Date.now() - 60_000;

/** A clone with the launcher. Fake programs replace all others, and report that they were started. */
let clone = "";
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "caisson-test-launcher-"));
  put("src/caisson.ts", 'console.log("sources");');
  put("src/deep/er/module.ts", "");
  put("src/deep/er/module.test.ts", "");
  for (const path of ["guest/src/main.c", "guest/Makefile", "package-lock.json", "build/cli-new/caisson.mjs"]) put(path, "");
  put("build/cli-first/caisson.mjs", 'console.log("bundle");');
  put("build/cli-second/caisson.mjs", 'console.log("second bundle");');
  program("guest/build/caisson-guest", "");
  program("scripts/setup", `echo "$@" > "${clone}/set-up"; echo second > "${clone}/build/setup-stamp"`);
  put("build/setup-stamp", "first\n");
  mkdirSync(join(clone, "node_modules/node/bin"), { recursive: true });
  symlinkSync(process.execPath, join(clone, "node_modules/node/bin/node"));
  copyFileSync(launcher, join(clone, "caisson"));
  for (const folder of ["src/deep/er", "src/deep", "src", "guest/src", "scripts"]) age(folder);
});
afterEach(() => rmSync(clone, { recursive: true, force: true }));

/** Writes a file that is older than the stamp. */
function put(path: string, text: string): void {
  mkdirSync(dirname(join(clone, path)), { recursive: true });
  writeFileSync(join(clone, path), text);
  age(path);
}
function program(path: string, text: string): void {
  put(path, `#!/bin/sh\n${text}\n`);
  chmodSync(join(clone, path), 0o755);
}
function age(path: string): void {
  const seconds = (stampMs - (path === "build/setup-stamp" ? 0 : 10_000)) / 1000;
  utimesSync(join(clone, path), seconds, seconds);
}
function start(): { said: string; setUp: boolean; code: number | null } {
  const { stdout, status } = spawnSync(join(clone, "caisson"), ["ps"], { encoding: "utf8" });
  return { said: stdout.trim(), setUp: existsSync(join(clone, "set-up")), code: status };
}

describe("the launcher of a clone", () => {
  test("starts the bundle without setup while no source is newer", () => {
    expect(start()).toEqual({ said: "bundle", setUp: false, code: 0 });
  });

  test.each(["src/deep/er/module.ts", "src/caisson.ts", "guest/src/main.c", "guest/Makefile", "scripts/setup", "package-lock.json"])(
    "runs setup again after an edit of %s",
    (path) => {
      utimesSync(join(clone, path), new Date(), new Date());
      expect(start()).toEqual({ said: "second bundle", setUp: true, code: 0 });
    },
  );

  test("runs setup again after a module is added or removed", () => {
    rmSync(join(clone, "src/deep/er/module.ts"));
    expect(start()).toMatchObject({ said: "second bundle", setUp: true });
  });

  test("ignores an edited test", () => {
    utimesSync(join(clone, "src/deep/er/module.test.ts"), new Date(), new Date());
    expect(start()).toEqual({ said: "bundle", setUp: false, code: 0 });
  });

  test("runs setup if part of its result is missing", () => {
    rmSync(join(clone, "guest/build/caisson-guest"));
    expect(start()).toMatchObject({ said: "second bundle", setUp: true });
  });

  test("starts the sources if their bundle is missing", () => {
    rmSync(join(clone, "build/cli-first"), { recursive: true });
    expect(start()).toEqual({ said: "sources", setUp: false, code: 0 });
  });

  test("exits with 125 if setup fails", () => {
    program("scripts/setup", "exit 1");
    utimesSync(join(clone, "src/caisson.ts"), new Date(), new Date());
    expect(start()).toMatchObject({ said: "", code: 125 });
  });
});
