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

/** Writes the file that a station leaves if it dies within a turn. */
const die = (of = turn) => writeFileSync(turnFiles(folder).turn, JSON.stringify(of));
/** Returns the stream that a new station blames; then that station ends outside a turn. */
async function blamed(): Promise<string | null> {
  await using marked = await openTurnMarker(folder);
  return marked.poisoned?.stream ?? null;
}

test("the file has the innermost turn while it lasts", async () => {
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

test("the third death in the same turn blames its job", async () => {
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

test("a death outside a turn resets the count", async () => {
  for (const isWithin of [true, true, false, true, true]) {
    if (isWithin) die();
    expect(await blamed()).toBeNull();
  }
});

test("a turn that blocked the event loop is blamed at once", async () => {
  die();
  writeFileSync(turnFiles(folder).stuck, JSON.stringify({ ...turn, seq: 6 }));
  expect(await blamed()).toBeNull();
  die();
  writeFileSync(turnFiles(folder).stuck, JSON.stringify(turn));
  expect(await blamed()).toBe(turn.stream);
  expect(existsSync(turnFiles(folder).stuck)).toBe(false);
});

test("a process killed while a turn blocks its event loop leaves evidence", async () => {
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
