import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hostClaims } from "../../src/station/machine/host-claims.ts";
import type { Verdict } from "../../src/suites/attack/claim.ts";
import { describeAttack } from "../support/attack-results.ts";
import { ordinaryUser } from "../support/ordinary-user.ts";
import { runSuite, type SuiteLine } from "../support/run-suite.ts";

const guestPath = join(import.meta.dirname, "../../guest/build/caisson-guest");
const more = hostClaims({ guestPath, path: process.env.PATH ?? "" });
const pool = { sandboxes: 2 };

/** Runs a suite whose sandboxes all waited and got a new root, except those that no waiting one can serve. */
async function runPooled(suite: "attack" | "conformance", options: { ociRuntime?: string; isRootless?: boolean }) {
  const user = options.isRootless ? ordinaryUser() : undefined;
  try {
    const lines = await runSuite({ suite, pool, ...options, ...(user && { user }) });
    const counts = lines.find((line) => line.counts !== undefined)?.counts;
    // Those that write to a host folder, or have a disk limit, cannot have waited.
    expect(counts?.pooled).toBeGreaterThan(3 * (counts?.fresh ?? 0));
    return lines;
  } finally {
    user?.remove();
  }
}

const isUsable = ([probe]: readonly SuiteLine[]) => probe?.usable === true;

describe("conformance of sandboxes that waited", () => {
  test.each([{ ociRuntime: "crun" }, { ociRuntime: "runc" }, { isRootless: true }])("with %o", { timeout: 400_000 }, async (options) => {
    const lines = await runPooled("conformance", options);
    expect(isUsable(lines)).toBe(true);
    expect(lines.filter(({ outcome }) => outcome === "failed")).toEqual([]);
    expect(lines.filter(({ outcome }) => outcome === "passed").length).toBeGreaterThan(100);
  });
});

for (const isRootless of [false, true]) {
  describeAttack(isRootless ? "oci-pool-rootless" : "oci-pool", {
    more,
    attack: async () => (await runPooled("attack", { isRootless })).filter((line) => line.verdict !== undefined) as Verdict[],
  });
}
