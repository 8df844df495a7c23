import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { createSandboxHolds, restLimits, type SandboxHolds } from "./sandbox-holds.ts";

describe("sandboxes held by a process", () => {
  let runtime: Runtime;
  let holds: SandboxHolds;
  /** Connections, with the number of times each was detached. */
  let connections: { detached: number }[];
  /** The stamp of all records. */
  let stamp: string | null;
  beforeEach(() => {
    runtime = createFakeRuntime();
    // A cancelled hold of an earlier test may still open a connection.
    const opened: typeof connections = [];
    connections = opened;
    stamp = "first";
    holds = createSandboxHolds({
      async open(id) {
        const sandbox = await runtime.open(id);
        const connection = { detached: 0 };
        opened.push(connection);
        const detach = () => {
          connection.detached += 1;
          return sandbox.detach();
        };
        return { ...sandbox, detach, info: sandbox.info };
      },
      stampOf: async () => stamp,
    });
  });
  afterEach(() => runtime[Symbol.asyncDispose]());
  const create = (config: SandboxConfigInput = {}) => runtime.create(SandboxConfig.parse(config));
  const isThere = async ({ id }: OwnedSandbox) => (await runtime.list()).some((each) => each.id === id);

  test("share one connection until the last holder releases it", async () => {
    const sandbox = await create({ keep: true });
    const handles = await Promise.all([holds.hold(sandbox.id), holds.hold(sandbox.id), holds.hold(sandbox.id)]);
    expect(connections).toHaveLength(1);
    await handles[0]?.release();
    await handles[0]?.release();
    await handles[1]?.[Symbol.asyncDispose]();
    expect(connections[0]?.detached, "one still holds it").toBe(0);
    await expect(handles[2]?.processes()).resolves.toBeInstanceOf(Array);
    await handles[2]?.release();
    expect(connections[0]?.detached).toBe(1);
    await using again = await holds.hold(sandbox.id);
    expect(connections, "later holders open it again").toHaveLength(2);
    await expect(again.processes()).resolves.toBeInstanceOf(Array);
    await sandbox.destroy();
  });

  test("reject calls on a released handle, and still serve other holders", async () => {
    const sandbox = await create({ keep: true });
    const released = await holds.hold(sandbox.id);
    await using other = await holds.hold(sandbox.id);
    await released.release();
    await expect(released.spawn({ argv: ["true"] })).rejects.toMatchObject({ code: "gone" });
    await expect(released.stat("/")).rejects.toMatchObject({ code: "gone" });
    await expect(other.stat("/")).resolves.toMatchObject({ kind: "directory" });
    await sandbox.destroy();
  });

  test("end with the last holder if created here and not kept", async () => {
    const mine = holds.adopt(await create());
    const other = await holds.hold(mine.id);
    expect(connections, "the maker's own connection serves all").toHaveLength(0);
    await mine.release();
    expect(await isThere(other)).toBe(true);
    await expect(other.processes()).resolves.toBeInstanceOf(Array);
    await other.release();
    expect(await isThere(other)).toBe(false);
  });

  test("survive if kept or created by another process", async () => {
    const keptSandbox = holds.adopt(await create({ keep: true }));
    await keptSandbox.release();
    expect(await isThere(keptSandbox)).toBe(true);
    const foreign = await create();
    const held = await holds.hold(foreign.id);
    await held.release();
    expect(await isThere(foreign)).toBe(true);
    await expect(foreign.processes(), "its maker's handle works").resolves.toBeInstanceOf(Array);
  });

  test("are removed if they cannot be released", async () => {
    const sandbox = await create({ keep: true });
    const failing = { ...sandbox, info: sandbox.info, release: () => Promise.reject(new Error("no keeper")) };
    await expect(holds.adopt(failing).release()).rejects.toThrow("no keeper");
    expect(await isThere(sandbox)).toBe(false);
  });

  test("end for every holder as soon as one destroys them", async () => {
    const sandbox = await create({ keep: true });
    const one = await holds.hold(sandbox.id);
    const other = await holds.hold(sandbox.id);
    await one.destroy();
    await expect(other.closed).resolves.toEqual({ why: "destroyed" });
    await expect(holds.hold(sandbox.id)).rejects.toMatchObject({ code: "not_found" });
    await other.release();
  });

  test("are not kept open for a caller that cancelled", async () => {
    const sandbox = await create({ keep: true });
    const abort = new AbortController();
    const holding = holds.hold(sandbox.id, { signal: abort.signal });
    abort.abort();
    await expect(holding).rejects.toMatchObject({ code: "cancelled" });
    await expect.poll(() => connections[0]?.detached).toBe(1);
    await expect(holds.hold(sandbox.id, { signal: abort.signal })).rejects.toMatchObject({ code: "cancelled" });
    await sandbox.destroy();
  });

  describe("with idle connections", () => {
    let resting: AsyncDisposable;
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      resting = holds.keepIdle();
    });
    afterEach(async () => {
      await resting[Symbol.asyncDispose]();
      vi.useRealTimers();
    });
    const use = async (id: string) => {
      await using held = await holds.hold(id);
      await held.processes();
    };

    test("open once for consecutive requests, and close after a while", async () => {
      const sandbox = await create({ keep: true });
      await use(sandbox.id);
      vi.advanceTimersByTime(restLimits.ms - 1);
      await use(sandbox.id);
      vi.advanceTimersByTime(restLimits.ms - 1);
      expect(connections).toEqual([{ detached: 0 }]);
      expect(holds.resting(sandbox.id)).toBeDefined();
      vi.advanceTimersByTime(1);
      await vi.waitFor(() => expect(connections).toEqual([{ detached: 1 }]), { timeout: 60_000 });
      expect(holds.resting(sandbox.id)).toBeUndefined();
      await use(sandbox.id);
      expect(connections).toHaveLength(2);
    });

    test("reopen for all callers after their record changed", async () => {
      const sandbox = await create({ keep: true });
      await use(sandbox.id);
      stamp = "second";
      await Promise.all([use(sandbox.id), use(sandbox.id), use(sandbox.id)]);
      expect(connections).toEqual([{ detached: 1 }, { detached: 0 }]);
    });

    test("keep their creator's connection idle, and release it at the end", async () => {
      const mine = holds.adopt(await create({ keep: true }));
      await mine.release();
      await use(mine.id);
      expect(connections, "the maker's own connection serves all").toHaveLength(0);
      await resting[Symbol.asyncDispose]();
      expect(await isThere(mine)).toBe(true);
      await use(mine.id);
      expect(connections, "nothing rests").toEqual([{ detached: 1 }]);
    });

    test("do not idle if the last holder ends or hands over the sandbox", async () => {
      const passing = holds.adopt(await create());
      await passing.release();
      expect(await isThere(passing)).toBe(false);
      const sandbox = await create({ keep: true, network: { mode: "open" } });
      await use(sandbox.id);
      expect(connections).toEqual([{ detached: 1 }]);
    });

    test("close the oldest connection above the limit, and those of ended sandboxes", async () => {
      const [first, ...others] = await Promise.all(Array.from({ length: restLimits.max + 1 }, () => create({ keep: true })));
      for (const { id } of [first as OwnedSandbox, ...others]) await use(id);
      expect(connections.map(({ detached }) => detached)).toEqual([1, ...others.map(() => 0)]);
      const [second] = others as [OwnedSandbox, ...OwnedSandbox[]];
      await (await holds.resting(second.id))?.destroy();
      expect(await isThere(second)).toBe(false);
      await vi.waitFor(() => expect(holds.resting(second.id)).toBeUndefined(), { timeout: 60_000 });
    });
  });
});
