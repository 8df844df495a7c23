import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { maskedPaths, readonlyPaths, seccompProfile } from "../../hardening/seccomp.ts";
import { absent, refused } from "../../hardening/system-calls.ts";
import { type HostTemplate, hostTemplate } from "./host-template.ts";
import { writeSkeleton } from "./skeleton.ts";

const isRoot = process.getuid?.() === 0;
const installed = (program: string) => spawnSync(program, ["--version"]).status === 0;
const UNIFIED = "/sys/fs/cgroup/unified";

/** Returns a program that makes every call of the table, with arguments that do no harm if it is not refused. */
function probeSource(): string {
  const calls = [...refused, ...absent].flatMap(({ names }) => names);
  const tries = calls.map((name) => `#ifdef __NR_${name}\n  try("${name}", syscall(__NR_${name}, -1L, -1L, -1L, -1L, -1L, -1L));\n#endif`);
  return `#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void try(const char *name, long result) { printf("%s %d\\n", name, result < 0 ? errno : 0); }
static long fork_with(unsigned long flags) { long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0); if (pid == 0) _exit(0); return pid; }
int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);
${tries.join("\n")}
  try("clone-plain", fork_with(0));
  try("clone-user", fork_with(CLONE_NEWUSER));
  try("clone-mount", fork_with(CLONE_NEWNS));
  try("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
  try("socket-netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  try("socket-netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
  try("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
  try("socket-vsock", socket(40, SOCK_STREAM, 0));
  try("socket-alg", socket(38, SOCK_SEQPACKET, 0));
  try("mknod-device", mknod("/tmp/device", S_IFCHR | 0600, 0x103));
  try("mknod-fifo", mknod("/tmp/fifo", S_IFIFO | 0600, 0));
  try("tiocsti", syscall(SYS_ioctl, 0, 0x100005412UL, "x"));
  try("newer", syscall(900));
  return 0;
}
`;
}

let folder = "";
let template: HostTemplate;
let skeleton = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  template = await hostTemplate({ home: process.env.HOME ?? "/root", path: process.env.PATH ?? "" });
  skeleton = await writeSkeleton({ template, stateDir: folder });
  writeFileSync(join(folder, "probe.c"), probeSource());
  execFileSync("cc", ["-static", "-O1", "-w", "-o", join(folder, "probe"), join(folder, "probe.c")]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program as the sandbox's user in a bundle of the host template, without capabilities. */
function run(runtime: string, args: string[]): { status: number | null; stdout: string; stderr: string } {
  const bundle = mkdtempSync(join(folder, "bundle-"));
  const bind = (source: string, destination: string) => ({
    destination,
    source,
    type: "bind",
    options: ["rbind", "ro", "nosuid", "nodev"],
  });
  const tmpfs = (destination: string) => ({ destination, source: "tmpfs", type: "tmpfs", options: ["nosuid", "nodev", "mode=1777"] });
  const config = {
    ociVersion: "1.0.2",
    process: {
      user: { uid: 1000, gid: 1000 },
      args,
      env: Object.entries({ ...template.env, HOME: "/tmp", LANG: "C.UTF-8" }).map(([name, value]) => `${name}=${value}`),
      cwd: "/tmp",
      noNewPrivileges: true,
      capabilities: {},
    },
    root: { path: skeleton, readonly: true },
    mounts: [
      { destination: "/proc", source: "proc", type: "proc" },
      { destination: "/dev", source: "tmpfs", type: "tmpfs", options: ["nosuid", "mode=755"] },
      tmpfs("/dev/shm"),
      { destination: "/sys", source: "sysfs", type: "sysfs", options: ["ro", "nosuid", "noexec", "nodev"] },
      tmpfs("/tmp"),
      bind(join(folder, "probe"), "/tmp/probe"),
      ...template.binds.map(({ source, target }) => bind(source, target)),
    ],
    linux: {
      namespaces: ["pid", "mount", "ipc", "uts", "network"].map((type) => ({ type })),
      seccomp: seccompProfile({ arch: process.arch, writesToHost: false }),
      maskedPaths: [...maskedPaths, ...template.hidden],
      readonlyPaths,
    },
  };
  writeFileSync(join(bundle, "config.json"), JSON.stringify(config));
  mkdirSync(join(bundle, "state"));
  const id = `caisson-test-${process.pid}-${bundle.slice(-6)}`;
  const command = [runtime, "--root", join(bundle, "state"), "run", "-b", bundle, id];
  // crun mistakes a machine with both cgroup versions for one with v2 only, unless that mount is hidden from it.
  const hybrid = runtime === "crun" && existsSync(UNIFIED) ? ["unshare", "-m", "sh", "-c", `umount ${UNIFIED} && exec "$@"`, "sh"] : [];
  const [program = "", ...rest] = [...hybrid, ...command];
  const outcome = spawnSync(program, rest, { encoding: "utf8", timeout: 50_000 });
  return { status: outcome.status, stdout: outcome.stdout, stderr: outcome.stderr };
}

describe.each(["runc", "crun"])("%s", (runtime) => {
  const usable = isRoot && installed(runtime);

  it.skipIf(!usable)("answers each call of the table as specified", () => {
    const { stdout, stderr, status } = run(runtime, ["/tmp/probe"]);
    expect([status, stderr]).toEqual([0, ""]);
    const seen = new Map(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ") as [string, string]),
    );
    const wrong = [...seen].filter(([name, errno]) => {
      if (refused.some(({ names }) => names.includes(name))) return errno !== "1";
      return absent.some(({ names }) => names.includes(name)) && errno !== "38";
    });
    expect(wrong).toEqual([]);
    expect(seen.size).toBeGreaterThan(60);
    expect(Object.fromEntries([...seen].slice(-13))).toEqual({
      "clone-plain": "0",
      "clone-user": "1",
      "clone-mount": "1",
      "socket-inet": "0",
      "socket-netlink": "0",
      "socket-netfilter": "93",
      "socket-packet": "97",
      "socket-vsock": "97",
      "socket-alg": "97",
      "mknod-device": "1",
      "mknod-fifo": "0",
      tiocsti: "1",
      newer: "38",
    });
  });

  const programs: [string, string[], string][] = [
    ["python3", ["python3", "-c", "import ssl, subprocess, multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))"], "[1, 2]\n"],
    ["node", ["node", "-e", 'new (require("worker_threads").Worker)("console.log(1)", { eval: true })'], "1\n"],
    [
      "git",
      [
        "sh",
        "-c",
        "git init -q r && cd r && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm x && git log --format=%s",
      ],
      "x\n",
    ],
    ["gcc", ["sh", "-c", "echo 'int main(void){return 3;}' > a.c && gcc -O2 a.c -o a.out; ./a.out; echo $?"], "3\n"],
    ["npm", ["sh", "-c", "npm --version | grep -c ."], "1\n"],
    ["java", ["sh", "-c", "java -version 2>&1 | grep -ci version"], "1\n"],
    ["cargo", ["sh", "-c", "cargo --version | grep -c cargo"], "1\n"],
    ["perl", ["perl", "-e", 'print "perl\\n"'], "perl\n"],
    ["strace", ["sh", "-c", "strace -o trace true && grep -c exit_group trace"], "1\n"],
  ];
  for (const [program, args, expected] of programs) {
    const there = usable && spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
    it.skipIf(!there)(`runs the host's ${program}`, () => expect(run(runtime, args)).toEqual({ status: 0, stdout: expected, stderr: "" }));
  }

  it.skipIf(!usable)("shows only toolchains of the homes, and hides settings that may have tokens", () => {
    const { stdout } = run(runtime, [
      "sh",
      "-c",
      "id -un; find /root /home -maxdepth 1; ls /usr/local/etc; cat /usr/etc/npmrc /etc/shadow; cat /proc/kcore | wc -c",
    ]);
    const names = stdout.split("\n");
    expect(names[0]).toBe("user");
    const allowed = ["/root", "/root/.cargo", "/root/.pyenv", "/root/.rustup", "/home", "/home/user"];
    expect(
      names.filter((line) => line.startsWith("/") && !line.endsWith(":") && !allowed.includes(line) && !line.startsWith("/root/.")),
    ).toEqual([]);
    expect(stdout).not.toContain("npmrc");
    expect(stdout).not.toContain("registry");
    expect(stdout).not.toContain("root:");
  });
});

it("the sandbox has its own passwd file", () => {
  expect(readFileSync(join(skeleton, "etc/passwd"), "utf8")).not.toBe(readFileSync("/etc/passwd", "utf8"));
});
