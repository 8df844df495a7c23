import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { Capabilities, SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
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

describe("engine facts", () => {
  test("describe Docker on a plain machine", () => {
    expect(factsOf()).toMatchObject({ kind: "docker", architecture: "arm64", rootless: false, remappedRoot: null, seccomp: true });
    expect(factsOf().limits).toEqual({ cpus: true, memoryBytes: true, pids: true, diskBytes: false });
  });

  test("recognize Podman by its components, and rootless by either engine's report", () => {
    expect(factsOf({ Rootless: true }, { components: ["Podman Engine", "Conmon"] })).toMatchObject({ kind: "podman", rootless: true });
    expect(factsOf({ SecurityOptions: ["name=seccomp", "name=rootless"] }).rootless).toBe(true);
  });

  test("trust delegated controllers over a rootless engine's report on limits", () => {
    const none = { cpus: false, memoryBytes: false, pids: false, diskBytes: false };
    const rootless = { SecurityOptions: ["name=seccomp", "name=rootless"] };
    const v2 = { ...rootless, CgroupVersion: "2", CgroupDriver: "systemd" };
    expect(factsOf(rootless, { delegated: "cpu memory pids" }).limits).toEqual(none);
    expect(factsOf({ ...v2, CgroupDriver: "cgroupfs" }, { delegated: "cpu memory pids" }).limits).toEqual(none);
    expect(factsOf(v2, { delegated: "memory pids\n" }).limits).toEqual({ ...none, memoryBytes: true, pids: true });
    expect(capabilitiesOf(factsOf(v2), { defaultImage: null }).reasons.memoryBytes).toContain("delegated");
  });

  test("take remapped ids from the name of the data folder", () => {
    const facts = factsOf({ SecurityOptions: ["name=seccomp", "name=userns"], DockerRootDir: "/var/lib/docker/100000.200000" });
    expect(facts.remappedRoot).toEqual({ uid: 100_000, gid: 200_000 });
    const capabilities = capabilitiesOf(facts, { defaultImage: null });
    expect(capabilities.workspaceAccess).toEqual(["overlay", "ro"]);
    expect(capabilities.reasons.rw).toBeDefined();
  });

  test("include no memory limit without a swap limit", () => {
    expect(factsOf({ SwapLimit: false }).limits.memoryBytes).toBe(false);
  });

  test("include a disk limit on btrfs, or on xfs with quotas on the data's mount", () => {
    const xfs = { DriverStatus: [["Backing Filesystem", "xfs"]] };
    const quota = `${root}\n30 25 8:1 / /var/lib/docker rw shared:2 - xfs /dev/sdb rw,prjquota`;
    const elsewhere = `${root}\n30 25 8:1 / /var/lib/dock rw shared:2 - xfs /dev/sdb rw,prjquota`;
    expect(factsOf(xfs, { mountinfo: quota }).limits.diskBytes).toBe(true);
    expect(factsOf(xfs, { mountinfo: elsewhere }).limits.diskBytes).toBe(false);
    expect(factsOf({}, { mountinfo: quota }).limits.diskBytes).toBe(false);
    expect(factsOf({ Driver: "btrfs" }).limits.diskBytes).toBe(true);
  });

  test("lead to well-formed capabilities with a reason for each missing one", () => {
    const capabilities = Capabilities.parse(capabilitiesOf(factsOf({ PidsLimit: false }), { defaultImage: null }));
    expect(Object.keys(capabilities.reasons).sort()).toEqual(["diskBytes", "host", "pids", "terminals", "transparentNetwork"]);
    expect(capabilitiesOf(factsOf(), { defaultImage: "debian:12" }).templates).toContain("host");
  });
});

describe("limits", () => {
  const limitsOf = (config: SandboxConfigInput, changes: Record<string, unknown> = {}) => {
    const facts = factsOf(changes);
    return enforcedLimits({ config: SandboxConfig.parse(config), facts, reasons: capabilitiesOf(facts, { defaultImage: null }).reasons });
  };

  test("apply the defaults", () => {
    const { limits, warnings } = limitsOf({});
    expect(limits).toMatchObject({
      cpus: defaultLimits.cpus,
      memoryBytes: defaultLimits.memoryBytes,
      pids: defaultLimits.pids,
      diskBytes: null,
    });
    expect(warnings).toEqual([]);
  });

  test("turn an unenforceable default into a warning, and refuse an explicit limit", () => {
    const { limits, warnings } = limitsOf({}, { MemoryLimit: false });
    expect(limits.memoryBytes).toBeNull();
    expect(warnings).toHaveLength(1);
    expect(() => limitsOf({ limits: { memoryBytes: 2 ** 30 } }, { MemoryLimit: false })).toThrow(
      expect.objectContaining({ code: "unsupported" }),
    );
    expect(() => limitsOf({ limits: { diskBytes: 2 ** 30 } })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });

  test("refuse values below the engine's minimum instead of rounding them", () => {
    expect(() => limitsOf({ limits: { memoryBytes: 4 * 1024 * 1024 } })).toThrow(expect.objectContaining({ code: "unsupported" }));
    expect(() => limitsOf({ limits: { cpus: 0.001 } })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });
});

describe("finding an engine", () => {
  test("prefers the given socket, then DOCKER_HOST, then the usual places", () => {
    expect(socketCandidates({ socketPath: "/a.sock", host: "unix:///b.sock" })).toEqual(["/a.sock"]);
    expect(socketCandidates({ host: "unix:///b.sock", runtimeDir: "/run/user/1" })).toEqual(["/b.sock"]);
    expect(socketCandidates({ runtimeDir: "/run/user/1" })).toEqual([
      "/var/run/docker.sock",
      "/run/user/1/docker.sock",
      "/run/user/1/podman/podman.sock",
      "/run/podman/podman.sock",
    ]);
  });

  test("refuses an engine on another machine", () => {
    expect(() => socketCandidates({ host: "tcp://10.0.0.1:2375" })).toThrow(expect.objectContaining({ code: "unsupported" }));
  });

  test("translates errors and says what to do", () => {
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
