import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ProcessIdentity } from "../../contract/process-identity.ts";
import { currentProcess, isProcessAlive } from "../../sandbox/process-identity.ts";
import { becomeKeeper, createServingMark, keeperOf, servedBy } from "./serving.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-serving-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** A process with this pid, which lives while `alive` contains it. */
const storeOf = (pid: number, alive: Set<number>) => ({
  thisProcess: (): ProcessIdentity => ({ pid, startTicks: 1, bootId: "boot" }),
  isHolderAlive: (holder: ProcessIdentity | null) => holder !== null && alive.has(holder.pid),
});

test("makes exactly one process the keeper, and replaces a keeper that died", async () => {
  const alive = new Set(Array.from({ length: 12 }, (_, index) => index + 1));
  const tryAll = () => Promise.all([...alive].map(async (pid) => ((await becomeKeeper(folder, storeOf(pid, alive))) ? [pid] : [])));
  for (let round = 0; round < 5; round++) {
    const keepers = (await tryAll()).flat();
    expect(keepers).toHaveLength(1);
    expect(keeperOf(folder, storeOf(1, alive))).toEqual({ pid: keepers[0], serves: false });
    // The keeper may claim the role again.
    expect(await becomeKeeper(folder, storeOf(keepers[0] as number, alive))).toBe(true);
    alive.delete(keepers[0] as number);
    expect(keeperOf(folder, storeOf(1, alive))).toBeNull();
  }
  expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("does not hide the keeper behind a temporary server", async () => {
  const alive = new Set([1, 2]);
  const [keeper, other] = [storeOf(1, alive), storeOf(2, alive)];
  await becomeKeeper(folder, keeper);
  const [keepers, others] = [createServingMark(folder, keeper), createServingMark(folder, other)];
  await keepers.set();
  await others.set();
  expect(keeperOf(folder, other)).toEqual({ pid: 1, serves: true });
  await others.clear();
  expect(servedBy(folder, other)).toBe(1);
  alive.delete(1);
  expect(servedBy(folder, other)).toBeNull();
});

test("a process serves until the last of its handles has ended", async () => {
  const alive = new Set([1, 2]);
  const [first, second] = [createServingMark(folder, storeOf(1, alive)), createServingMark(folder, storeOf(1, alive))];
  for (const mark of [first, second, second]) await mark.set();
  await first.clear();
  await first.clear();
  expect(servedBy(folder, storeOf(2, alive))).toBe(1);
  await second.clear();
  expect(servedBy(folder, storeOf(2, alive))).toBeNull();
  await second.set();
  alive.delete(1);
  await createServingMark(folder, storeOf(2, alive)).set();
  expect(servedBy(folder, storeOf(2, alive))).toBe(2);
  expect(await readdir(folder)).toHaveLength(1);
});

test("excludes other processes", async () => {
  const program = `
    import { becomeKeeper } from ${JSON.stringify(join(import.meta.dirname, "serving.ts"))};
    import { currentProcess, isProcessAlive } from ${JSON.stringify(join(import.meta.dirname, "../../sandbox/process-identity.ts"))};
    process.stdout.write(String(await becomeKeeper(process.argv[1], { thisProcess: currentProcess, isHolderAlive: isProcessAlive })));
    process.stdin.resume();
  `;
  const children = Array.from({ length: 4 }, () =>
    promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program, folder], {
      env: { ...process.env, NODE_NO_WARNINGS: "1" },
    }),
  );
  // Each process lives until all have reported, so no process finds another one dead.
  const words = await Promise.all(children.map(({ child }) => new Promise<string>((resolve) => child.stdout?.once("data", resolve))));
  for (const { child } of children) child.stdin?.end();
  await Promise.all(children);
  expect(words.map(String).sort()).toEqual(["false", "false", "false", "true"]);
  // They are dead now.
  expect(await becomeKeeper(folder, { thisProcess: currentProcess, isHolderAlive: isProcessAlive })).toBe(true);
});
