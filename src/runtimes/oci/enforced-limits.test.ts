import { describe, expect, it } from "vitest";
import { SandboxSpec, type SandboxSpecInput } from "../../contract/sandbox.ts";
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
const enforced = (spec: SandboxSpecInput, ability: LimitAbility, layer: LayerState | null = null) =>
  enforcedLimits(SandboxSpec.parse(spec), ability, layer);
const refused = (limit: string) => expect.objectContaining({ code: "unsupported", details: { limit } });

describe("enforcedLimits", () => {
  it("defaults are in force where they can be", () => {
    expect(enforced({}, all)).toMatchObject({
      limits: { cpus: 2, memoryBytes: 4_294_967_296, pids: 1000, diskBytes: null },
      warnings: [],
    });
  });
  it("a default that cannot be is null, with a warning; processes are limited by the guest", () => {
    const { limits, warnings } = enforced({}, none);
    expect(limits).toMatchObject({ cpus: null, memoryBytes: null, pids: 1000 });
    expect(warnings).toEqual(["CPU time and memory are not limited: nothing is delegated; do this."]);
  });
  it.each([{ cpus: 1 }, { memoryBytes: 8_388_608 }])("asked for and impossible is refused: %j", (limits) => {
    expect(() => enforced({ limits }, none)).toThrow(refused(Object.keys(limits)[0] ?? ""));
  });
  it("processes of root inside are limited by a control group, or not at all", () => {
    expect(enforced({ limits: { pids: 60 }, allowRoot: true }, all).limits.pids).toBe(60);
    expect(() => enforced({ limits: { pids: 60 }, allowRoot: true }, none)).toThrow(refused("pids"));
    const { limits, warnings } = enforced({ allowRoot: true }, none);
    expect(limits.pids).toBe(null);
    expect(warnings).toEqual(["CPU time, memory and the number of root's processes are not limited: nothing is delegated; do this."]);
  });
  it("a disk needs mkfs as root", () => {
    const without = limitAbility({ cgroups: { parents: [], reason: null, briefReason: null }, rootless: false, mkfs: null });
    expect(() => enforced({ limits: { diskBytes: 8 * MIB } }, without)).toThrow(refused("diskBytes"));
    expect(enforced({ limits: { diskBytes: 8 * MIB } }, all).limits.diskBytes).toBe(8 * MIB);
  });
  it("a disk limit and a folder given read-write exclude each other", () => {
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
  const asked = { limits: { diskBytes: 32 * MIB } };
  const fresh = { diskBytes: null, inFolder: false };
  it("is made when the first sandbox asks for one, by root alone", () => {
    expect(enforced(asked, all, fresh).limits.diskBytes).toBe(32 * MIB);
    expect(enforced({}, all, fresh).limits.diskBytes).toBe(null);
    expect(() => enforced(asked, none, fresh)).toThrow(refused("diskBytes"));
    expect(enforced({}, none, fresh).limits.diskBytes).toBe(null);
  });
  it("is in force for whoever comes later, also without asking, and keeps its size", () => {
    const made = { diskBytes: 32 * MIB, inFolder: false };
    expect(enforced({}, all, made).limits.diskBytes).toBe(32 * MIB);
    expect(enforced(asked, all, made).warnings).toEqual([]);
    const more = enforced({ limits: { diskBytes: 64 * MIB } }, all, made);
    expect(more.limits.diskBytes).toBe(32 * MIB);
    expect(more.warnings).toHaveLength(1);
    expect(() => enforced({ limits: { diskBytes: 16 * MIB } }, all, made)).toThrow(refused("diskBytes"));
    expect(() => enforced({}, none, made)).toThrow(refused("diskBytes"));
  });
  it("cannot be had for files that lie on the host's disk already", () => {
    expect(() => enforced(asked, all, { diskBytes: null, inFolder: true })).toThrow(refused("diskBytes"));
  });
});
