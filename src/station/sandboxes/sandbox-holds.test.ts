import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxSpec, type SandboxSpecInput } from "../../contract/sandbox.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { createSandboxHolds, type SandboxHolds } from "./sandbox-holds.ts";

describe("the sandboxes that a process holds", () => {
  let runtime: Runtime;
  let holds: SandboxHolds;
  /** Connections that were opened, each until it is let go. */
  let connections: { detached: number }[];
  beforeEach(() => {
    runtime = createFakeRuntime();
    connections = [];
    holds = createSandboxHolds({
      async open(id) {
        const sandbox = await runtime.open(id);
        const connection = { detached: 0 };
        connections.push(connection);
        const detach = () => {
          connection.detached += 1;
          return sandbox.detach();
        };
        return { ...sandbox, detach, info: sandbox.info };
      },
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
});
