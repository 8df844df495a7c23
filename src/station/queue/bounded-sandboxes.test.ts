import { describe, expect, test } from "vitest";
import type { SandboxInfo } from "../../contract/sandbox.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";
import { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { HeldSandbox } from "../sandboxes/held-sandbox.ts";
import type { SandboxVerbs } from "../sandboxes/verbs.ts";
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

/** Sandboxes that take `taken`, one of which asked for this much memory; a fork is there after `making`. */
function bounded({
  taken,
  memoryBytes,
  making,
}: {
  taken: Room & { byOwner?: Map<string, number>; promisedBytes?: Map<string, number> };
  memoryBytes?: number;
  making?: Promise<void>;
}) {
  const made: string[] = [];
  const info = { id: "sb_aaaaaaaaaaaa" } as SandboxInfo;
  const verbs = {
    get: async () => info,
    async create() {
      made.push("create");
      return {} as HeldSandbox;
    },
    async fork(id: string) {
      made.push(`fork ${id}`);
      await making;
      return info;
    },
  } as Partial<SandboxVerbs> as SandboxVerbs;
  const spec = SandboxSpec.parse({ limits: memoryBytes === undefined ? {} : { memoryBytes } });
  const sandboxes = boundedSandboxes(verbs, {
    queue: async () => ({ bounds, checkOpen() {}, taken: async () => ({ byOwner: new Map(), promisedBytes: new Map(), ...taken }) }),
    store: { read: async () => ({ spec }) as SandboxRecord },
  });
  return { sandboxes, made };
}

describe("a fork", () => {
  test("needs the room that its original asked for", async () => {
    const { sandboxes, made } = bounded({ taken: { sandboxes: 1, memoryBytes: 9 * GIB }, memoryBytes: 8 * GIB });
    await expect(sandboxes.fork("large")).rejects.toMatchObject({ code: "busy", details: { lacks: "memory" } });
    expect(made).toEqual([]);
  });

  test("of one that asked for nothing needs the usual", async () => {
    const { sandboxes, made } = bounded({ taken: { sandboxes: 1, memoryBytes: 9 * GIB } });
    await sandboxes.fork("small");
    expect(made).toEqual(["fork sb_aaaaaaaaaaaa"]);
  });

  test("that is being made counts, before anybody sees it", async () => {
    const { promise: making, resolve } = Promise.withResolvers<void>();
    const { sandboxes, made } = bounded({ taken: { sandboxes: 1, memoryBytes: 6 * GIB }, memoryBytes: 6 * GIB, making });
    const create = () => sandboxes.create(CreateSandbox.parse({ spec: { limits: { memoryBytes: 6 * GIB } } }));
    const forking = sandboxes.fork("large");
    await expect.poll(() => made).toHaveLength(1);
    await expect(create()).rejects.toMatchObject({ code: "busy", details: { lacks: "memory" } });
    resolve();
    await forking;
    await create();
  });
});

describe("memory that sandboxes may use", () => {
  const request = CreateSandbox.parse({ spec: {} });
  const small = CreateSandbox.parse({ spec: { limits: { memoryBytes: GIB } } });

  test("is promised up to a bound for one owner, and for all; a sandbox without a limit counts the usual one", async () => {
    const taken = { sandboxes: 0, memoryBytes: 0, promisedBytes: new Map([["ada", 45 * GIB]]) };
    const { sandboxes, made } = bounded({ taken });
    await expect(sandboxes.create(request, { owner: "ada" })).rejects.toMatchObject({ code: "busy", hint: /memoryOvercommit/ });
    await sandboxes.create(small, { owner: "ada" });
    await sandboxes.create(request, { owner: "bob" });
    expect(made).toHaveLength(2);
    const full = {
      ...taken,
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
  const taken = { sandboxes: 3, memoryBytes: GIB, byOwner: new Map([["ada", 3]]) };
  const request = CreateSandbox.parse({ spec: {} });

  test("has no more than theirs, and leaves the rest to others", async () => {
    const { sandboxes, made } = bounded({ taken });
    await expect(sandboxes.create(request, { owner: "ada" })).rejects.toMatchObject({ code: "busy", details: { lacks: "owner" } });
    await sandboxes.create(request, { owner: "bob" });
    await sandboxes.create(request);
    expect(made).toEqual(["create", "create"]);
  });

  test("has those counted that are being made, before anybody sees them", async () => {
    const { promise: making, resolve } = Promise.withResolvers<void>();
    const { sandboxes, made } = bounded({ taken: { ...taken, sandboxes: 2, byOwner: new Map([["local", 2]]) }, making });
    const forking = sandboxes.fork("own");
    await expect.poll(() => made).toHaveLength(1);
    await expect(sandboxes.create(request)).rejects.toMatchObject({ code: "busy", details: { lacks: "owner" } });
    resolve();
    await forking;
  });
});
