import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SandboxSpec, type SandboxSpecInput } from "../../contract/sandbox.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { createSandboxHolds, restLimits, type SandboxHolds } from "./sandbox-holds.ts";

describe("the sandboxes that a process holds", () => {
  let runtime: Runtime;
  let holds: SandboxHolds;
  /** Connections that were opened, each until it is let go. */
  let connections: { detached: number }[];
  /** Of all records. */
  let stamp: string | null;
  beforeEach(() => {
    runtime = createFakeRuntime();
    // What an earlier test gave up may still be opened.
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
  const create = (spec: SandboxSpecInput = {}) => runtime.create(SandboxSpec.parse(spec));
  const isThere = async ({ id }: OwnedSandbox) => (await runtime.list()).some((each) => each.id === id);

  test("share one connection, which goes with the last holder", async () => {
    const made = await create({ keep: true });
    const handles = await Promise.all([holds.hold(made.id), holds.hold(made.id), holds.hold(made.id)]);
    expect(connections).toHaveLength(1);
    await handles[0]?.release();
    await handles[0]?.release();
    await handles[1]?.[Symbol.asyncDispose]();
    expect(connections[0]?.detached, "one still holds it").toBe(0);
    await expect(handles[2]?.processes()).resolves.toBeInstanceOf(Array);
    await handles[2]?.release();
    expect(connections[0]?.detached).toBe(1);
    await using again = await holds.hold(made.id);
    expect(connections, "whoever comes later opens it anew").toHaveLength(2);
    await expect(again.processes()).resolves.toBeInstanceOf(Array);
    await made.destroy();
  });

  test("are of no use through a handle that was released, and unharmed for the others", async () => {
    const made = await create({ keep: true });
    const released = await holds.hold(made.id);
    await using other = await holds.hold(made.id);
    await released.release();
    await expect(released.spawn({ argv: ["true"] })).rejects.toMatchObject({ code: "gone" });
    await expect(released.stat("/")).rejects.toMatchObject({ code: "gone" });
    await expect(other.stat("/")).resolves.toMatchObject({ kind: "directory" });
    await made.destroy();
  });

  test("go with the last holder when they were made here and not to be kept", async () => {
    const mine = holds.adopt(await create());
    const other = await holds.hold(mine.id);
    expect(connections, "the maker's own connection serves all").toHaveLength(0);
    await mine.release();
    expect(await isThere(other)).toBe(true);
    await expect(other.processes()).resolves.toBeInstanceOf(Array);
    await other.release();
    expect(await isThere(other)).toBe(false);
  });

  test("stay when they were made here to be kept, or by somebody else", async () => {
    const kept = holds.adopt(await create({ keep: true }));
    await kept.release();
    expect(await isThere(kept)).toBe(true);
    const foreign = await create();
    const held = await holds.hold(foreign.id);
    await held.release();
    expect(await isThere(foreign)).toBe(true);
    await expect(foreign.processes(), "its maker's handle works").resolves.toBeInstanceOf(Array);
  });

  test("are removed when they cannot be left alone", async () => {
    const made = await create({ keep: true });
    const failing = { ...made, info: made.info, release: () => Promise.reject(new Error("no keeper")) };
    await expect(holds.adopt(failing).release()).rejects.toThrow("no keeper");
    expect(await isThere(made)).toBe(false);
  });

  test("are gone for every holder once one destroys them", async () => {
    const made = await create({ keep: true });
    const one = await holds.hold(made.id);
    const other = await holds.hold(made.id);
    await one.destroy();
    await expect(other.closed).resolves.toEqual({ why: "destroyed" });
    await expect(holds.hold(made.id)).rejects.toMatchObject({ code: "not_found" });
    await other.release();
  });

  test("are not held open by whoever gave up while they were opened", async () => {
    const made = await create({ keep: true });
    const abort = new AbortController();
    const holding = holds.hold(made.id, { signal: abort.signal });
    abort.abort();
    await expect(holding).rejects.toMatchObject({ code: "cancelled" });
    await expect.poll(() => connections[0]?.detached).toBe(1);
    await expect(holds.hold(made.id, { signal: abort.signal })).rejects.toMatchObject({ code: "cancelled" });
    await made.destroy();
  });

  describe("and whose connections rest", () => {
    let resting: AsyncDisposable;
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      resting = holds.letRest();
    });
    afterEach(async () => {
      await resting[Symbol.asyncDispose]();
      vi.useRealTimers();
    });
    const use = async (id: string) => {
      await using held = await holds.hold(id);
      await held.processes();
    };

    test("are opened once for one request after another, and let go after a while", async () => {
      const made = await create({ keep: true });
      await use(made.id);
      vi.advanceTimersByTime(restLimits.ms - 1);
      await use(made.id);
      vi.advanceTimersByTime(restLimits.ms - 1);
      expect(connections).toEqual([{ detached: 0 }]);
      expect(holds.resting(made.id)).toBeDefined();
      vi.advanceTimersByTime(1);
      await vi.waitFor(() => expect(connections).toEqual([{ detached: 1 }]), { timeout: 60_000 });
      expect(holds.resting(made.id)).toBeUndefined();
      await use(made.id);
      expect(connections).toHaveLength(2);
    });

    test("are opened anew when their record has changed, and by all who asked meanwhile", async () => {
      const made = await create({ keep: true });
      await use(made.id);
      stamp = "second";
      await Promise.all([use(made.id), use(made.id), use(made.id)]);
      expect(connections).toEqual([{ detached: 1 }, { detached: 0 }]);
    });

    test("rest also with their maker, who leaves them to themselves in the end", async () => {
      const mine = holds.adopt(await create({ keep: true }));
      await mine.release();
      await use(mine.id);
      expect(connections, "the maker's own connection serves all").toHaveLength(0);
      await resting[Symbol.asyncDispose]();
      expect(await isThere(mine)).toBe(true);
      await use(mine.id);
      expect(connections, "nothing rests any more").toEqual([{ detached: 1 }]);
    });

    test("do not rest where something ends, or is handed over, with the last holder", async () => {
      const passing = holds.adopt(await create());
      await passing.release();
      expect(await isThere(passing)).toBe(false);
      const made = await create({ keep: true, network: { mode: "open" } });
      await use(made.id);
      expect(connections).toEqual([{ detached: 1 }]);
    });

    test("are not held while they rest: what is gone is forgotten, and of too many the oldest goes", async () => {
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
