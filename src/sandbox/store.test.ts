import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { createStore, infoOf, isOrphan, isToSweep, type SandboxRecord, type Store } from "./store.ts";

let stateDir: string;
let store: Store;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-store-"));
  store = createStore({ stateDir });
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

function record(over: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: store.newId(),
    runtime: "oci",
    state: "creating",
    createdAt: new Date().toISOString(),
    spec: SandboxConfig.parse({}),
    limits: { cpus: 2, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1000, outputBytes: null },
    warnings: [],
    owner: store.thisProcess(),
    details: { cgroup: "/a", pids: [1, 2] },
    ...over,
  };
}

test("reads a noted record immediately, and a second note replaces it", async () => {
  const first = record();
  store.note(first);
  expect(await store.read(first.id)).toEqual(first);
  store.note({ ...first, state: "running" });
  expect((await store.read(first.id)).state).toBe("running");
  expect(await readdir(store.dir(first.id))).toEqual(["sandbox.json"]);
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([first.id]);
});

test("reads a written record, and a second write replaces it", async () => {
  const first = record();
  await store.write(first);
  expect(await store.read(first.id)).toEqual(first);
  await store.write({ ...first, state: "running" });
  expect((await store.read(first.id)).state).toBe("running");
  expect(await readdir(store.dir(first.id))).toEqual(["sandbox.json"]);
  expect(infoOf(first)).toMatchObject({ id: first.id, state: "creating", keep: false });
});

test("keeps the old record after a crash between temporary file and rename", async () => {
  const old = record();
  await store.write(old);
  await writeFile(join(store.dir(old.id), "sandbox.json.abcdefgh.tmp"), '{"id": "half');
  expect(await store.read(old.id)).toEqual(old);
  expect((await store.list()).records).toEqual([old]);
});

test("list removes the folder of a create that crashed", async () => {
  const dead = spawn("true");
  await new Promise((resolve) => dead.once("exit", resolve));
  await mkdir(join(stateDir, "sandboxes", `.new-${dead.pid}-123-abcdefgh`), { recursive: true });
  await mkdir(join(stateDir, "sandboxes", ".gone-sb_aaaaaaaaaaaa-abcdefgh", "rest"), { recursive: true });
  const { pid, startTicks } = store.thisProcess();
  await mkdir(join(stateDir, "sandboxes", `.new-${pid}-${startTicks}-abcdefgh`));
  expect(await store.list()).toEqual({ records: [], damaged: [] });
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([`.new-${pid}-${startTicks}-abcdefgh`]);
});

test.each([
  ["text that is not JSON", "{"],
  ["a record without its fields", "{}"],
  ["an empty file", ""],
])("list reports %s and still returns the other records", async (_name, text) => {
  const good = record();
  const bad = record();
  await store.write(good);
  await store.write(bad);
  await writeFile(join(store.dir(bad.id), "sandbox.json"), text);
  const { records, damaged } = await store.list();
  expect(records).toEqual([good]);
  expect(damaged).toEqual([{ id: bad.id, dir: store.dir(bad.id), reason: expect.any(String), beforeBoot: false }]);
  await expect(store.read(bad.id)).rejects.toMatchObject({ code: "internal" });
});

test("treats a record that names another sandbox as damaged", async () => {
  const one = record();
  const other = record();
  await store.write(one);
  await writeFile(join(store.dir(one.id), "sandbox.json"), JSON.stringify(other));
  expect((await store.list()).damaged).toMatchObject([{ id: one.id }]);
});

test("reports a folder without a record as damaged", async () => {
  const id = store.newId();
  await mkdir(store.dir(id), { recursive: true });
  expect((await store.list()).damaged).toMatchObject([{ id }]);
});

test("removes everything, and can be repeated", async () => {
  const one = record();
  await store.write(one);
  await mkdir(join(store.dir(one.id), "upper/deep"), { recursive: true });
  await store.remove(one.id);
  await store.remove(one.id);
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
  await expect(store.read(one.id)).rejects.toMatchObject({ code: "not_found" });
});

test("checks ids before it uses them in paths", async () => {
  expect(() => store.dir("../../etc")).toThrowError(expect.objectContaining({ code: "invalid" }));
  await expect(store.read("sb_x/../../..")).rejects.toMatchObject({ code: "invalid" });
});

test("a holder is alive only with the same pid, start time and boot", async () => {
  const me = store.thisProcess();
  expect(store.isHolderAlive(me)).toBe(true);
  expect(store.isHolderAlive({ ...me, startTicks: me.startTicks + 1 })).toBe(false);
  expect(store.isHolderAlive({ ...me, bootId: "another" })).toBe(false);
  expect(store.isHolderAlive(null)).toBe(false);
  const child = spawn("sleep", ["60"]);
  const stat = (await readFile(`/proc/${child.pid}/stat`, "latin1")).split(") ")[1]?.split(" ");
  const holder = { pid: child.pid as number, startTicks: Number(stat?.[19]), bootId: me.bootId };
  expect(store.isHolderAlive(holder)).toBe(true);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  expect(store.isHolderAlive(holder)).toBe(false);
});

test("a sandbox without keep is an orphan after its creator died", () => {
  const deadHolder = { ...store.thisProcess(), startTicks: 1 };
  expect(isOrphan(record())).toBe(false);
  expect(isOrphan(record({ owner: deadHolder }))).toBe(true);
  expect(isOrphan(record({ owner: null }))).toBe(false);
  expect(isOrphan(record({ owner: deadHolder, spec: SandboxConfig.parse({ keep: true }) }))).toBe(false);
});

test("sweeps a sandbox whose creator died while creating it, even with keep", () => {
  const deadHolder = { ...store.thisProcess(), startTicks: 1 };
  const config = SandboxConfig.parse({ keep: true });
  expect(isToSweep(record({ owner: deadHolder, spec: config, state: "creating" }))).toBe(true);
  expect(isToSweep(record({ spec: config, state: "creating" }))).toBe(false);
  expect(isToSweep(record({ owner: deadHolder, spec: config, state: "running" }))).toBe(false);
  expect(isToSweep(record({ owner: deadHolder, state: "running" }))).toBe(true);
});

test("reads a record again after another process replaced it", async () => {
  const first = record({ state: "running" });
  await store.write(first);
  const path = join(store.dir(first.id), "sandbox.json");
  const longAgo = new Date("2026-01-01T00:00:00Z");
  await utimes(path, longAgo, longAgo);
  expect(await store.read(first.id)).toMatchObject({ state: "running" });
  await createStore({ stateDir }).write({ ...first, state: "paused" });
  expect(await store.read(first.id)).toMatchObject({ state: "paused" });
  await store.label(first.id, { team: "blue" });
  expect(await store.read(first.id)).toMatchObject({ spec: { labels: { team: "blue" } } });
  await store.label(first.id, { team: "green" });
  expect((await store.list()).records).toMatchObject([{ state: "paused", spec: { labels: { team: "green" } } }]);
});

test("creates distinct ids in the contract's form", () => {
  const ids = new Set(Array.from({ length: 1000 }, () => store.newId()));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^sb_[a-z2-7]{12}$/);
});

test("writing a record while another process removes the sandbox is not_found", async () => {
  const other = createStore({ stateDir });
  for (let round = 0; round < 150; round++) {
    const sandboxRecord = record();
    await store.write(sandboxRecord);
    const completing = { ...sandboxRecord, state: "completing" as const };
    const outcomes = await Promise.allSettled([
      store.write(completing),
      other.remove(sandboxRecord.id),
      store.write(completing),
      store.label(sandboxRecord.id, { round: "x" }),
      other.remove(sandboxRecord.id),
    ]);
    for (const outcome of outcomes) if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "not_found" });
    await store.remove(sandboxRecord.id);
  }
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
});
