import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryFolder } from "../../../test/support/memory-folder.ts";
import { SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { createStore, type SandboxRecord, type Store } from "../../sandbox/store.ts";
import { RUN_LABEL } from "../vocabulary/station-names.ts";
import { createSandboxRoom, roomFor, type SandboxRoom } from "./sandbox-room.ts";

const GIB = 1024 ** 3;
const id = "sb_aaaaaaaaaaaa";
let stateDir: string;
let store: Store;
let room: SandboxRoom;
beforeEach(async () => {
  stateDir = await mkdtemp(join(memoryFolder(), "caisson-test-room-"));
  store = createStore({ stateDir });
  room = createSandboxRoom({ stateDir, store });
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

const record = (config: SandboxConfigInput, over: Partial<SandboxRecord> = {}): SandboxRecord => ({
  id,
  runtime: "fake",
  state: "running",
  createdAt: "2030-01-01T00:00:00.000Z",
  spec: SandboxConfig.parse(config),
  limits: { cpus: null, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 1000, outputBytes: null },
  warnings: [],
  owner: null,
  details: null,
  ...over,
});

describe("the room taken by sandboxes", () => {
  test("is their memory request or the default until they are removed", async () => {
    expect(await room.readTakenRoom()).toEqual({
      sandboxes: 0,
      memoryBytes: 0,
      runs: new Set(),
      byOwner: new Map(),
      promisedBytes: new Map(),
    });
    await store.write(record({ limits: { memoryBytes: GIB } }));
    await store.write(record({ labels: { [RUN_LABEL]: "run_a" } }, { id: "sb_bbbbbbbbbbbb" }));
    expect(await room.readTakenRoom()).toEqual({
      sandboxes: 2,
      memoryBytes: GIB + roomFor(null).memoryBytes,
      runs: new Set(["run_a"]),
      byOwner: new Map([["local", 2]]),
      promisedBytes: new Map([["local", expect.any(Number)]]),
    });
    await store.remove(id);
    expect(await room.readTakenRoom()).toMatchObject({ sandboxes: 1 });
  });

  test("counts sandboxes with a damaged record, but not those removed meanwhile", async () => {
    await store.write(record({}));
    await store.write(record({}, { id: "sb_bbbbbbbbbbbb" }));
    await writeFile(join(store.dir("sb_bbbbbbbbbbbb"), "sandbox.json"), "damaged");
    const racing = createSandboxRoom({
      stateDir,
      store: {
        async read(sandboxId) {
          if (sandboxId === id) await store.remove(id);
          return await store.read(sandboxId);
        },
      },
    });
    expect(await racing.readTakenRoom()).toMatchObject({ sandboxes: 1, memoryBytes: roomFor(null).memoryBytes });
  });

  test("excludes pooled sandboxes until they are claimed", async () => {
    await store.write(record({}, { details: { waiting: true } }));
    expect(await room.readTakenRoom()).toEqual({
      sandboxes: 0,
      memoryBytes: 0,
      runs: new Set(),
      byOwner: new Map(),
      promisedBytes: new Map(),
    });
    const claimed = { limits: { memoryBytes: 8 * GIB }, labels: { [RUN_LABEL]: "run_a" } };
    await store.write(record(claimed, { details: { waiting: false } }));
    expect(await room.readTakenRoom()).toEqual({
      sandboxes: 1,
      memoryBytes: 8 * GIB,
      runs: new Set(["run_a"]),
      byOwner: new Map([["local", 1]]),
      promisedBytes: new Map([["local", 8 * GIB]]),
    });
  });
});
