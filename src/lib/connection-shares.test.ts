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
  test("may use an eighth per address; a new one then replaces the oldest after 1 s", () => {
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

  test("are replaced within their first second at twice the share", () => {
    const { addMany, ended } = sharesAt({ max: 80 });
    addMany(23);
    expect(ended).toEqual(["0", "1", "2"]);
  });

  test("are replaced oldest first, across addresses, when the listener is full", () => {
    const { add, ended, shares } = sharesAt({ max: 16 });
    for (let each = 0; each < 20; each++) add(`${each}`, `10.0.1.${each}`);
    expect(ended).toEqual(["0", "1", "2", "3"]);
    expect(shares.count()).toBe(16);
  });
});

describe("connections with a token", () => {
  test("may use a quarter per address and never yield to one without a token", () => {
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

  test("yield to others of their address while idle", () => {
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

  test("have no bound per address behind a proxy", () => {
    const { addMany, add } = sharesAt({ max: 16, isShared: (address) => address === "10.0.0.1" });
    expect(addMany(16).every((share) => share.admit())).toBe(true);
    expect(add("elsewhere", "10.0.0.2").admit()).toBe(true);
  });
});

test("counts addresses of one IPv6 network together", () => {
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
