import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createStore, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import type { SandboxChange } from "./local-sandboxes.ts";
import { startChronicle } from "./sandbox-chronicle.ts";

let stateDir = "";
let log: Log;
let store: Store;
const defects: unknown[] = [];
const listeners = new Set<(change: SandboxChange) => void>();
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-chronicle-"));
  log = createMemoryLog();
  store = createStore({ stateDir });
});
afterEach(async () => {
  await rm(stateDir, { recursive: true, force: true });
  expect(defects.splice(0)).toEqual([]);
});

const start = () =>
  startChronicle({
    stateDir,
    store,
    log,
    onDefect: (error) => defects.push(error),
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });

const record = (id: string, over: Partial<SandboxRecord> = {}): SandboxRecord => ({
  id,
  runtime: "fake",
  state: "running",
  createdAt: "2030-01-01T00:00:00.000Z",
  spec: SandboxConfig.parse({ keep: true, owner: "ann" }),
  limits: { cpus: null, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1000, outputBytes: null },
  warnings: [],
  owner: null,
  details: null,
  ...over,
});

const typesOf = async (id: string) => (await log.read(`sandbox/${id}`)).map(({ type }) => type.replace("sandbox.", ""));
const expectTypes = (id: string, types: string[]) => expect.poll(() => typesOf(id), { timeout: 5_000 }).toEqual(types);

describe("the chronicle of sandboxes", () => {
  test("records what other processes do to a sandbox", async () => {
    await using _ = start();
    const id = "sb_aaaaaaaaaaaa";
    await store.write(record(id, { state: "creating" }));
    await store.write(record(id));
    await expectTypes(id, ["created"]);
    await store.write(record(id, { state: "paused" }));
    await expectTypes(id, ["created", "paused"]);
    await store.write(record(id));
    await expectTypes(id, ["created", "paused", "resumed"]);
    await store.remove(id);
    await expectTypes(id, ["created", "paused", "resumed", "ended"]);
    expect((await log.head(`sandbox/${id}`))?.head).toMatchObject({ life: { state: "ended", owner: "ann" } });
  });

  test("records nothing twice after a restart, and catches up on missed changes", async () => {
    const ids = { same: "sb_aaaaaaaaaaaa", gone: "sb_bbbbbbbbbbbb", held: "sb_cccccccccccc", fresh: "sb_dddddddddddd" };
    for (const id of [ids.same, ids.gone, ids.held]) await store.write(record(id));
    const first = start();
    for (const id of [ids.same, ids.gone, ids.held]) await expectTypes(id, ["created"]);
    await first[Symbol.asyncDispose]();
    await store.remove(ids.gone);
    await store.write(record(ids.held, { state: "paused" }));
    await store.write(record(ids.fresh));
    await using _ = start();
    await expectTypes(ids.fresh, ["created"]);
    await expectTypes(ids.held, ["created", "paused"]);
    await expectTypes(ids.gone, ["created", "ended"]);
    expect(await typesOf(ids.same)).toEqual(["created"]);
  });

  test("records sandboxes that end at once, but not pooled ones", async () => {
    await using _ = start();
    const [quick, waiting] = ["sb_aaaaaaaaaaaa", "sb_bbbbbbbbbbbb"];
    await store.write(record(waiting, { details: { waiting: true } }));
    const { spec: config, limits, createdAt } = record(quick);
    const { template, workspace, mounts, network, allowRoot, keep, labels } = config;
    const info = { id: quick, runtime: "fake", state: "running" as const, createdAt, limits, warnings: [], owner: "ann" };
    for (const tell of listeners) {
      tell({ kind: "made", info: { ...info, template, workspace, mounts, network, allowRoot, keep, labels } });
      tell({ kind: "ended", id: quick });
    }
    await expectTypes(quick, ["created", "ended"]);
    expect(await typesOf(waiting)).toEqual([]);
    await store.write(record(waiting));
    await expectTypes(waiting, ["created"]);
  });
});
