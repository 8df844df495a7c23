import { describe, expect, test } from "vitest";
import { once } from "./once.ts";

describe("once", () => {
  test("opens on the first call only", async () => {
    let opened = 0;
    const get = once(async () => (opened += 1));
    expect(await get.opened()).toBeUndefined();
    expect(opened).toBe(0);
    expect(await Promise.all([get(), get()])).toEqual([1, 1]);
    expect(await get.opened()).toBe(1);
  });

  test("tries again after a failure", async () => {
    const outcomes = [Promise.reject(new Error("busy")), Promise.resolve("open")];
    const get = once(() => outcomes.shift() as Promise<string>);
    const first = get();
    expect(await get.opened()).toBeUndefined();
    await expect(first).rejects.toThrow("busy");
    expect(await get()).toBe("open");
  });
});
