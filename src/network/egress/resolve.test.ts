import { describe, expect, test } from "vitest";
import { NetworkPolicy } from "../../contract/network/network.ts";
import { decideHost, type Grant } from "./decide-egress.ts";
import { egressLimits } from "./egress-limits.ts";
import { createResolver } from "./resolve.ts";

function grantFor(host: string, rule: object = {}, mode = "allow"): Grant {
  const policy = NetworkPolicy.parse({ mode, rules: [{ host: "*", ...rule }] });
  const decision = decideHost(policy, { host, port: 443 });
  if (!decision.allowed) throw new Error("denied");
  return decision.grant;
}
const resolver = (resolve: (name: string) => Promise<string[]>, limits: object = {}) =>
  createResolver({ resolve, ownAddresses: () => ["203.0.113.9", "fe80::1%eth0", "2001:db8::9"], limits: { ...egressLimits, ...limits } });

describe("address selection", () => {
  test.each([
    [["203.0.113.1"], {}, ["203.0.113.1"]],
    [["2001:DB8:0::1", "203.0.113.1"], {}, ["2001:db8::1", "203.0.113.1"]],
    [["::ffff:203.0.113.1", "203.0.113.1"], {}, ["203.0.113.1"]],
    [["10.0.0.1", "203.0.113.1"], {}, ["203.0.113.1"]],
    [["10.0.0.1"], {}, "private_address"],
    [["203.0.113.9"], {}, "private_address"],
    [["2001:db8::9"], {}, "private_address"],
    [["10.0.0.1", "203.0.113.1", "10.0.0.2"], { private: true }, ["10.0.0.1", "10.0.0.2"]],
    [["203.0.113.9"], { private: true }, ["203.0.113.9"]],
    [["169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "198.18.0.1"], { private: true }, "private_address"],
    [["nonsense"], { private: true }, "unknown_host"],
    [[], {}, "unknown_host"],
    [
      ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5"],
      {},
      ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"],
    ],
  ])("picks from %j with the rule %j", async (found, rule, expected) => {
    const pinned = await resolver(async () => found).pin(grantFor("a.test", rule));
    expect("refused" in pinned ? pinned.refused.reason : pinned.addresses).toEqual(expected);
  });

  test("tells an unknown name from a failed lookup", async () => {
    for (const [code, reason] of [
      ["ENOTFOUND", "unknown_host"],
      ["EAI_AGAIN", "lookup_failed"],
    ]) {
      const failing = resolver(() => Promise.reject(Object.assign(new Error("no"), { code })));
      expect(await failing.pin(grantFor("a.test"))).toEqual({ refused: { reason } });
    }
  });

  test("does not look up an address", async () => {
    let lookups = 0;
    const counting = resolver(async () => [`${lookups++}`]);
    expect(await counting.pin(grantFor("203.0.113.1"))).toMatchObject({ addresses: ["203.0.113.1"], reach: "public" });
    expect(lookups).toBe(0);
  });

  test("reaches private addresses under an open policy only by its rules", async () => {
    expect(await resolver(async () => ["10.0.0.1"]).pin(grantFor("a.test", {}, "open"))).toMatchObject({
      refused: { reason: "private_address" },
    });
    expect(await resolver(async () => ["10.0.0.1"]).pin(grantFor("a.test", { private: true }, "open"))).toMatchObject({
      reach: "private",
      grant: { open: false },
    });
  });

  test("gives up on stuck lookups, and bounds the pending ones", async () => {
    let lookups = 0;
    const stuck = resolver(() => new Promise(() => void lookups++), { resolveMs: 20, resolvesMax: 2 });
    const refusals = await Promise.all(["a.test", "a.test", "b.test", "c.test"].map((name) => stuck.pin(grantFor(name))));
    expect(refusals.map((each) => "refused" in each && each.refused.reason)).toEqual([
      "lookup_failed",
      "lookup_failed",
      "lookup_failed",
      "too_many",
    ]);
    expect(lookups).toBe(2);
  });

  test("looks up the name again for each connection", async () => {
    const answers = [["203.0.113.1"], ["10.0.0.1"]];
    const rebinding = resolver(async () => answers.shift() ?? []);
    expect(await rebinding.pin(grantFor("a.test"))).toMatchObject({ addresses: ["203.0.113.1"] });
    expect(await rebinding.pin(grantFor("a.test"))).toMatchObject({ refused: { reason: "private_address" } });
  });
});
