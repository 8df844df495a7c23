import { describe, expect, it } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { enforcedLimits, type LimitAbility, limitAbility } from "./enforced-limits.ts";
import type { LayerState } from "./layers/disk.ts";

const MIB = 1024 * 1024;
const parents = [{ version: 1 as const, controllers: ["memory", "cpu", "pids"], dir: "/x", own: null, makes: "caisson" as const }];
const all = limitAbility({ cgroups: { parents, reason: null, briefReason: null }, rootless: false, mkfs: "/sbin/mkfs.ext4" });
const none = limitAbility({
  cgroups: { parents: [], reason: "nothing is delegated, so all is free; do this", briefReason: "nothing is delegated; do this" },
  rootless: true,
  mkfs: null,
});
const enforced = (config: SandboxConfigInput, ability: LimitAbility, layer: LayerState | null = null) =>
  enforcedLimits(SandboxConfig.parse(config), ability, layer);
const refused = (limit: string) => expect.objectContaining({ code: "unsupported", details: { limit } });

describe("enforcedLimits", () => {
  it("applies the defaults", () => {
    expect(enforced({}, all)).toMatchObject({
      limits: { cpus: 2, memoryBytes: 4_294_967_296, pids: 1000, diskBytes: null },
      warnings: [],
    });
  });
  it("drops unenforceable defaults with a warning, but lets the guest limit pids", () => {
    const { limits, warnings } = enforced({}, none);
    expect(limits).toMatchObject({ cpus: null, memoryBytes: null, pids: 1000 });
    expect(warnings).toEqual(["CPU time and memory are not limited: nothing is delegated; do this."]);
  });
  it.each([{ cpus: 1 }, { memoryBytes: 8_388_608 }])("refuses an explicit limit that cannot be enforced: %j", (limits) => {
    expect(() => enforced({ limits }, none)).toThrow(refused(Object.keys(limits)[0] ?? ""));
  });
  it("limits root's processes inside with a control group or not at all", () => {
    expect(enforced({ limits: { pids: 60 }, allowRoot: true }, all).limits.pids).toBe(60);
    expect(() => enforced({ limits: { pids: 60 }, allowRoot: true }, none)).toThrow(refused("pids"));
    const { limits, warnings } = enforced({ allowRoot: true }, none);
    expect(limits.pids).toBe(null);
    expect(warnings).toEqual(["CPU time, memory and the number of root's processes are not limited: nothing is delegated; do this."]);
  });
  it("needs mkfs for a disk as root", () => {
    const without = limitAbility({ cgroups: { parents: [], reason: null, briefReason: null }, rootless: false, mkfs: null });
    expect(() => enforced({ limits: { diskBytes: 8 * MIB } }, without)).toThrow(refused("diskBytes"));
    expect(enforced({ limits: { diskBytes: 8 * MIB } }, all).limits.diskBytes).toBe(8 * MIB);
  });
  it("refuses a disk limit together with a read-write folder", () => {
    const workspace = (access: "rw" | "ro" | "overlay") => ({ kind: "folder" as const, path: "/theirs", access });
    for (const ability of [all, none]) {
      expect(() => enforced({ limits: { diskBytes: 8 * MIB }, workspace: workspace("rw") }, ability)).toThrow(refused("diskBytes"));
      for (const access of ["ro", "overlay"] as const)
        expect(enforced({ limits: { diskBytes: 8 * MIB }, workspace: workspace(access) }, ability).limits.diskBytes).toBe(8 * MIB);
      const mounts = [{ path: "/theirs", target: "/mnt/x", access: "rw" as const }];
      expect(() => enforced({ limits: { diskBytes: 8 * MIB }, mounts }, ability)).toThrow(refused("diskBytes"));
    }
  });
});

describe("the disk of a workspace that outlives its sandbox", () => {
  const config = { limits: { diskBytes: 32 * MIB } };
  const fresh = { diskBytes: null, inFolder: false };
  it("is created only by root, when the first sandbox requests one", () => {
    expect(enforced(config, all, fresh).limits.diskBytes).toBe(32 * MIB);
    expect(enforced({}, all, fresh).limits.diskBytes).toBe(null);
    expect(() => enforced(config, none, fresh)).toThrow(refused("diskBytes"));
    expect(enforced({}, none, fresh).limits.diskBytes).toBe(null);
  });
  it("applies to later sandboxes, even without a request, and keeps its size", () => {
    const layer = { diskBytes: 32 * MIB, inFolder: false };
    expect(enforced({}, all, layer).limits.diskBytes).toBe(32 * MIB);
    expect(enforced(config, all, layer).warnings).toEqual([]);
    const more = enforced({ limits: { diskBytes: 64 * MIB } }, all, layer);
    expect(more.limits.diskBytes).toBe(32 * MIB);
    expect(more.warnings).toHaveLength(1);
    expect(() => enforced({ limits: { diskBytes: 16 * MIB } }, all, layer)).toThrow(refused("diskBytes"));
    expect(() => enforced({}, none, layer)).toThrow(refused("diskBytes"));
  });
  it("is refused for files that are already on the host's disk", () => {
    expect(() => enforced(config, all, { diskBytes: null, inFolder: true })).toThrow(refused("diskBytes"));
  });
});
