import { describe, expect, test } from "vitest";
import { createConnectionShares } from "./connection-shares.ts";

function sharesAt(options: { max: number; isShared?: (address: string) => boolean }) {
  let now = 0;
  const ended: string[] = [];
  const shares = createConnectionShares({ ...options, now: () => now });
  const add = (name: string, address = "10.0.0.1") => shares.add({ address, destroy: () => ended.push(name) });
  const addMany = (count: number, address?: string) => Array.from({ length: count }, (_, at) => add(`${at}`, address));
  return { shares, add, addMany, ended, pass: (ms: number) => (now += ms) };
}

describe("connections without a token", () => {
  test("have an eighth for an address; then the oldest that had its second ends for a new one", () => {
    const { addMany, add, ended, pass, shares } = sharesAt({ max: 80 });
    addMany(10);
    add("burst");
    expect(ended).toEqual([]);
    pass(1_000);
    add("new");
    expect(ended).toEqual(["0"]);
    add("elsewhere", "10.0.0.2");
    expect(ended).toEqual(["0"]);
    expect(shares.count()).toBe(12);
  });

  test("end before their second past twice their share", () => {
    const { addMany, ended } = sharesAt({ max: 80 });
    addMany(23);
    expect(ended).toEqual(["0", "1", "2"]);
  });

  test("of many addresses end, the oldest first, where the listener is full", () => {
    const { add, ended, shares } = sharesAt({ max: 16 });
    for (let each = 0; each < 20; each++) add(`${each}`, `10.0.1.${each}`);
    expect(ended).toEqual(["0", "1", "2", "3"]);
    expect(shares.count()).toBe(16);
  });
});

describe("connections with a token", () => {
  test("have a quarter for an address, and are never ended for one without", () => {
    const { add, ended, shares } = sharesAt({ max: 16 });
    const admitted = Array.from({ length: 4 }, (_, at) => add(`in ${at}`));
    for (const each of admitted) {
      each.begin();
      expect(each.admit()).toBe(true);
    }
    const fifth = add("fifth");
    expect(fifth.admit()).toBe(false);
    expect(add("elsewhere", "10.0.0.2").admit()).toBe(true);
    for (let each = 0; each < 40; each++) add(`${each}`, `10.0.1.${each}`);
    expect(ended.filter((name) => name.startsWith("in") || name === "elsewhere")).toEqual([]);
    admitted[0]?.remove();
    expect(add("next").admit()).toBe(true);
    expect(shares.count()).toBe(16);
  });

  test("that are idle make room for others of their address", () => {
    const { add, ended } = sharesAt({ max: 8 });
    for (const name of ["one", "two"]) {
      const share = add(name);
      share.begin();
      share.admit();
      share.end();
    }
    expect(add("three").admit()).toBe(true);
    expect(ended).toEqual(["one"]);
  });

  test("of a proxy are bounded with all others only", () => {
    const { addMany, add } = sharesAt({ max: 16, isShared: (address) => address === "10.0.0.1" });
    expect(addMany(16).every((share) => share.admit())).toBe(true);
    expect(add("elsewhere", "10.0.0.2").admit()).toBe(true);
  });
});

test("addresses of one IPv6 network count together, those of another do not", () => {
  const { add } = sharesAt({ max: 4 });
  const hold = (address: string) => {
    const share = add(address, address);
    share.begin();
    return share.admit();
  };
  expect(hold("2001:db8::1")).toBe(true);
  expect(hold("2001:db8:0:0:ffff::2")).toBe(false);
  expect(hold("2001:db8:0:1::1")).toBe(true);
  expect(hold("::ffff:10.0.0.9")).toBe(true);
  expect(hold("10.0.0.9")).toBe(false);
});
