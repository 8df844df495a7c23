import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CaissonError } from "../contract/error/error.ts";
import { holdLease } from "./hold-lease.ts";
import { createMemoryLog } from "./memory/log.ts";

const ttlMs = 6_000;
const neverGone = () => false;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("holds a lease until it is disposed of", async () => {
  const log = createMemoryLog();
  const held = await holdLease(log, "a", { holder: "one", ttlMs, holderGone: neverGone });
  await vi.advanceTimersByTimeAsync(10 * ttlMs);
  expect(await holdLease(log, "a", { holder: "two", ttlMs, holderGone: neverGone })).toBeNull();
  await held?.[Symbol.asyncDispose]();
  expect(await holdLease(log, "a", { holder: "two", ttlMs, holderGone: neverGone })).not.toBeNull();
});

test("gives a late holder time to renew before its lease is taken", async () => {
  const log = createMemoryLog();
  let busy = false;
  const slow = {
    ...log,
    async renew(...args: Parameters<typeof log.renew>) {
      if (busy) throw new CaissonError("unavailable", "another process holds the log", { details: { log: true } });
      return await log.renew(...args);
    },
  };
  const held = await holdLease(slow, "a", { holder: "one", ttlMs, holderGone: neverGone });
  busy = true;
  await vi.advanceTimersByTimeAsync(2 * ttlMs);
  expect(await log.holder("a")).toBeNull();
  const taking = holdLease(log, "a", { holder: "two", ttlMs, holderGone: neverGone });
  busy = false;
  await vi.advanceTimersByTimeAsync(ttlMs);
  expect(await taking).toBeNull();
  expect(held?.lost.aborted).toBe(false);
});

test("takes a stopped holder's lease after that time, and a dead one's immediately", async () => {
  const log = createMemoryLog();
  let stopped = false;
  const stopping = {
    ...log,
    renew: (...args: Parameters<typeof log.renew>) => (stopped ? new Promise<never>(() => {}) : log.renew(...args)),
  };
  const held = await holdLease(stopping, "a", { holder: "one", ttlMs, holderGone: neverGone });
  stopped = true;
  await vi.advanceTimersByTimeAsync(2 * ttlMs);
  const taking = holdLease(log, "a", { holder: "two", ttlMs, holderGone: neverGone });
  await vi.advanceTimersByTimeAsync(ttlMs);
  expect((await taking)?.lease.epoch).toBe(2);
  expect((await holdLease(log, "a", { holder: "three", ttlMs, holderGone: () => true }))?.lease.epoch).toBe(3);
  expect(
    await log
      .append("a", [{ type: "x", version: 1, data: 1 }], held ? { lease: held.lease } : {})
      .catch((error: CaissonError) => error.code),
  ).toBe("superseded");
});

test("aborts the holder's signal when another process takes the lease", async () => {
  const log = createMemoryLog();
  const held = await holdLease(log, "a", { holder: "one", ttlMs, holderGone: neverGone });
  await log.acquire("a", { holder: "two", ttlMs, holderGone: () => true });
  await vi.advanceTimersByTimeAsync(ttlMs);
  expect(held?.lost.reason).toMatchObject({ code: "superseded" });
});
