import { expect, test } from "vitest";
import { codeOf, event, type UseLog } from "./use-log.ts";

/** Tests who may append. */
export function testLeases(using: UseLog): void {
  test("gives a lease to one holder until release, expiry or the holder's death", () =>
    using(async (_, open) => {
      let now = 1_000_000;
      const log = await open({ leaseClock: { boot: "this", nowMs: () => now } });
      const first = await log.acquire("a", { holder: "one", ttlMs: 1000 });
      expect(first?.epoch).toBe(1);
      expect(await log.acquire("a", { holder: "two", ttlMs: 1000 })).toBeNull();
      expect((await log.holder("a"))?.holder).toBe("one");
      now += 1001;
      expect(await log.holder("a")).toBeNull();
      expect((await log.lastLease("a"))?.holder).toBe("one");
      const second = await log.acquire("a", { holder: "two", ttlMs: 1000 });
      expect(second?.epoch).toBe(2);
      const third = await log.acquire("a", { holder: "three", ttlMs: 1000, holderGone: (owner) => owner === "two" });
      expect(third?.epoch).toBe(3);
      if (third) await log.release(third);
      expect(await log.holder("a")).toBeNull();
      expect(await log.lastLease("a")).toBeNull();
    }));

  test("keeps a lease when the wall clock is set", () =>
    using(async (_, open) => {
      let wall = Date.parse("2026-01-01T00:00:00Z");
      let monotonic = 5_000;
      const log = await open({ nowMs: () => wall, leaseClock: { boot: "this", nowMs: () => monotonic } });
      const lease = await log.acquire("a", { holder: "one", ttlMs: 1000 });
      wall += 3_600_000;
      expect(await log.acquire("a", { holder: "two", ttlMs: 1000 })).toBeNull();
      if (lease) await log.renew(lease, { ttlMs: 1000 });
      wall -= 7_200_000;
      monotonic += 1001;
      expect((await log.acquire("a", { holder: "two", ttlMs: 1000 }))?.epoch).toBe(2);
    }));

  test("rejects append and renew from a former holder", () =>
    using(async (_, open) => {
      let now = 1_000_000;
      const log = await open({ nowMs: () => now, leaseClock: { boot: "this", nowMs: () => now } });
      const old = await log.acquire("a", { holder: "one", ttlMs: 10 });
      if (!old) throw new Error("no lease");
      await log.append("a", [event(1)], { lease: old });
      now += 11;
      const fresh = await log.acquire("a", { holder: "two", ttlMs: 10_000 });
      if (!fresh) throw new Error("no lease");
      expect(await codeOf(log.append("a", [event(2)], { lease: old }))).toBe("superseded");
      expect(await codeOf(log.renew(old, { ttlMs: 10 }))).toBe("superseded");
      await log.release(old);
      await log.append("a", [event(2)], { lease: fresh });
      expect((await log.renew(fresh, { ttlMs: 50_000 })).expiresAtMs).toBe(now + 50_000);
      expect(await log.lastSeq("a")).toBe(2);
    }));
}
