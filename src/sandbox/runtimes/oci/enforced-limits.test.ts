import { describe, expect, it } from "vitest";
import { enforcedLimits, limitAbility } from "./enforced-limits.ts";

const all = limitAbility({
  cgroups: { parents: [{ version: 1, controllers: ["memory", "cpu", "pids"], dir: "/x", own: null }], reason: null },
  rootless: false,
  mkfs: "/sbin/mkfs.ext4",
});
const none = limitAbility({ cgroups: { parents: [], reason: "nothing is delegated; do this" }, rootless: true, mkfs: null });

describe("enforcedLimits", () => {
  it("defaults are in force where they can be", () => {
    expect(enforcedLimits({}, all)).toMatchObject({
      limits: { cpus: 2, memoryBytes: 4_294_967_296, pids: 1000, diskBytes: null },
      warnings: [],
    });
  });
  it("a default that cannot be is null, with a warning; processes are limited by the guest", () => {
    const { limits, warnings } = enforcedLimits({}, none);
    expect(limits).toMatchObject({ cpus: null, memoryBytes: null, pids: 1000 });
    expect(warnings).toHaveLength(2);
    expect(warnings.join()).toContain("nothing is delegated; do this");
  });
  it.each([{ cpus: 1 }, { memoryBytes: 8_388_608 }])("asked for and impossible is refused: %j", (asked) => {
    expect(() => enforcedLimits(asked, none)).toThrow(expect.objectContaining({ code: "unsupported" }));
  });
  it("a disk needs mkfs as root", () => {
    const without = limitAbility({ cgroups: { parents: [], reason: null }, rootless: false, mkfs: null });
    expect(() => enforcedLimits({ diskBytes: 8_388_608 }, without)).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(enforcedLimits({ diskBytes: 8_388_608 }, all).limits.diskBytes).toBe(8_388_608);
  });
});
