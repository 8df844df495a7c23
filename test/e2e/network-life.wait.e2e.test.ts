import { readFileSync } from "node:fs";
import { mkdir, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createInside, type Inside, insideOf } from "../support/network/inside.ts";
import { useMachine } from "../support/network/run-in.ts";
import { until } from "./caisson-process.ts";

const machine = useMachine();
const seen = () => machine.internet.world.seen({ take: true });
afterEach(() => machine.removeAll());

const FETCH = "curl -sS -o /dev/null -w '%{http_code}\\n' --max-time 5";
async function ok(...argv: string[]): Promise<string> {
  const { code, stdout, stderr } = await machine.run(argv);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}
const status = async (inside: Inside, url: string) => (await inside.sh(`${FETCH} ${url}`)).stdout.trim();
async function servedBy({ id }: Inside): Promise<number> {
  return (JSON.parse(await ok("net", "show", id, "--json")) as { servedBy: number }).servedBy;
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    // The process has just ended.
    return "";
  }
}

describe("a policy change while the sandbox runs", () => {
  test("allows a host, or revokes it and closes its connections", async () => {
    const inside = await createInside(machine, ["--network", "api.example.com"]);
    expect(await status(inside, "http://api.example.com/")).toBe("200");
    expect(await status(inside, "http://other.example.com/")).toBe("403");
    expect(await ok("net", "allow", inside.id, "other.example.com")).toBe("api.example.com, other.example.com");
    expect(await status(inside, "http://other.example.com/")).toBe("200");
    const streaming = machine.start([
      "exec",
      "--sandbox",
      inside.id,
      "--",
      "curl",
      "-sSN",
      "http://other.example.com/stream?pieces=1000&ms=50",
    ]);
    const tunnel = machine.start([
      "exec",
      "--sandbox",
      inside.id,
      "--",
      "curl",
      "-sSN",
      "https://other.example.com/stream?pieces=1000&ms=50",
    ]);
    await Promise.all([streaming.says(/data: 3/), tunnel.says(/data: 3/)]);
    expect(await ok("net", "deny", inside.id, "other.example.com")).toBe("api.example.com");
    // Without the change, they would finish.
    for (const started of [streaming, tunnel]) expect((await started.finished).code).not.toBe(0);
    expect(await status(inside, "http://other.example.com/")).toBe("403");
    expect(await status(inside, "http://api.example.com/")).toBe("200");
    // Removing the last rule denies everything (N10).
    expect(await ok("net", "deny", inside.id, "api.example.com")).toBe("allow nothing");
    await seen();
    const before = await machine.internet.world.packets();
    expect(await status(inside, "http://api.example.com/")).toBe("403");
    expect(await status(inside, "https://api.example.com/")).toBe("000");
    expect(await machine.internet.world.packets()).toBe(before);
    expect(await ok("net", "set", inside.id, "none")).toBe("none");
    expect((await inside.sh("curl -sS http://api.example.com/")).stdout).toContain("this sandbox has no network");
    expect(await ok("net", "log", inside.id)).toMatch(/changed +none[\s\S]*denied +api\.example\.com:80 GET \/ \(no network\)/);
  });

  test("gives a network to a sandbox that was created without one", async () => {
    const inside = await createInside(machine, []);
    expect(await status(inside, "http://api.example.com/")).toBe("000");
    await ok("net", "allow", inside.id, "api.example.com");
    expect(await status(inside, "http://api.example.com/")).toBe("200");
    expect(await status(inside, "https://api.example.com/")).toBe("200");
  });

  test("is not lost if several happen at once", async () => {
    const inside = await createInside(machine, ["--network", "api.example.com"]);
    const hosts = ["a", "b", "c", "d", "e"].map((name) => `${name}.example.net`);
    await Promise.all(hosts.map((host) => ok("net", "allow", inside.id, host)));
    const { policy } = JSON.parse(await ok("net", "show", inside.id, "--json")) as { policy: { rules: { host: string }[] } };
    expect(policy.rules.map(({ host }) => host).toSorted()).toEqual([...hosts, "api.example.com"].toSorted());
  });
});

describe("rules after pause, fork and restart (N15)", () => {
  const holds = async (inside: Inside) => {
    expect(await status(inside, "http://api.example.com/")).toBe("200");
    expect(await status(inside, "http://other.example.com/")).toBe("403");
  };

  test("survive pause and resume", async () => {
    const inside = await createInside(machine, ["--network", "api.example.com"]);
    await ok("sandbox", "pause", inside.id);
    await ok("sandbox", "resume", inside.id);
    await holds(inside);
  });

  test("are copied to a fork as they are now, and change independently", async () => {
    const parent = await createInside(machine, ["--network", "cdn.example.net"]);
    await ok("net", "set", parent.id, "api.example.com");
    const child = insideOf(machine, await ok("sandbox", "fork", parent.id));
    await holds(child);
    await ok("net", "set", parent.id, "none");
    await holds(child);
    const grandchild = insideOf(machine, await ok("sandbox", "fork", parent.id));
    expect(await status(grandchild, "http://api.example.com/")).not.toBe("200");
  });

  test("are current after the serving process is killed and replaced", async () => {
    const inside = await createInside(machine, ["--network", "cdn.example.net"]);
    await ok("net", "set", inside.id, "api.example.com");
    process.kill(await servedBy(inside), "SIGKILL");
    await holds(inside);
    expect(await servedBy(inside)).toBeGreaterThan(0);
  });

  test("include changes made while no process serves", async () => {
    const inside = await createInside(machine, ["--network", "api.example.com,other.example.com"]);
    process.kill(await servedBy(inside), "SIGKILL");
    await ok("net", "deny", inside.id, "other.example.com");
    await holds(inside);
  });
});

describe("kill -9 of the serving process (N11)", () => {
  test("cuts off a connected client at once, and the next gets an error", async () => {
    const inside = await createInside(machine, ["--network", "open"]);
    const pid = await servedBy(inside);
    const script = [
      "curl -sSN http://api.example.com/stream?pieces=10000\\&ms=20; echo request $?",
      "curl -sSN --max-time 30 http://api.example.com/again -w ' %{http_code}'; echo again $?",
      "curl -sS --max-time 30 https://api.example.com/; echo tunnel $?",
    ];
    // Everything runs inside one command, since another command would start a new serving process.
    const working = machine.start(["exec", "--sandbox", inside.id, "--", "sh", "-c", script.join("; ")]);
    await working.says(/data: 3/);
    await seen();
    process.kill(pid, "SIGKILL");
    const { stdout, stderr } = await working.finished;
    expect(stdout + stderr).toMatch(/request (18|56)/);
    expect(stdout).toMatch(/ 503again 0/);
    expect(stdout).toMatch(/tunnel [1-9]/);
    expect((await seen()).requests).toEqual([]);
  });

  test("starts one replacement even if several commands notice", async () => {
    const inside = await createInside(machine, ["--network", "api.example.com"]);
    process.kill(await servedBy(inside), "SIGKILL");
    const statuses = await Promise.all(Array.from({ length: 6 }, () => status(inside, "http://api.example.com/")));
    expect(statuses).toEqual(Array(6).fill("200"));
    const serving = () =>
      machine.internet.processes().filter((pid) => {
        const words = commandLine(pid).split("\0");
        return words.includes("serve") && words.includes(inside.id);
      });
    // The processes that lost the race take a moment to end.
    await until("one keeper", () => serving().length === 1);
    expect(serving()).toEqual([await servedBy(inside)]);
  });

  test("leaves no sandbox behind if a serving process cannot start", async () => {
    const log = join(machine.home, "background.log");
    await rename(log, `${log}.kept`).catch(() => {});
    await mkdir(log);
    try {
      for (const argv of [
        ["sandbox", "create", "--no-workspace", "--network", "api.example.com"],
        ["exec", "--keep", "--no-workspace", "--network", "api.example.com", "--", "true"],
      ]) {
        const { code, stdout } = await machine.run(argv);
        expect([code, stdout]).toEqual([125, ""]);
        expect(machine.sandboxes()).toEqual([]);
      }
    } finally {
      await rmdir(log);
    }
  });

  test("closes the network of a sandbox whose command was killed as well", async () => {
    const working = machine.start([
      "exec",
      "--no-workspace",
      "--network",
      "open",
      "--",
      "curl",
      "-sSN",
      "http://api.example.com/stream?pieces=10000&ms=20",
    ]);
    await working.says(/data: 3/);
    expect(await machine.internet.world.open()).toBe(1);
    const caisson = machine.internet.processes().find((pid) => commandLine(pid).includes("exec\0--no-workspace"));
    process.kill(caisson ?? 0, "SIGKILL");
    await working.finished;
    await expect.poll(() => machine.internet.world.open()).toBe(0);
    // The next command removes the sandbox of the killed one.
    await machine.run(["sandbox", "ls"]);
    expect(machine.sandboxes()).toEqual([]);
  });
});
