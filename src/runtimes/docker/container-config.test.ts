import { describe, expect, test } from "vitest";
import { type Limits, SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { type ContainerRequest, containerConfig, containerName, labels } from "./container-config.ts";
import type { EngineFacts } from "./engine-facts.ts";

const facts: EngineFacts = {
  kind: "docker",
  version: "1",
  architecture: "x64",
  cpus: 4,
  cgroupVersion: "2",
  cgroupDriver: "systemd",
  rootless: false,
  remappedRoot: null,
  seccomp: true,
  limits: { cpus: true, memoryBytes: true, pids: true, diskBytes: true },
  storage: "overlay2",
  ociRuntime: "runc",
};
const limits: Limits = { cpus: 2, memoryBytes: 2 ** 30, pids: 100, diskBytes: null, wallClockMs: 1000, outputBytes: null };

function configOf(sandboxConfig: SandboxConfigInput = {}, changes: Partial<ContainerRequest> = {}) {
  const request: ContainerRequest = {
    id: "sb_aaaaaaaaaaaa",
    config: SandboxConfig.parse(sandboxConfig),
    limits,
    facts,
    image: "sha256:1",
    workUid: 20_001,
    ownUid: true,
    guestPath: "/opt/guest",
    socketFolder: "/state/sandboxes/sb_aaaaaaaaaaaa/socket",
    insideFolder: "/state/sandboxes/sb_aaaaaaaaaaaa/inside",
    stateLabel: "abc",
    seccomp: "{}",
    binds: [],
    socketGroup: null,
    cgroupParent: null,
    ...changes,
  };
  const config = containerConfig(request);
  return { config, host: config.HostConfig ?? {} };
}

describe("the container configuration", () => {
  test("shares nothing with the host: no network, separate namespaces, no engine logs", () => {
    const { config, host } = configOf();
    expect(host).toMatchObject({
      NetworkMode: "none",
      IpcMode: "private",
      CgroupnsMode: "private",
      PidMode: "",
      UTSMode: "",
      Privileged: false,
    });
    expect(host).toMatchObject({ RestartPolicy: { Name: "no" }, LogConfig: { Type: "none" }, Init: false, AutoRemove: false });
    expect(host).not.toHaveProperty("Devices");
    expect(config).toMatchObject({ NetworkDisabled: true, Healthcheck: { Test: ["NONE"] }, User: "0:0", Env: [], OpenStdin: false });
  });

  test("drops all capabilities but the guest's five, and blocks privilege gain", () => {
    const { host } = configOf();
    expect(host.CapDrop).toEqual(["ALL"]);
    expect(host.CapAdd).toEqual(["SETUID", "SETGID", "SETPCAP", "KILL", "CHOWN"]);
    expect(host.SecurityOpt).toEqual(["no-new-privileges:true", "seccomp={}"]);
  });

  test("adds only what package managers need if root is allowed", () => {
    const { config, host } = configOf({ allowRoot: true });
    expect(host.CapAdd).toContain("DAC_OVERRIDE");
    for (const forbidden of ["SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "MKNOD", "SYS_MODULE", "DAC_READ_SEARCH", "ALL"]) {
      expect(host.CapAdd).not.toContain(forbidden);
    }
    expect(config.Cmd).toContain("--allow-root");
    expect(configOf().config.Cmd).not.toContain("--allow-root");
  });

  test("limits memory without swap, processors, and processes with room for the guest", () => {
    const { config, host } = configOf();
    expect(host).toMatchObject({ Memory: 2 ** 30, MemorySwap: 2 ** 30, NanoCpus: 2e9, PidsLimit: 164 });
    expect(host).not.toHaveProperty("StorageOpt");
    expect(config.Cmd?.join(" ")).toContain("--nproc 100");
    expect(configOf({}, { limits: { ...limits, cpus: 64 } }).host.NanoCpus).toBe(4e9);
    expect(configOf({}, { limits: { ...limits, diskBytes: 1024 } }).host.StorageOpt).toEqual({ size: "1024" });
  });

  test("counts the guest's processes toward the limit if root is allowed", () => {
    expect(configOf({ allowRoot: true }).host.PidsLimit).toBe(100);
  });

  test("omits limits that are not in force", () => {
    const { config, host } = configOf({}, { limits: { ...limits, cpus: null, memoryBytes: null, pids: null } });
    for (const name of ["Memory", "MemorySwap", "NanoCpus", "PidsLimit"]) expect(host).not.toHaveProperty(name);
    expect(config.Cmd).not.toContain("--nproc");
  });

  test("sets no RLIMIT_NPROC if the uid has other processes on this machine", () => {
    expect(configOf({}, { ownUid: false }).config.Cmd).not.toContain("--nproc");
  });

  test("binds only the guest, its socket and /run/caisson, and only the socket writable", () => {
    const { config, host } = configOf();
    expect(config.Entrypoint).toEqual(["/.caisson/guest"]);
    expect(host.Mounts).toMatchObject([
      { Source: "/opt/guest", Target: "/.caisson/guest", ReadOnly: true },
      { Source: "/state/sandboxes/sb_aaaaaaaaaaaa/socket", Target: "/.caisson/private/socket", ReadOnly: false },
      { Source: "/state/sandboxes/sb_aaaaaaaaaaaa/inside", Target: "/run/caisson", ReadOnly: true },
    ]);
    expect(host).not.toHaveProperty("Binds");
  });

  test("binds a workspace read-only on request, without nested mounts", () => {
    const { host } = configOf({}, { binds: [{ source: "/home/a/project", target: "/workspace", readOnly: true, covered: [] }] });
    expect(host.Mounts?.[3]).toMatchObject({
      Source: "/home/a/project",
      Target: "/workspace",
      ReadOnly: true,
      BindOptions: { NonRecursive: true },
    });
  });

  test("empties covered paths of a bound workspace and pins the folders above them", () => {
    const { host } = configOf(
      {},
      { binds: [{ source: "/home/a", target: "/workspace", readOnly: false, covered: [".local/state/caisson"] }] },
    );
    expect(host.Mounts?.slice(4)).toMatchObject([
      { Type: "bind", Source: "/home/a/.local", Target: "/workspace/.local", ReadOnly: false },
      { Type: "bind", Source: "/home/a/.local/state", Target: "/workspace/.local/state", ReadOnly: false },
      { Type: "tmpfs", Target: "/workspace/.local/state/caisson", ReadOnly: true },
    ]);
  });

  test("sizes /tmp, and adds the config's paths to those always hidden or read-only", () => {
    const { host } = configOf({ tmpBytes: 1024 * 1024, shmBytes: 2 * 1024 * 1024, deniedPaths: ["/etc/secret"], readOnlyPaths: ["/opt"] });
    expect(host.Tmpfs?.["/tmp"]).toBe("rw,exec,nosuid,nodev,mode=1777,size=1048576,nr_inodes=256");
    expect(host.Tmpfs?.["/dev/shm"]).toContain("noexec,nosuid,nodev,mode=1777,size=2097152,nr_inodes=512");
    expect(host.MaskedPaths).toEqual(expect.arrayContaining(["/proc/kcore", "/proc/keys", "/sys/firmware", "/etc/secret"]));
    expect(host.ReadonlyPaths).toEqual(expect.arrayContaining(["/proc/sys", "/opt"]));
  });

  test("hides the same paths in Podman with a separate option", () => {
    const { host } = configOf({}, { facts: { ...facts, kind: "podman" } });
    expect(JSON.stringify(host.Tmpfs)).not.toContain("nr_inodes");
    expect(host.SecurityOpt?.[2]).toMatch(/^mask=.*\/proc\/kcore:/);
    expect(host).not.toHaveProperty("MaskedPaths");
  });

  test("sets labels that the user's cannot override", () => {
    const { config } = configOf({ labels: { team: "a", [labels.sandbox]: "sb_bbbbbbbbbbbb", "caisson.state": "other" } });
    expect(config.Labels).toEqual({ team: "a", [labels.sandbox]: "sb_aaaaaaaaaaaa", [labels.state]: "abc" });
    expect(config.name).toBe(containerName("sb_aaaaaaaaaaaa"));
  });

  test("limits open files, and neither writes nor pipes core dumps", () => {
    expect(configOf().host.Ulimits).toEqual([
      { Name: "nofile", Soft: 16_384, Hard: 16_384 },
      { Name: "core", Soft: 1, Hard: 1 },
    ]);
    expect(configOf({}, { facts: { ...facts, kind: "podman" } }).host.Ulimits).toContainEqual({
      Name: "nproc",
      Soft: 32_768,
      Hard: 32_768,
    });
  });
});
