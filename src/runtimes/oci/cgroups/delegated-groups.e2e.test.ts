import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OrdinaryUser, ordinaryUser } from "../../../../test/support/ordinary-user.ts";
import { readLayout } from "./cgroup-parents.ts";

const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
const isV1 = readLayout().some(({ version, controllers }) => version === 1 && controllers.includes("memory"));
const GROUP = `caisson-test-${process.pid}`;

/** Prints what an ordinary user's sandbox reports with v1 groups that root delegated to that user. */
const program = `
  import { createOciRuntime } from ${JSON.stringify(join(import.meta.dirname, "../runtime.ts"))};
  import { SandboxConfig } from ${JSON.stringify(join(import.meta.dirname, "../../../contract/sandbox/sandbox.ts"))};
  import { runCommand } from ${JSON.stringify(join(import.meta.dirname, "../../../sandbox/run-command.ts"))};
  const [stateDir, ociRuntime] = process.argv.slice(1);
  const runtime = createOciRuntime({ stateDir, guestPath: ${JSON.stringify(guestPath)} }, { home: "/", path: "/usr/sbin:/usr/bin:/sbin:/bin", ociRuntime });
  const sandbox = await runtime.create(SandboxConfig.parse({ limits: { memoryBytes: 67108864, pids: 40, cpus: 0.5 } }));
  const own = await runCommand(sandbox, { argv: ["sh", "-c", "cut -d: -f3 /proc/self/cgroup | sort -u; cat /sys/fs/cgroup/memory/memory.limit_in_bytes; for f in new memory/new memory/cgroup.procs; do (: >> /sys/fs/cgroup/$f) 2>/dev/null && echo $f is writable; done"] });
  const hog = await runCommand(sandbox, { argv: ["tail", "/dev/zero"] });
  const crowd = await runCommand(sandbox, { argv: ["sh", "-c", "i=0; while [ $i -lt 60 ]; do sleep 60 >/dev/null & i=$((i+1)); echo $i; done"] });
  await sandbox.pause();
  await sandbox.resume();
  const { warnings, limits } = sandbox.info;
  const stats = await sandbox.stats();
  await sandbox.destroy();
  await runtime[Symbol.asyncDispose]();
  console.log(JSON.stringify({ warnings, limits, hog: hog.ended, started: crowd.stdout.toString().trim().split("\\n").length, stats, own: own.stdout.toString() }));`;

describe.skipIf(process.getuid?.() !== 0 || !isV1)("oci rootless with delegated control groups", () => {
  let user: OrdinaryUser;
  let stateDir: string;
  let groups: string[];

  beforeAll(() => {
    user = ordinaryUser();
    stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
    chownSync(stateDir, user.uid, user.gid);
    groups = readLayout()
      .filter(
        ({ version, controllers }) =>
          version === 2 || controllers.some((name) => ["memory", "pids", "cpu", "cpuacct", "freezer"].includes(name)),
      )
      .map(({ mountPoint }) => join(mountPoint, GROUP));
    for (const group of groups) {
      mkdirSync(group);
      for (const path of [group, join(group, "cgroup.procs")]) chownSync(path, user.uid, user.gid);
    }
  });
  afterAll(() => {
    for (const group of groups) {
      for (const name of readdirSync(group, { withFileTypes: true })) if (name.isDirectory()) rmdirSync(join(group, name.name));
      rmdirSync(group);
    }
    rmSync(stateDir, { recursive: true, force: true });
    user.remove();
  });

  it.each(["runc", "crun"])("%s: enforces every limit, and leaves nothing behind", (ociRuntime) => {
    const join = groups.map((group) => `echo $$ > ${group}/cgroup.procs;`).join(" ");
    const become = `exec setpriv --reuid ${user.uid} --regid ${user.gid} --init-groups "$@"`;
    const argv = ["-c", `${join} ${become}`, "sh", process.execPath, "--input-type=module", "-e", program, stateDir, ociRuntime];
    const { status, stdout, stderr } = spawnSync("sh", argv, {
      cwd: "/",
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: user.home },
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    const seen = JSON.parse(stdout) as {
      warnings: string[];
      hog: { kind: string; why?: string };
      started: number;
      stats: Record<string, unknown>;
      limits: object;
      own: string;
    };
    expect(seen.warnings).toEqual([]);
    expect(seen.limits).toMatchObject({ memoryBytes: 67_108_864, pids: 40, cpus: 0.5 });
    expect(seen.hog).toMatchObject({ kind: "killed", why: "memory" });
    expect(seen.started).toBeLessThan(40);
    expect(seen.own).toBe("/\n67108864\n");
    expect(seen.stats).toMatchObject({ source: "host", memoryKills: expect.any(Number), cpuMs: expect.any(Number) });
    expect(leftIn(groups)).toEqual([]);
    expect(readdirSync(`${stateDir}/sandboxes`)).toEqual([]);
  });
});

function leftIn(groups: readonly string[]): string[] {
  return groups
    .flatMap((group) => execFileSync("find", [group, "-type", "d", "-name", "sb_*"], { encoding: "utf8" }).split("\n"))
    .filter((line) => line !== "");
}
