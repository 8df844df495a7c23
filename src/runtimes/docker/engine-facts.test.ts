import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../contract/default-limits.ts";
import { CaissonError } from "../../contract/error.ts";
import { Capabilities, SandboxSpec, type SandboxSpecInput } from "../../contract/sandbox.ts";
import { enforcedLimits } from "./enforced-limits.ts";
import { socketCandidates } from "./engine.ts";
import { engineError } from "./engine-error.ts";
import { capabilitiesOf, EngineInfo, EngineVersion, engineFacts } from "./engine-facts.ts";

const dockerInfo = {
  Architecture: "aarch64",
  NCPU: 2,
  Driver: "overlay2",
  DriverStatus: [["Backing Filesystem", "extfs"]],
  MemoryLimit: true,
  SwapLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
  CgroupVersion: "1",
  CgroupDriver: "cgroupfs",
  DockerRootDir: "/var/lib/docker",
  DefaultRuntime: "runc",
  ServerVersion: "20.10.24",
  SecurityOptions: ["name=seccomp,profile=default"],
};
const root = "25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw";

function factsOf(changes: Record<string, unknown> = {}, options: { components?: string[]; mountinfo?: string; delegated?: string } = {}) {
  const version = EngineVersion.parse({ Components: (options.components ?? ["Engine"]).map((Name) => ({ Name })) });
  return engineFacts({
    info: EngineInfo.parse({ ...dockerInfo, ...changes }),
    version,
    mountinfo: options.mountinfo ?? root,
    delegated: options.delegated ?? "",
  });
}

describe("what an engine says of itself", () => {
  test("Docker on a plain machine", () => {
    expect(factsOf()).toMatchObject({ kind: "docker", architecture: "arm64", rootless: false, remappedRoot: null, seccomp: true });
    expect(factsOf().limits).toEqual({ cpus: true, memoryBytes: true, pids: true, diskBytes: false });
  });

  test("Podman is told by its components, rootless by either engine's way", () => {
    expect(factsOf({ Rootless: true }, { components: ["Podman Engine", "Conmon"] })).toMatchObject({ kind: "podman", rootless: true });
    expect(factsOf({ SecurityOptions: ["name=seccomp", "name=rootless"] }).rootless).toBe(true);
  });

  test("a rootless engine's word on limits is not taken: what it was given counts", () => {
    const none = { cpus: false, memoryBytes: false, pids: false, diskBytes: false };
    const rootless = { SecurityOptions: ["name=seccomp", "name=rootless"] };
    const v2 = { ...rootless, CgroupVersion: "2", CgroupDriver: "systemd" };
    expect(factsOf(rootless, { delegated: "cpu memory pids" }).limits).toEqual(none);
    expect(factsOf({ ...v2, CgroupDriver: "cgroupfs" }, { delegated: "cpu memory pids" }).limits).toEqual(none);
    expect(factsOf(v2, { delegated: "memory pids\n" }).limits).toEqual({ ...none, memoryBytes: true, pids: true });
    expect(capabilitiesOf(factsOf(v2), { defaultImage: null }).reasons.memoryBytes).toContain("delegated");
  });

  test("remapped ids are read from the data folder's name", () => {
    const facts = factsOf({ SecurityOptions: ["name=seccomp", "name=userns"], DockerRootDir: "/var/lib/docker/100000.200000" });
    expect(facts.remappedRoot).toEqual({ uid: 100_000, gid: 200_000 });
    const capabilities = capabilitiesOf(facts, { defaultImage: null });
    expect(capabilities.workspaceAccess).toEqual(["overlay", "ro"]);
    expect(capabilities.reasons.rw).toBeDefined();
  });

  test("memory without a limit on swap is no limit", () => {
    expect(factsOf({ SwapLimit: false }).limits.memoryBytes).toBe(false);
  });

  test("disk can be limited on xfs with project quotas of the mount the data lies on, on btrfs, not elsewhere", () => {
    const xfs = { DriverStatus: [["Backing Filesystem", "xfs"]] };
    const quota = `${root}\n30 25 8:1 / /var/lib/docker rw shared:2 - xfs /dev/sdb rw,prjquota`;
    const elsewhere = `${root}\n30 25 8:1 / /var/lib/dock rw shared:2 - xfs /dev/sdb rw,prjquota`;
    expect(factsOf(xfs, { mountinfo: quota }).limits.diskBytes).toBe(true);
    expect(factsOf(xfs, { mountinfo: elsewhere }).limits.diskBytes).toBe(false);
    expect(factsOf({}, { mountinfo: quota }).limits.diskBytes).toBe(false);
    expect(factsOf({ Driver: "btrfs" }).limits.diskBytes).toBe(true);
  });

  test("capabilities are well-formed, and each missing one has a reason", () => {
    const capabilities = Capabilities.parse(capabilitiesOf(factsOf({ PidsLimit: false }), { defaultImage: null }));
    expect(Object.keys(capabilities.reasons).sort()).toEqual(["diskBytes", "host", "pids", "terminals", "transparentNetwork"]);
    expect(capabilitiesOf(factsOf(), { defaultImage: "debian:12" }).templates).toContain("host");
  });
});

describe("limits", () => {
  const limitsOf = (spec: SandboxSpecInput, changes: Record<string, unknown> = {}) => {
    const facts = factsOf(changes);
    return enforcedLimits({ spec: SandboxSpec.parse(spec), facts, reasons: capabilitiesOf(facts, { defaultImage: null }).reasons });
  };

  test("defaults are in force", () => {
    const { limits, warnings } = limitsOf({});
    expect(limits).toMatchObject({
      cpus: defaultLimits.cpus,
      memoryBytes: defaultLimits.memoryBytes,
      pids: defaultLimits.pids,
      diskBytes: null,
    });
    expect(warnings).toEqual([]);
  });

  test("a default that cannot be enforced is a warning; one that was asked for is refused", () => {
    const { limits, warnings } = limitsOf({}, { MemoryLimit: false });
    expect(limits.memoryBytes).toBeNull();
    expect(warnings).toHaveLength(1);
    expect(() => limitsOf({ limits: { memoryBytes: 2 ** 30 } }, { MemoryLimit: false })).toThrow(
      expect.objectContaining({ code: "unsupported" }),
    );
    expect(() => limitsOf({ limits: { diskBytes: 2 ** 30 } })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });

  test("less than engines take is refused, not rounded", () => {
    expect(() => limitsOf({ limits: { memoryBytes: 4 * 1024 * 1024 } })).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(() => limitsOf({ limits: { cpus: 0.001 } })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });
});

describe("finding an engine", () => {
  test("the socket named wins, then DOCKER_HOST, then the usual places", () => {
    expect(socketCandidates({ socketPath: "/a.sock", host: "unix:///b.sock" })).toEqual(["/a.sock"]);
    expect(socketCandidates({ host: "unix:///b.sock", runtimeDir: "/run/user/1" })).toEqual(["/b.sock"]);
    expect(socketCandidates({ runtimeDir: "/run/user/1" })).toEqual([
      "/var/run/docker.sock",
      "/run/user/1/docker.sock",
      "/run/user/1/podman/podman.sock",
      "/run/podman/podman.sock",
    ]);
  });

  test("an engine on another machine is refused", () => {
    expect(() => socketCandidates({ host: "tcp://10.0.0.1:2375" })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });

  test("errors say what to do", () => {
    const at = { what: "starting", socketPath: "/var/run/docker.sock" };
    const system = (code: string) => Object.assign(new Error("connect"), { code });
    expect(engineError(system("ECONNREFUSED"), at)).toMatchObject({
      code: "unavailable",
      hint: expect.stringContaining("systemctl start docker"),
    });
    expect(engineError(system("EACCES"), at)).toMatchObject({ code: "unavailable", hint: expect.stringContaining("usermod -aG docker") });
    const refused = Object.assign(new Error("(HTTP code 404) no such"), { statusCode: 404, json: { message: "no such\nthing" } });
    expect(engineError(refused, at)).toMatchObject({ code: "not_found", message: "starting: no such thing" });
    const known = new CaissonError("cancelled", "x");
    expect(engineError(known, at)).toBe(known);
  });
});
