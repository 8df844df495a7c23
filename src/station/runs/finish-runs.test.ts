import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LEASE_TTL_MS } from "../../log/hold-lease.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createFakeRuntime } from "../../runtimes/fake/runtime.ts";
import { parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { createSessionStore } from "../../workspace/sessions.ts";
import { RUN_LABEL } from "../vocabulary/station-names.ts";
import { finishRuns } from "./finish-runs.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "setTimeout", "setInterval", "clearTimeout", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

test("only one process at a time removes the remains of a run", async () => {
  const log = createMemoryLog();
  const runtime = createFakeRuntime();
  await runtime.create(parseSandboxConfig({ labels: { [RUN_LABEL]: "run_left" }, keep: true }));
  const places = { home: "/nowhere", stateDir: "/nowhere/state" };
  const identity = { pid: 1, host: "here", startTicks: 1, bootId: "b" };
  const sessions = createSessionStore({ ...places, log, identity, alive: () => true });
  const removalStart = Promise.withResolvers<void>();
  const removed = Promise.withResolvers<void>();
  const finish = (holder: string, removeRemains: () => Promise<void>) =>
    finishRuns({ log, sessions, places, holder, holderGone: () => false, removeRemains, runtimes: [runtime] });

  const first = finish("one", async () => {
    removalStart.resolve();
    await removed.promise;
  });
  await removalStart.promise;
  await vi.advanceTimersByTimeAsync(3 * LEASE_TTL_MS);
  const second = vi.fn<() => Promise<void>>(async () => undefined);
  expect(await finish("two", second)).toEqual([]);
  expect(second).not.toHaveBeenCalled();

  removed.resolve();
  expect(await first).toEqual(["run_left"]);
  expect(await finish("two", second)).toEqual(["run_left"]);
});
