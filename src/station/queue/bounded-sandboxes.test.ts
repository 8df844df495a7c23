import { describe, expect, test } from "vitest";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import { CreateSandbox } from "../../contract/sandbox/sandbox-verbs.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import { boundedSandboxes } from "./bounded-sandboxes.ts";
import type { Room } from "./schedule.ts";

const GIB = 1024 ** 3;
const bounds = {
  runsMax: 4,
  runsPerOwnerMax: 4,
  sandboxesMax: 4,
  sandboxesPerOwnerMax: 3,
  memoryBytesMax: 16 * GIB,
  promisedBytesMax: 64 * GIB,
  promisedBytesPerOwnerMax: 48 * GIB,
  queuedMax: 1,
  queuedPerOwnerMax: 1,
};

/** Sandboxes that take `taken`, one of which requested this much memory. A fork finishes after `making`. */
function bounded({
  taken: takenRoom,
  memoryBytes,
  making,
}: {
  taken: Room & { byOwner?: Map<string, number>; promisedBytes?: Map<string, number> };
  memoryBytes?: number;
  making?: Promise<void>;
}) {
  const calls: string[] = [];
  const info = { id: "sb_aaaaaaaaaaaa" } as SandboxInfo;
  const verbs = {
    get: async () => info,
    async create() {
      calls.push("create");
      return {} as HeldSandbox;
    },
    async fork(id: string) {
      calls.push(`fork ${id}`);
      await making;
      return info;
    },
  } as Partial<SandboxVerbs> as SandboxVerbs;
  const config = SandboxConfig.parse({ limits: memoryBytes === undefined ? {} : { memoryBytes } });
  const sandboxes = boundedSandboxes(verbs, {
    queue: async () => ({
      bounds,
      checkOpen() {},
      readTakenRoom: async () => ({ byOwner: new Map(), promisedBytes: new Map(), ...takenRoom }),
    }),
    store: { read: async () => ({ spec: config }) as SandboxRecord },
  });
  return { sandboxes, made: calls };
}

describe("a fork", () => {
  test("needs as much memory as its original requested", async () => {
    const { sandboxes, made: calls } = bounded({ taken: { sandboxes: 1, memoryBytes: 9 * GIB }, memoryBytes: 8 * GIB });
    await expect(sandboxes.fork("large")).rejects.toMatchObject({ code: "busy", details: { lacks: "memory" } });
    expect(calls).toEqual([]);
  });

  test("needs the default memory if its original requested no limit", async () => {
    const { sandboxes, made: calls } = bounded({ taken: { sandboxes: 1, memoryBytes: 9 * GIB } });
    await sandboxes.fork("small");
    expect(calls).toEqual(["fork sb_aaaaaaaaaaaa"]);
  });

  test("counts while it is being created", async () => {
    const { promise: making, resolve } = Promise.withResolvers<void>();
    const { sandboxes, made: calls } = bounded({ taken: { sandboxes: 1, memoryBytes: 6 * GIB }, memoryBytes: 6 * GIB, making });
    const create = () => sandboxes.create(CreateSandbox.parse({ spec: { limits: { memoryBytes: 6 * GIB } } }));
    const forking = sandboxes.fork("large");
    await expect.poll(() => calls).toHaveLength(1);
    await expect(create()).rejects.toMatchObject({ code: "busy", details: { lacks: "memory" } });
    resolve();
    await forking;
    await create();
  });
});

describe("promised memory", () => {
  const request = CreateSandbox.parse({ spec: {} });
  const small = CreateSandbox.parse({ spec: { limits: { memoryBytes: GIB } } });

  test("has a bound for one owner and for all owners", async () => {
    const takenRoom = { sandboxes: 0, memoryBytes: 0, promisedBytes: new Map([["ada", 45 * GIB]]) };
    const { sandboxes, made: calls } = bounded({ taken: takenRoom });
    await expect(sandboxes.create(request, { owner: "ada" })).rejects.toMatchObject({ code: "busy", hint: /memoryOvercommit/ });
    await sandboxes.create(small, { owner: "ada" });
    await sandboxes.create(request, { owner: "bob" });
    expect(calls).toHaveLength(2);
    const full = {
      ...takenRoom,
      promisedBytes: new Map([
        ["ada", 45 * GIB],
        ["bob", 17 * GIB],
      ]),
    };
    await expect(bounded({ taken: full }).sandboxes.create(request, { owner: "eve" })).rejects.toMatchObject({
      details: { lacks: "promised" },
    });
  });
});

describe("one owner", () => {
  const takenRoom = { sandboxes: 3, memoryBytes: GIB, byOwner: new Map([["ada", 3]]) };
  const request = CreateSandbox.parse({ spec: {} });

  test("gets no more than the per-owner limit and leaves the rest to others", async () => {
    const { sandboxes, made: calls } = bounded({ taken: takenRoom });
    await expect(sandboxes.create(request, { owner: "ada" })).rejects.toMatchObject({ code: "busy", details: { lacks: "owner" } });
    await sandboxes.create(request, { owner: "bob" });
    await sandboxes.create(request);
    expect(calls).toEqual(["create", "create"]);
  });

  test("has sandboxes counted while they are being created", async () => {
    const { promise: making, resolve } = Promise.withResolvers<void>();
    const { sandboxes, made: calls } = bounded({ taken: { ...takenRoom, sandboxes: 2, byOwner: new Map([["local", 2]]) }, making });
    const forking = sandboxes.fork("own");
    await expect.poll(() => calls).toHaveLength(1);
    await expect(sandboxes.create(request)).rejects.toMatchObject({ code: "busy", details: { lacks: "owner" } });
    resolve();
    await forking;
  });
});
