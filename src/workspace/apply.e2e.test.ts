import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readTree } from "../../test/support/tree-on-disk.ts";
import { applyChanges } from "./apply.ts";
import type { Change } from "./change.ts";

let base = "";
let folder = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "folder");
  mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const apply = (changes: readonly Change[]) => applyChanges(changes, { folder });
const put = (path: string, content: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), content);
};

describe("an apply that was killed", () => {
  const program = `
    import { applyChanges } from ${JSON.stringify(join(import.meta.dirname, "apply.ts"))};
    const [folder, at] = process.argv.slice(2);
    const file = (text) => ({ kind: "file", mode: 0o644, content: Buffer.from(text) });
    const changes = [
      { path: "d", from: null, before: null, after: file("now a file"), changedOutside: false },
      { path: "d/x", from: null, before: file("1"), after: null, changedOutside: false },
      { path: "f/y", from: null, before: null, after: file("2"), changedOutside: false },
      { path: "f", from: null, before: file("was a file"), after: null, changedOutside: false },
      { path: "m", from: null, before: file("old"), after: file("new"), changedOutside: false },
      { path: "to", from: "o/from", before: file("moved"), after: file("moved!"), changedOutside: false },
    ];
    let step = 0;
    const crashpoint = () => { if (step++ === Number(at)) process.kill(process.pid, "SIGKILL"); };
    await applyChanges(changes, { folder, crashpoint });
    console.log(step);
  `;
  const old = { "d/x": "1", f: "was a file", m: "old", "o/from": "moved" };
  const fresh = { d: "file 644 now a file", "f/y": "file 644 2", m: "file 644 new", to: "file 644 moved!" };

  test("is taken back by the next one, wherever it was killed", { timeout: 60_000 }, async () => {
    const script = join(base, "apply.mjs");
    writeFileSync(script, program);
    const start = () => {
      rmSync(folder, { recursive: true, force: true });
      for (const [path, text] of Object.entries(old)) put(path, text);
      mkdirSync(join(folder, "o", "empty"));
      chmodSync(join(folder, "d"), 0o711);
    };
    const run = (at: number) => spawnSync(process.execPath, [script, folder, String(at)], { encoding: "utf8" });
    start();
    const steps = Number(run(1000).stdout.trim());
    expect(readTree(folder)).toEqual(fresh);
    expect(steps).toBeGreaterThan(10);
    for (let at = 0; at < steps; at++) {
      start();
      expect(run(at).signal).toBe("SIGKILL");
      const done = at === steps - 1;
      await apply([]);
      expect(readTree(folder), `killed at ${at}`).toEqual(
        done ? fresh : Object.fromEntries(Object.entries(old).map(([path, text]) => [path, `file 644 ${text}`])),
      );
      if (!done) expect([statSync(join(folder, "d")).mode & 0o777, readdirSync(join(folder, "o"))]).toEqual([0o711, ["empty", "from"]]);
      expect(existsSync(join(folder, ".caisson-apply"))).toBe(false);
    }
  });
});

describe.runIf(process.getuid?.() === 0)("a disk that does not take it", () => {
  const large = (bytes: number): Change => ({
    path: "large",
    from: null,
    before: null,
    after: { kind: "file", mode: 0o644, content: Buffer.alloc(bytes, 1) },
    changedOutside: false,
  });
  const small: Change = { ...large(10), path: "small" };
  beforeEach(() => void execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "none", folder]));
  afterEach(() => void execFileSync("umount", [folder]));

  test("full: says so, and nothing has changed", async () => {
    put("mine", "1");
    await expect(apply([small, large(1024 * 1024)])).rejects.toMatchObject({ code: "no_space", hint: expect.any(String) });
    expect(readTree(folder)).toEqual({ mine: "file 644 1" });
    expect((await apply([small, large(1024)])).applied).toEqual(["small", "large"]);
  });

  test("read-only: says so, and nothing has changed", async () => {
    put("mine", "1");
    execFileSync("mount", ["-o", "remount,ro", folder]);
    await expect(apply([small])).rejects.toMatchObject({ code: "denied", hint: expect.any(String) });
    expect(readdirSync(folder)).toEqual(["mine"]);
  });
});
