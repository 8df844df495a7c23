import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SandboxSpec } from "../contract/sandbox.ts";
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
    spec: SandboxSpec.parse({}),
    limits: { cpus: 2, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1000, outputBytes: null },
    warnings: [],
    owner: store.ownerOf(),
    details: { cgroup: "/a", pids: [1, 2] },
    ...over,
  };
}

test("a noted record is there at once, and a second note replaces it", async () => {
  const first = record();
  store.note(first);
  expect(await store.read(first.id)).toEqual(first);
  store.note({ ...first, state: "running" });
  expect((await store.read(first.id)).state).toBe("running");
  expect(await readdir(store.dir(first.id))).toEqual(["sandbox.json"]);
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([first.id]);
});

test("a record comes back as it was written, and a second write replaces it", async () => {
  const first = record();
  await store.write(first);
  expect(await store.read(first.id)).toEqual(first);
  await store.write({ ...first, state: "running" });
  expect((await store.read(first.id)).state).toBe("running");
  expect(await readdir(store.dir(first.id))).toEqual(["sandbox.json"]);
  expect(infoOf(first)).toMatchObject({ id: first.id, state: "creating", keep: false });
});

test("a crash between the temporary file and the rename leaves the old record", async () => {
  const old = record();
  await store.write(old);
  await writeFile(join(store.dir(old.id), "sandbox.json.abcdefgh.tmp"), '{"id": "half');
  expect(await store.read(old.id)).toEqual(old);
  expect((await store.list()).records).toEqual([old]);
});

test("a crash while a sandbox's folder is made leaves nothing that looks like a sandbox, and the next listing clears it away", async () => {
  const dead = spawn("true");
  await new Promise((resolve) => dead.once("exit", resolve));
  await mkdir(join(stateDir, "sandboxes", `.new-${dead.pid}-123-abcdefgh`), { recursive: true });
  await mkdir(join(stateDir, "sandboxes", ".gone-sb_aaaaaaaaaaaa-abcdefgh", "rest"), { recursive: true });
  const { pid, startTicks } = store.ownerOf();
  await mkdir(join(stateDir, "sandboxes", `.new-${pid}-${startTicks}-abcdefgh`));
  expect(await store.list()).toEqual({ records: [], damaged: [] });
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([`.new-${pid}-${startTicks}-abcdefgh`]);
});

test.each([
  ["text that is not JSON", "{"],
  ["a record without its fields", "{}"],
  ["an empty file", ""],
])("%s is reported by list and hides nothing else", async (_name, text) => {
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

test("a record that names another sandbox is damaged", async () => {
  const one = record();
  const other = record();
  await store.write(one);
  await writeFile(join(store.dir(one.id), "sandbox.json"), JSON.stringify(other));
  expect((await store.list()).damaged).toMatchObject([{ id: one.id }]);
});

test("a folder without a record is reported, since something died there", async () => {
  const id = store.newId();
  await mkdir(store.dir(id), { recursive: true });
  expect((await store.list()).damaged).toMatchObject([{ id }]);
});

test("remove takes everything, twice does no harm, and an absent one is not found", async () => {
  const one = record();
  await store.write(one);
  await mkdir(join(store.dir(one.id), "upper/deep"), { recursive: true });
  await store.remove(one.id);
  await store.remove(one.id);
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
  await expect(store.read(one.id)).rejects.toMatchObject({ code: "not_found" });
});

test("ids are checked before they become paths", async () => {
  expect(() => store.dir("../../etc")).toThrowError(expect.objectContaining({ code: "invalid" }));
  await expect(store.read("sb_x/../../..")).rejects.toMatchObject({ code: "invalid" });
});

test("an owner is alive only with the same pid, start and boot", async () => {
  const me = store.ownerOf();
  expect(store.ownerAlive(me)).toBe(true);
  expect(store.ownerAlive({ ...me, startTicks: me.startTicks + 1 })).toBe(false);
  expect(store.ownerAlive({ ...me, bootId: "another" })).toBe(false);
  expect(store.ownerAlive(null)).toBe(false);
  const child = spawn("sleep", ["60"]);
  const stat = (await readFile(`/proc/${child.pid}/stat`, "latin1")).split(") ")[1]?.split(" ");
  const owner = { pid: child.pid as number, startTicks: Number(stat?.[19]), bootId: me.bootId };
  expect(store.ownerAlive(owner)).toBe(true);
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  expect(store.ownerAlive(owner)).toBe(false);
});

test("an orphan is what a dead creator left and nobody kept", () => {
  const deadOwner = { ...store.ownerOf(), startTicks: 1 };
  expect(isOrphan(record())).toBe(false);
  expect(isOrphan(record({ owner: deadOwner }))).toBe(true);
  expect(isOrphan(record({ owner: null }))).toBe(false);
  expect(isOrphan(record({ owner: deadOwner, spec: SandboxSpec.parse({ keep: true }) }))).toBe(false);
});

test("one whose creator died over making it is to be swept, also where it was to be kept", () => {
  const deadOwner = { ...store.ownerOf(), startTicks: 1 };
  const spec = SandboxSpec.parse({ keep: true });
  expect(isToSweep(record({ owner: deadOwner, spec, state: "creating" }))).toBe(true);
  expect(isToSweep(record({ spec, state: "creating" }))).toBe(false);
  expect(isToSweep(record({ owner: deadOwner, spec, state: "running" }))).toBe(false);
  expect(isToSweep(record({ owner: deadOwner, state: "running" }))).toBe(true);
});

test("a record that was read before is read anew once somebody else has replaced it", async () => {
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

test("new ids have the form of the contract and differ", () => {
  const ids = new Set(Array.from({ length: 1000 }, () => store.newId()));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^sb_[a-z2-7]{12}$/);
});

test("a record that is written while another process removes the sandbox is not found, and no raw failure", async () => {
  const other = createStore({ stateDir });
  for (let round = 0; round < 150; round++) {
    const made = record();
    await store.write(made);
    const completing = { ...made, state: "completing" as const };
    const outcomes = await Promise.allSettled([
      store.write(completing),
      other.remove(made.id),
      store.write(completing),
      store.label(made.id, { round: "x" }),
      other.remove(made.id),
    ]);
    for (const outcome of outcomes) if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "not_found" });
    await store.remove(made.id);
  }
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
});
