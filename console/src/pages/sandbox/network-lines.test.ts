import { expect, test } from "vitest";
import type { NetworkEvent } from "../../../../src/contract/network/network-event.ts";
import { canAllow, lineOf } from "./network-lines.ts";

const at = "2026-01-01T00:00:00.000Z";
const where = { sandbox: "sb_aaaaaaaaaaaa", host: "evil.example", port: 443, via: "connect" } as const;
const denied = (overrides: object): NetworkEvent =>
  ({
    type: "network.denied",
    version: 1,
    at,
    data: { ...where, reason: "host_not_allowed", method: null, path: null, text: "no", count: 1, ...overrides },
  }) as NetworkEvent;

test("offers to allow a host that no rule allowed", () => {
  expect(lineOf(denied({ count: 3 }), 1)).toMatchObject({
    word: "denied",
    what: "evil.example:443",
    about: "host not allowed, 3 times",
    target: { host: "evil.example", port: 443 },
  });
  expect(lineOf(denied({ method: "GET", path: "/x" }), 1)?.what).toBe("GET evil.example:443/x");
});

test("offers nothing if no rule would help", () => {
  for (const reason of ["private_address", "name_mismatch", "too_many", "not_verified"])
    expect(lineOf(denied({ reason }), 1)?.target).toBe(null);
});

test("shows connections with the bytes of both directions", () => {
  const closed = { ...where, address: "192.0.2.1", rule: null, inspected: false };
  const counts = { requests: 2, sentBytes: 2048, receivedBytes: 10, durationMs: 20 };
  expect(lineOf({ type: "network.closed", version: 1, at, data: { ...closed, ...counts } }, 1)?.about).toBe(
    "2 requests, ↑ 2 KiB ↓ 10 B, 20 ms",
  );
});

test("does not offer a host that is already allowed", () => {
  const rules = [{ host: "evil.example", ports: [443], private: false }];
  expect(canAllow(where, { mode: "allow", rules, registries: [], transparent: false })).toBe(false);
  expect(canAllow({ ...where, port: 80 }, { mode: "allow", rules, registries: [], transparent: false })).toBe(true);
  expect(canAllow(where, { mode: "none" })).toBe(true);
});
