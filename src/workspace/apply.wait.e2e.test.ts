import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readTree } from "../../test/support/tree-on-disk.ts";
import { applyChanges } from "./apply.ts";
import type { Change } from "./change.ts";
import { recordsLeft } from "./testing-apply.ts";

let base = "";
let folder = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "folder");
  mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const apply = (changes: readonly Change[]) => applyChanges(changes, { folder, stateDir: join(base, "state") });
const put = (path: string, content: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), content);
};

describe("a killed apply", () => {
  const program = `
    import { applyChanges } from ${JSON.stringify(join(import.meta.dirname, "apply.ts"))};
    const [folder, at, stateDir] = process.argv.slice(2);
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
    await applyChanges(changes, { folder, stateDir, crashpoint });
    console.log(step);
  `;
  const old = { "d/x": "1", f: "was a file", m: "old", "o/from": "moved" };
  const fresh = { d: "file 644 now a file", "f/y": "file 644 2", m: "file 644 new", to: "file 644 moved!" };

  test("is rolled back by the next apply, no matter where it was killed", async () => {
    const script = join(base, "apply.mjs");
    writeFileSync(script, program);
    const start = () => {
      rmSync(folder, { recursive: true, force: true });
      for (const [path, text] of Object.entries(old)) put(path, text);
      mkdirSync(join(folder, "o", "empty"));
      chmodSync(join(folder, "d"), 0o711);
    };
    const run = (at: number) => spawnSync(process.execPath, [script, folder, String(at), join(base, "state")], { encoding: "utf8" });
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
      expect(readdirSync(folder).filter((name) => name.startsWith(".caisson"))).toEqual([]);
      expect(recordsLeft(base)).toEqual([]);
    }
  });
});

describe("a folder that is constantly swapped for a link", () => {
  const program = `
    import { readdirSync, renameSync, symlinkSync, unlinkSync } from "node:fs";
    const [folder] = process.argv.slice(2);
    process.chdir(folder);
    const tried = (effect) => { try { effect(); } catch {} };
    const shared = new Int32Array(new SharedArrayBuffer(4));
    for (;;) {
      // Long enough for an apply to begin in peace, and too short for it to always end so.
      Atomics.wait(shared, 0, 0, Math.random() * 25);
      for (const each of readdirSync(".").filter((name) => name.startsWith("round"))) {
        tried(() => renameSync(each + "/d", each + "/aside"));
        tried(() => symlinkSync("../../victim", each + "/d"));
        tried(() => unlinkSync(each + "/d"));
        tried(() => renameSync(each + "/aside", each + "/d"));
      }
    }
  `;
  const side = (text: string) => ({ kind: "file" as const, mode: 0o644, content: Buffer.from(text) });
  const fill = (place: string) => {
    mkdirSync(join(place, "sub"), { recursive: true });
    for (const name of ["same", "gone", "sub/gone"]) writeFileSync(join(place, name), "1");
  };

  test("never leads a write or a removal outside", async () => {
    const victim = join(base, "victim");
    fill(victim);
    const before = readTree(victim);
    const script = join(base, "swap.mjs");
    writeFileSync(script, program);
    const swapper = spawn(process.execPath, [script, folder], { stdio: "ignore" });
    const ended = new Promise((resolve) => swapper.once("exit", resolve));
    const outcomes = new Map<string, number>();
    try {
      const end = Date.now() + 4_000;
      for (let round = 0; Date.now() < end; round++) {
        fill(join(base, "fresh/d"));
        renameSync(join(base, "fresh"), join(folder, `round${round}`));
        const changes = [
          { path: "d/same", before: side("1"), after: side("2") },
          { path: "d/made/new", before: null, after: side("2") },
          { path: "d/gone", before: side("1"), after: null },
          { path: "d/sub/gone", before: side("1"), after: null },
        ].map((each) => ({ ...each, path: `round${round}/${each.path}`, from: null, changedOutside: false }));
        const outcome = await apply(changes).then(
          () => "applied",
          (error: { code: string }) => error.code,
        );
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        expect(readTree(victim)).toEqual(before);
        expect(readdirSync(join(victim, "sub"))).toEqual(["gone"]);
        renameSync(join(folder, `round${round}`), join(base, `done${round}`));
      }
    } finally {
      swapper.kill("SIGKILL");
      await ended;
    }
    expect(swapper.signalCode).toBe("SIGKILL");
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(["applied"]));
  });
});

describe.runIf(process.getuid?.() === 0)("an unwritable disk", () => {
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

  test("that is full is reported, and nothing changes", async () => {
    put("mine", "1");
    await expect(apply([small, large(1024 * 1024)])).rejects.toMatchObject({ code: "no_space", hint: expect.any(String) });
    expect(readTree(folder)).toEqual({ mine: "file 644 1" });
    expect((await apply([small, large(1024)])).applied).toEqual(["small", "large"]);
  });

  test("that is read-only is reported, and nothing changes", async () => {
    put("mine", "1");
    execFileSync("mount", ["-o", "remount,ro", folder]);
    await expect(apply([small])).rejects.toMatchObject({ code: "denied", hint: expect.any(String) });
    expect(readdirSync(folder)).toEqual(["mine"]);
  });
});
