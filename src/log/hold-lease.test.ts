import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CaissonError } from "../contract/error.ts";
import { holdLease } from "./hold-lease.ts";
import { createMemoryLog } from "./memory/log.ts";

const ttlMs = 6_000;
const nobodyGone = () => false;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("is held for as long as it is not disposed of, then free", async () => {
  const log = createMemoryLog();
  const held = await holdLease(log, "a", { owner: "one", ttlMs, ownerGone: nobodyGone });
  await vi.advanceTimersByTimeAsync(10 * ttlMs);
  expect(await holdLease(log, "a", { owner: "two", ttlMs, ownerGone: nobodyGone })).toBeNull();
  await held?.[Symbol.asyncDispose]();
  expect(await holdLease(log, "a", { owner: "two", ttlMs, ownerGone: nobodyGone })).not.toBeNull();
});

test("an owner that could not renew in time is asked to show itself before its lease is taken", async () => {
  const log = createMemoryLog();
  let busy = false;
  const slow = {
    ...log,
    async renew(...asked: Parameters<typeof log.renew>) {
      if (busy) throw new CaissonError("unavailable", "another process holds the log", { details: { log: true } });
      return await log.renew(...asked);
    },
  };
  const held = await holdLease(slow, "a", { owner: "one", ttlMs, ownerGone: nobodyGone });
  busy = true;
  await vi.advanceTimersByTimeAsync(2 * ttlMs);
  expect(await log.holder("a")).toBeNull();
  const taking = holdLease(log, "a", { owner: "two", ttlMs, ownerGone: nobodyGone });
  busy = false;
  await vi.advanceTimersByTimeAsync(ttlMs);
  expect(await taking).toBeNull();
  expect(held?.lost.aborted).toBe(false);
});

test("one that stands still loses it after that, and learns of it; one that is gone loses it at once", async () => {
  const log = createMemoryLog();
  let stopped = false;
  const stopping = {
    ...log,
    renew: (...asked: Parameters<typeof log.renew>) => (stopped ? new Promise<never>(() => {}) : log.renew(...asked)),
  };
  const held = await holdLease(stopping, "a", { owner: "one", ttlMs, ownerGone: nobodyGone });
  stopped = true;
  await vi.advanceTimersByTimeAsync(2 * ttlMs);
  const taking = holdLease(log, "a", { owner: "two", ttlMs, ownerGone: nobodyGone });
  await vi.advanceTimersByTimeAsync(ttlMs);
  expect((await taking)?.lease.epoch).toBe(2);
  expect((await holdLease(log, "a", { owner: "three", ttlMs, ownerGone: () => true }))?.lease.epoch).toBe(3);
  expect(
    await log
      .append("a", [{ type: "x", version: 1, data: 1 }], held ? { lease: held.lease } : {})
      .catch((error: CaissonError) => error.code),
  ).toBe("superseded");
});

test("losing it to another says so", async () => {
  const log = createMemoryLog();
  const held = await holdLease(log, "a", { owner: "one", ttlMs, ownerGone: nobodyGone });
  await log.acquire("a", { owner: "two", ttlMs, ownerGone: () => true });
  await vi.advanceTimersByTimeAsync(ttlMs);
  expect(held?.lost.reason).toMatchObject({ code: "superseded" });
});
