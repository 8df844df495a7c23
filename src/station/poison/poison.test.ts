import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { duringTurn } from "../../lib/turns.ts";
import { turnFiles } from "./turn-files.ts";
import { openTurnMarker } from "./turn-marker.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-turns-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const turn = { stream: "workflow/wf_aaaaaaaaaaaa", seq: 7 };
const left = (path: string) => (existsSync(path) ? readFileSync(path, "utf8").trim() : null);

/** What the files say after a station died within a turn. */
const die = (of = turn) => writeFileSync(turnFiles(folder).turn, JSON.stringify(of));
/** Whom a new station blames, which then dies outside of any turn. */
async function blamed(): Promise<string | null> {
  await using marked = await openTurnMarker(folder);
  return marked.poisoned?.stream ?? null;
}

test("a turn is in the file while it lasts, the inner one of two, and no longer", async () => {
  await using _ = await openTurnMarker(folder);
  const { turn: file } = turnFiles(folder);
  expect(left(file)).toMatch(/^-/);
  duringTurn(turn, () => {
    expect(left(file)).toBe(JSON.stringify(turn));
    duringTurn({ stream: "run/x", seq: 1 }, () => expect(left(file)).toContain("run/x"));
    expect(left(file)).toBe(JSON.stringify(turn));
  });
  expect(() => duringTurn(turn, fail)).toThrow("now");
  expect(left(file)).toMatch(/^-/);
});

function fail(): never {
  throw new Error("now");
}

test("a station that died within a turn, or twice, blames nobody; three times in the same turn, it does", async () => {
  expect(await blamed()).toBeNull();
  for (const seq of [7, 8, 8, 9]) {
    die({ ...turn, seq });
    expect(await blamed()).toBeNull();
  }
  die({ ...turn, seq: 9 });
  expect(await blamed()).toBeNull();
  die({ ...turn, seq: 9 });
  expect(await blamed()).toBe(turn.stream);
  die({ ...turn, seq: 9 });
  expect(await blamed()).toBeNull();
});

test("deaths outside of turns in between count as progress", async () => {
  for (const isWithin of [true, true, false, true, true]) {
    if (isWithin) die();
    expect(await blamed()).toBeNull();
  }
});

test("a turn that stopped the event loop is blamed at once, and only that one", async () => {
  die();
  writeFileSync(turnFiles(folder).stuck, JSON.stringify({ ...turn, seq: 6 }));
  expect(await blamed()).toBeNull();
  die();
  writeFileSync(turnFiles(folder).stuck, JSON.stringify(turn));
  expect(await blamed()).toBe(turn.stream);
  expect(existsSync(turnFiles(folder).stuck)).toBe(false);
});

test("a process that is killed while a turn holds its event loop leaves that behind", async () => {
  const program = `
    const { openTurnMarker } = await import(${JSON.stringify(join(import.meta.dirname, "turn-marker.ts"))});
    const { duringTurn } = await import(${JSON.stringify(join(import.meta.dirname, "../../lib/turns.ts"))});
    const { existsSync } = await import("node:fs");
    await openTurnMarker(${JSON.stringify(folder)});
    duringTurn(${JSON.stringify(turn)}, () => {
      while (!existsSync(${JSON.stringify(turnFiles(folder).stuck)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
      process.kill(process.pid, "SIGKILL");
    });`;
  writeFileSync(join(folder, "station.mjs"), program);
  expect(() => execFileSync(process.execPath, [join(folder, "station.mjs")], { stdio: "pipe", timeout: 60_000 })).toThrow();
  expect(await blamed()).toBe(turn.stream);
});
