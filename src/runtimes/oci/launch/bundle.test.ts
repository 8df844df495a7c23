import { describe, expect, it } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../../contract/sandbox/sandbox.ts";
import { type BundleOptions, bundleConfig, parseHardLimits } from "./bundle.ts";

const bundleOf = (config: SandboxConfigInput = {}, options: Partial<BundleOptions> = {}) =>
  bundleConfig({
    config: SandboxConfig.parse(config),
    hidden: [],
    workDescriptors: 0,
    memoryKillsDescriptor: false,
    ownDisk: false,
    cgroupView: false,
    processesMax: null,
    reaper: "none",
    hardLimits: {},
    ...options,
  });

describe("bundleConfig", () => {
  it("hardens the process: namespaces, no new privileges, few capabilities", () => {
    const { process, linux } = bundleOf();
    expect(linux.namespaces.map(({ type }) => type).sort()).toEqual(["cgroup", "ipc", "mount", "pid", "uts"]);
    expect(process.noNewPrivileges).toBe(true);
    expect(process.capabilities.bounding).toEqual(["CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID"]);
    expect(process.capabilities.ambient).toEqual([]);
    expect(process.capabilities.inheritable).toEqual([]);
    expect(linux.readonlyPaths).toContain("/proc/sys");
    expect(linux.maskedPaths).toContain("/proc/kcore");
  });
  it("gives root only what package managers need", () => {
    const { capabilities, args } = bundleOf({ allowRoot: true }).process;
    expect(args).toContain("--allow-root");
    expect(capabilities.bounding).toContain("CAP_DAC_OVERRIDE");
    for (const never of [
      "CAP_SYS_ADMIN",
      "CAP_NET_ADMIN",
      "CAP_NET_RAW",
      "CAP_SYS_PTRACE",
      "CAP_MKNOD",
      "CAP_DAC_READ_SEARCH",
      "CAP_SYS_MODULE",
    ]) {
      expect(capabilities.bounding).not.toContain(never);
    }
  });
  it("gives a transparent guest the ports below 1024 and nothing else", () => {
    const { capabilities, args } = bundleOf({ network: { mode: "open", transparent: true } }).process;
    expect(args).toContain("--transparent");
    expect(capabilities.bounding).toEqual(["CAP_CHOWN", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_NET_BIND_SERVICE"]);
    expect(bundleOf({ network: { mode: "open" } }).process.args).not.toContain("--transparent");
  });
  it("hides and protects the paths of the config and the template", () => {
    const { linux } = bundleOf({ deniedPaths: ["/workspace/secret"], readOnlyPaths: ["/workspace/fixed"] }, { hidden: ["/usr/etc"] });
    expect(linux.maskedPaths).toEqual(expect.arrayContaining(["/workspace/secret", "/usr/etc"]));
    expect(linux.readonlyPaths).toContain("/workspace/fixed");
  });
  it("numbers the guest's descriptors from 3", () => {
    const { args } = bundleOf({}, { workDescriptors: 3, memoryKillsDescriptor: true }).process;
    expect(args.join(" ")).toContain("--listen-fd 3 --token-fd 4 --filter-fd 5");
    expect(args.join(" ")).toContain("--work-procs-fds 6,7,8 --oom-fd 9");
  });
  it("sets no limit above this process's own", () => {
    const limits = parseHardLimits(
      "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \nMax locked memory         unlimited            unlimited            bytes     \n",
    );
    expect(limits).toEqual({ "Max open files": 4096 });
    const { rlimits } = bundleOf({}, { hardLimits: limits }).process;
    expect(rlimits.find(({ type }) => type === "RLIMIT_NOFILE")).toEqual({ type: "RLIMIT_NOFILE", hard: 4096, soft: 4096 });
    expect(rlimits.find(({ type }) => type === "RLIMIT_SIGPENDING")?.hard).toBe(16_384);
  });
  it("sizes /tmp as requested, and bounds the file count of mounts in memory", () => {
    const { mounts } = bundleOf({ tmpBytes: 2_097_152, shmBytes: 4_194_304 });
    expect(mounts.find(({ destination }) => destination === "/dev/shm")?.options).toContain("size=4194304");
    expect(mounts.find(({ destination }) => destination === "/tmp")?.options).toEqual(
      expect.arrayContaining(["size=2097152", "nr_inodes=512"]),
    );
    const inMemory = mounts.filter(({ type }) => type === "tmpfs");
    expect(inMemory.map(({ destination }) => destination).sort()).toEqual(["/dev", "/dev/shm", "/tmp"]);
    for (const { options } of inMemory) expect(options.some((option) => /^nr_inodes=[1-9]/.test(option))).toBe(true);
  });
});
