import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CaissonError } from "../../../contract/error/error.ts";
import type { RuntimeSet } from "../../../sandbox/runtime-set.ts";
import { createTemplateStore, type StoredTemplate, type TemplateStore } from "../../built-templates/template-store.ts";
import { buildSnapshotName } from "../../vocabulary/station-names.ts";
import { emptyConfig } from "./stage-state.ts";
import { createStepStore, type StepRecord, type StepStore } from "./step-store.ts";

let stateDir: string;
/** The snapshots of a runtime, by id, and those that others are built on. */
let snapshots: Map<string, string>;
let inUse: Set<string>;
let templates: TemplateStore;
let steps: StepStore;

const runtime = {
  snapshots: async () => [...snapshots].map(([id, name]) => ({ id, name, bytes: 7 })),
  async removeSnapshot(id: string) {
    if (inUse.has(id)) throw new CaissonError("conflict", "in use");
    if (!snapshots.delete(id)) throw new CaissonError("not_found", "missing");
  },
};
const runtimes = { names: ["oci", "host"], get: async () => runtime } as unknown as RuntimeSet;
/** A new process knows only what is on disk. */
const open = () => createStepStore({ stateDir, runtimes, templates });
const key = (letter: string) => letter.repeat(64);
const stepOf = (letter: string, parent: string | null = null): StepRecord => ({
  ...{ version: 1, key: key(letter), runtime: "oci", snapshot: `sn_${letter.repeat(12)}`, hasTmp: false, text: `RUN ${letter}`, bytes: 1 },
  ...{ parent, createdAt: `2026-01-01T00:00:0${letter.charCodeAt(0) - 97}.000Z` },
});
const take = (letter: string, build: string) => snapshots.set(`sn_${letter.repeat(12)}`, buildSnapshotName(build, 1));
const templateOf = (step: StepRecord): StoredTemplate => ({
  ...{ id: "tpl_aaaaaaaaaaaa", owner: "local", kind: "dockerfile", runtime: "oci", snapshot: step.snapshot, config: emptyConfig },
  ...{ ignored: [], digest: "d", bytes: 1, createdAt: "2026-01-01T00:00:00.000Z" },
});
/** A build whose process was killed: its pid is not running. */
function die(build: string): void {
  mkdirSync(join(stateDir, "builds/active"), { recursive: true });
  const holder = { pid: 2 ** 22 + 1, startTicks: 1, bootId: "another" };
  writeFileSync(join(stateDir, "builds/active", `${build}.json`), JSON.stringify({ holder, owner: "local" }));
}

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  snapshots = new Map();
  inUse = new Set();
  templates = createTemplateStore({ stateDir });
  steps = open();
});
afterEach(() => rmSync(stateDir, { recursive: true }));

test("finds a step only while its snapshot and its /tmp exist", async () => {
  take("a", "one");
  await steps.save(stepOf("a"));
  expect(await steps.find(key("a"))).toMatchObject({ text: "RUN a" });
  await steps.save({ ...stepOf("a"), hasTmp: true });
  expect(await steps.find(key("a"))).toBeNull();
  await steps.save(stepOf("a"));
  snapshots.clear();
  expect(await open().find(key("a"))).toBeNull();
});

test("removes what a dead build left, and nothing that a record or a living build has", async () => {
  take("a", "dead");
  await steps.save(stepOf("a"));
  take("b", "dead");
  die("dead");
  await using _build = await steps.begin("living", "local");
  take("c", "living");
  snapshots.set("sn_dddddddddddd", "session:x");
  await steps.sweepAfterDeath();
  expect([...snapshots.keys()]).toEqual(["sn_aaaaaaaaaaaa", "sn_cccccccccccc", "sn_dddddddddddd"]);
  expect(readdirSync(join(stateDir, "builds/active"))).toEqual(["living.json"]);
});

test("sweeps again if the process died while it swept", async () => {
  take("a", "dead");
  die("dead");
  inUse.add("sn_aaaaaaaaaaaa");
  const before = runtime.removeSnapshot;
  runtime.removeSnapshot = async () => Promise.reject(new Error("killed here"));
  await expect(steps.sweepAfterDeath()).rejects.toThrow("killed here");
  runtime.removeSnapshot = before;
  inUse.clear();
  await open().sweepAfterDeath();
  expect(snapshots.size).toBe(0);
});

test("does not remove a step that a template or a build uses", async () => {
  take("a", "one");
  await steps.save(stepOf("a"));
  await templates.save(templateOf(stepOf("a")), "app");
  expect(await steps.remove(key("a"))).toBe(false);
  await templates.remove("app");
  const build = await steps.begin("living", "local");
  expect(await steps.remove(key("a"))).toBe(false);
  expect(await steps.find(key("a"))).not.toBeNull();
  await build[Symbol.asyncDispose]();
  inUse.add("sn_aaaaaaaaaaaa");
  expect(await steps.remove(key("a"))).toBe(false);
  inUse.clear();
  expect(await steps.remove(key("a"))).toBe(true);
  expect(readdirSync(join(stateDir, "builds/steps"))).toEqual([]);
});

test("brings back a record that a dead process hid", async () => {
  take("a", "one");
  await steps.save(stepOf("a"));
  const { renameSync } = await import("node:fs");
  const folder = join(stateDir, "builds/steps");
  renameSync(join(folder, `${key("a")}.json`), join(folder, `${key("a")}.hidden`));
  writeFileSync(join(folder, `${key("b")}.tmp.tar`), "left behind");
  await steps.sweep();
  expect(readdirSync(folder)).toEqual([`${key("a")}.json`]);
});

test("a template uses the steps below its own", async () => {
  for (const letter of ["a", "b", "c"]) take(letter, "one");
  await steps.save(stepOf("a"));
  await steps.save(stepOf("b", key("a")));
  await steps.save(stepOf("c"));
  await templates.save(templateOf(stepOf("b")), "app");
  expect((await steps.unused()).map(({ text }) => text)).toEqual(["RUN c"]);
});

test("limits the builds of one owner, and of no other", async () => {
  for (let index = 0; index < 8; index += 1) await steps.begin(`b${index}`, "ada");
  await expect(steps.begin("more", "ada")).rejects.toMatchObject({ code: "busy" });
  await steps.begin("other", "bob");
});

test("a damaged record counts as missing", async () => {
  take("a", "one");
  await steps.save(stepOf("a"));
  writeFileSync(join(stateDir, "builds/steps", `${key("a")}.json`), "{");
  expect(await steps.find(key("a"))).toBeNull();
  expect(await steps.list()).toEqual([]);
});
