import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { type PackedState, packState } from "./pack-state.ts";

type Packed = { names: readonly string[]; still: readonly string[] };

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-pack-state-"));
  for (const name of ["sessions/work", "uploads", "sandboxes"]) mkdirSync(join(stateDir, name), { recursive: true });
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

/**
 * Packs with each of the answers in turn, repeating the last. `running` lists the sandboxes in the session at each
 * check.
 */
async function packWith(answers: readonly (() => boolean)[], running: readonly string[][] = [[]]): Promise<Packed[]> {
  const packed: Packed[] = [];
  let looks = 0;
  const runtime: Runtime = {
    ...createFakeRuntime(),
    async packFiles({ names, still }) {
      if (names[0] === "uploads") return { hasChanged: true };
      packed.push({ names, still });
      const answer = answers[Math.min(packed.length, answers.length) - 1];
      return { hasChanged: answer?.() ?? false };
    },
  };
  // The first check finds out which sandboxes run in which session.
  const seen = [running[0] ?? [], ...running];
  const list = async () => {
    const ids = seen[Math.min(looks, seen.length - 1)] ?? [];
    looks += 1;
    return { sandboxes: ids.map((id) => ({ id, labels: { session: "work" } })), damaged: [], next: null };
  };
  const sandboxes = { list } as unknown as PackedState["sandboxes"];
  await packState(stateDir, {
    stateDir,
    runtime,
    sandboxes,
    databases: ["log.db"],
    attemptPauseMs: 0,
    signal: new AbortController().signal,
  });
  return packed;
}

const names = ["sessions/work"];
const changed = () => true;
const same = () => false;
const thrown = (code: "busy" | "not_found" | "unavailable") => () => {
  throw new CaissonError(code, "a sandbox");
};

describe("packState", () => {
  it("packs a changed session again, with its sandbox frozen if one started", async () => {
    expect(await packWith([changed, same], [[], [], ["sb_1"]])).toEqual([
      { names, still: [] },
      { names, still: ["sb_1"] },
    ]);
  });
  it("packs a session again if a sandbox started unnoticed", async () => {
    expect(await packWith([same], [[], ["sb_1"]])).toEqual([
      { names, still: [] },
      { names, still: ["sb_1"] },
    ]);
  });
  it("packs idle sessions together, and finds the one that changed", async () => {
    const others = ["a", "b", "c"];
    for (const name of others) mkdirSync(join(stateDir, "sessions", name));
    const all = [...others, "work"].map((name) => `sessions/${name}`);
    expect(await packWith([same])).toEqual([{ names: expect.toSatisfy((packedNames) => packedNames.length === 4), still: [] }]);
    const packed = await packWith([changed, same, changed, same]);
    expect(packed.map((each) => each.names.length)).toEqual([4, 2, 2, 1, 1]);
    expect(
      new Set(
        packed
          .slice(3)
          .concat(packed.slice(1, 2))
          .flatMap((each) => each.names),
      ),
    ).toEqual(new Set(all));
  });
  it("accepts a session with frozen sandboxes, even if other files change", async () => {
    expect(await packWith([changed], [["sb_1"]])).toHaveLength(1);
  });
  it("waits for a sandbox copy, and continues without a removed sandbox", async () => {
    expect(await packWith([thrown("busy"), thrown("not_found"), same], [["sb_1"], ["sb_1"], []])).toHaveLength(3);
  });
  it("gives up on a session that keeps changing, and at once on a failure", async () => {
    await expect(packWith([changed])).rejects.toMatchObject({ code: "busy" });
    await expect(packWith([thrown("unavailable")])).rejects.toMatchObject({ code: "unavailable" });
  });
});
