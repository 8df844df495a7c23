import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { cgroupNameFor, startDockerEngine, type TestEngine } from "./docker-engine-process.ts";
import { waitForProcessEnd } from "./docker-remains.ts";
import { startPodmanEngine } from "./podman-engine.ts";

function run(engine: TestEngine, args: readonly string[]): string {
  return execFileSync("docker", ["-H", `unix://${engine.socketPath}`, ...args], { encoding: "utf8" });
}

function leftovers(engine: TestEngine): string[] {
  const folder = dirname(engine.socketPath);
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(folder));
  const cgroups = readdirSync("/sys/fs/cgroup").filter((name) => existsSync(`/sys/fs/cgroup/${name}/${cgroupNameFor(folder)}`));
  return [...mounts, ...cgroups, ...(existsSync(folder) ? [folder] : [])];
}

test("a private engine runs an image without a pull, and leaves nothing behind", async () => {
  const engine = await startDockerEngine();
  try {
    expect(run(engine, ["run", "--rm", "--network", "none", await engine.image("busybox"), "echo", "inside"])).toBe("inside\n");
    const debian = [
      "run",
      "--rm",
      "--network",
      "none",
      await engine.image("debian"),
      "bash",
      "-c",
      "dpkg --version | head -1; python3 -c 'print(6*7)'",
    ];
    expect(run(engine, debian)).toContain("\n42\n");
  } finally {
    await engine.stop();
  }
  expect(leftovers(engine)).toEqual([]);
});

test("an engine that is killed while a sandbox runs is cleaned up as well", async () => {
  const engine = await startDockerEngine();
  try {
    run(engine, ["run", "-d", "--network", "none", await engine.image("busybox"), "sleep", "1000"]);
    process.kill(engine.pid, "SIGKILL");
    await waitForProcessEnd(engine.pid);
  } finally {
    await engine.stop();
  }
  expect(leftovers(engine)).toEqual([]);
});

test("Podman's service works as a private engine", async () => {
  const engine = await startPodmanEngine();
  try {
    const args = ["run", "--rm", "--network", "none", "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096"];
    expect(run(engine, [...args, await engine.image("busybox"), "echo", "inside"])).toBe("inside\n");
  } finally {
    await engine.stop();
  }
  expect(leftovers(engine)).toEqual([]);
});
