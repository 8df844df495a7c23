import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestStation } from "../../../test/support/testing-runs.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createStore, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import { claimName } from "./claim-name.ts";
import { findSandbox } from "./find-sandbox.ts";

let stateDir: string;
let store: Store;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-names-"));
  store = createStore({ stateDir });
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

const dead = { pid: 2 ** 22 - 1, startTicks: 1, bootId: "another" };

function keep(id: string, over: { name?: string; holder?: SandboxRecord["owner"] } = {}): void {
  const { name, holder = null } = over;
  const config = SandboxConfig.parse({ keep: holder === null, ...(name === undefined ? {} : { name }) });
  const limits = { cpus: null, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1000, outputBytes: null };
  store.note({
    id,
    runtime: "oci",
    state: "running",
    createdAt: new Date().toISOString(),
    spec: config,
    limits,
    warnings: [],
    owner: holder,
    details: {},
  });
}

test("findSandbox accepts an id, an id prefix and a name", async () => {
  keep("sb_aaaaaaaaaaaa", { name: "build" });
  keep("sb_aabbbbbbbbbb");
  expect(await findSandbox("sb_aaa", store)).toBe("sb_aaaaaaaaaaaa");
  expect(await findSandbox("build", store)).toBe("sb_aaaaaaaaaaaa");
  // A full id needs no lookup: opening the sandbox shows whether it exists.
  expect(await findSandbox("sb_cccccccccccc", store)).toBe("sb_cccccccccccc");
  await expect(findSandbox("sb_aa", store)).rejects.toMatchObject({
    code: "invalid",
    message: "sb_aa matches more than one sandbox",
    hint: expect.stringMatching(/^Use one of these: .*sb_aaaaaaaaaaaa \(build\)/),
    details: { candidates: expect.arrayContaining(["sb_aaaaaaaaaaaa", "sb_aabbbbbbbbbb"]) },
  });
  for (const word of ["sb_c", "buil", "other"]) await expect(findSandbox(word, store)).rejects.toMatchObject({ code: "not_found" });
  for (const word of ["sb_", "sb_AA", "sb_aaaaaaaaaaaaa", "", "../x", "Build"])
    await expect(findSandbox(word, store)).rejects.toMatchObject({ code: "invalid" });
});

test("claimName gives a name to one holder, and ignores a dead creator's sandbox", async () => {
  const log = createMemoryLog();
  const sessions = { has: async (id: string) => id === "a-session" };
  const self = JSON.stringify({ ...store.thisProcess(), host: "here" });
  const claim = (name: string, holder = self, owner = "local") =>
    claimName(name, { log, store, sessions, holder, owner, holderGone: (other) => other === "dead" });
  keep("sb_aaaaaaaaaaaa", { name: "kept" });
  keep("sb_bbbbbbbbbbbb", { name: "left", holder: dead });
  keep("sb_cccccccccccc", { name: "used", holder: store.thisProcess() });
  for (const name of ["kept", "used", "a-session"]) await expect(claim(name)).rejects.toMatchObject({ code: "exists" });
  await (await claim("left"))[Symbol.asyncDispose]();

  // Names are per owner: no owner learns of another's.
  await (await claim("kept", self, "ada"))[Symbol.asyncDispose]();

  const first = await claim("new");
  await (await claim("new", self, "ada"))[Symbol.asyncDispose]();
  await expect(claim("new")).rejects.toMatchObject({ code: "conflict" });
  await first[Symbol.asyncDispose]();
  const byDead = await claim("new", "dead");
  await (await claim("new"))[Symbol.asyncDispose]();
  await byDead[Symbol.asyncDispose]();
});

test("a run is found by id prefix or name, and its name is free when it has ended", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
  const { runs, sessions } = station.verbs;
  const start = (over: object = {}) => runs.start({ task: "do it", source: { kind: "empty" }, ...over });
  const { run: first } = await start({ name: "fix" });
  expect(await runs.wait("fix")).toMatchObject({ run: first, name: "fix" });
  expect(await runs.get(first.slice(0, 12))).toMatchObject({ run: first });
  expect(await sessions.get("fix")).toMatchObject({ id: first });
  expect(await sessions.get(first.slice(0, 12))).toMatchObject({ id: first });
  const events = [];
  for await (const { type } of runs.events("fix")) events.push(type);
  expect(events[0]).toBe("run.created");

  const { run: second } = await start({ name: "fix", detached: true });
  // The first run has ended: the name now belongs to the second, which is open.
  expect(await runs.get("fix")).toMatchObject({ run: second });
  await expect(start({ name: "fix" })).rejects.toMatchObject({ code: "exists" });
  await runs.stop("fix", { by: "me" });
  expect(await runs.get("fix")).toMatchObject({ run: second, finish: "cancelled" });
  await expect(runs.get("run_")).rejects.toMatchObject({ code: "invalid" });
  await expect(runs.get("missing")).rejects.toMatchObject({ code: "not_found", message: "there is no run missing" });
  await expect(sessions.get("missing")).rejects.toMatchObject({ code: "not_found", message: "there is no session missing" });
});

test("rejects names for runs and new sessions that look like ids or are taken", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
  const { runs, sessions } = station.verbs;
  const start = (over: object) => runs.start({ task: "do it", source: { kind: "empty" }, detached: true, ...over });
  for (const name of ["run_x", "sb_x", "sn_x"]) {
    await expect(start({ name })).rejects.toMatchObject({ code: "invalid" });
    await expect(start({ session: { id: name } })).rejects.toMatchObject({ code: "invalid" });
  }
  await start({ name: "mine", session: { id: "mine" } });
  await expect(start({ session: { id: "other" }, name: "mine" })).rejects.toMatchObject({ code: "exists" });
  expect((await sessions.list()).sessions.map(({ id }) => id)).toEqual(["mine"]);
  expect((await runs.list()).total).toBe(1);
});

test("a reopened run loses its name if another open run has it", async () => {
  await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
  const { runs } = station.verbs;
  const start = (over: object = {}) => runs.start({ task: "do it", source: { kind: "empty" }, name: "fix", ...over });
  const reopenings = async (run: string) => {
    const found = [];
    for await (const { type, data } of runs.events(run)) if (type === "run.reopened") found.push(data.lostName);
    return found;
  };
  // A run may share its session's name.
  const { run: first } = await start({ session: { id: "fix" } });
  await runs.wait(first);
  await runs.continue(first, { text: "more", by: "me" });
  expect(await runs.wait(first)).toMatchObject({ name: "fix" });

  const { run: second } = await start({ name: "other" });
  await runs.wait(second);
  const { run: newer } = await start({ name: "other", detached: true });
  await runs.continue(second, { text: "more", by: "me", detached: false });
  expect(await runs.wait(second)).toMatchObject({ name: null });
  expect(await runs.get("other")).toMatchObject({ run: newer });
  await runs.stop(newer, { by: "me" });
  await runs.continue(second, { text: "and more", by: "me" });
  expect(await runs.wait(second)).toMatchObject({ name: null });
  expect(await reopenings(first)).toEqual([undefined]);
  expect(await reopenings(second)).toEqual(["other", undefined]);
});
