import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isErrno } from "../../lib/failures.ts";
import { connectGuest } from "../../sandbox/guest/connection.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { createStore } from "../../sandbox/store.ts";
import { killEverything, processesOf } from "./guest-process.ts";
import { createHostRuntime } from "./runtime.ts";

const guestPath = join(import.meta.dirname, "../../../guest/build/caisson-guest");

let stateDir: string;
let runtime: Runtime;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-host-"));
  runtime = createHostRuntime({ stateDir, guestPath });
});
afterEach(async () => {
  for (const { id } of await runtime.list()) await (await runtime.open(id).catch(() => null))?.destroy();
  for (const name of await readdir(join(stateDir, "sandboxes")).catch(() => [])) {
    for (const pid of processesOf(join(stateDir, "sandboxes", name), name)) process.kill(pid, "SIGKILL");
  }
  await rm(stateDir, { recursive: true, force: true });
});

const live = (sandbox: OwnedSandbox) => processesOf(join(stateDir, "sandboxes", sandbox.id), sandbox.id);
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(10);
}

test("destroy ends the whole tree, including daemons, and leaves no files", async () => {
  const sandbox = await runtime.create(parseSandboxConfig({}));
  const process = await sandbox.spawn({ argv: ["sh", "-c", "setsid sleep 1000 & (sleep 1000 &); echo ready; sleep 1000"] });
  await process.output[Symbol.asyncIterator]().next();
  await until(() => live(sandbox).length >= 5);
  await sandbox.destroy();
  expect(live(sandbox)).toEqual([]);
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
});

test("reports a killed guest as lost, and still finds and ends what it left", async () => {
  const sandbox = await runtime.create(parseSandboxConfig({}));
  const running = await sandbox.spawn({ argv: ["sleep", "1000"] });
  const guests = live(sandbox).filter((pid) => pid !== running.pid);
  // Process 1 is killed first; its children may end as a result.
  for (const pid of guests.toSorted((a, b) => a - b)) killIfThere(pid);
  expect((await running.ended).kind).toBe("lost");
  // The first guest's connection has closed; the last guest may still be exiting.
  await until(() => live(sandbox).every((pid) => !guests.includes(pid)));
  expect(await sandbox.closed).toEqual({ why: "lost" });
  await expect(runtime.open(sandbox.id)).rejects.toMatchObject({ code: "lost" });
  expect((await runtime.list())[0]?.state).toBe("failed");
  await sandbox.destroy();
  expect(live(sandbox)).toEqual([]);
});

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error;
  }
}

/** Starts a process that creates a sandbox and prints its id, then kills the process with -9. */
async function creatorKilled(keep: boolean): Promise<string> {
  const script = `
    import { createHostRuntime } from ${JSON.stringify(new URL("./runtime.ts", import.meta.url).href)};
    import { parseSandboxConfig } from ${JSON.stringify(new URL("../../sandbox/sandbox-config.ts", import.meta.url).href)};
    const runtime = createHostRuntime(${JSON.stringify({ stateDir, guestPath })});
    const sandbox = await runtime.create(parseSandboxConfig({ keep: ${keep} }));
    const process = await sandbox.spawn({ argv: ["sleep", "1000"], ref: "sleeper" });
    console.log(sandbox.id);
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  child.kill("SIGKILL");
  await once(child, "exit");
  return line.toString().trim();
}

test("sweep finds and removes a sandbox whose creator was killed", async () => {
  const id = await creatorKilled(false);
  expect((await runtime.list()).map((info) => info.id)).toEqual([id]);
  expect(await runtime.sweep()).toEqual([id]);
  expect(await runtime.sweep()).toEqual([]);
  expect(processesOf(join(stateDir, "sandboxes", id), id)).toEqual([]);
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
});

test("a kept sandbox survives its creator and sweeps, with a process to attach to", async () => {
  const id = await creatorKilled(true);
  expect(await runtime.sweep()).toEqual([]);
  const sandbox = await runtime.open(id);
  const process = await sandbox.attach("sleeper");
  await process.kill();
  expect(await process.ended).toMatchObject({ kind: "killed", why: "cancelled" });
  await sandbox.destroy();
});

test("sweep finishes interrupted creates and deletes", async () => {
  const store = createStore({ stateDir });
  const sandbox = await runtime.create(parseSandboxConfig({ keep: true }));
  const record = await store.read(sandbox.id);
  const dead = { ...store.thisProcess(), startTicks: 1 };
  await store.write({ ...record, state: "creating", owner: dead });
  expect(await runtime.sweep()).toEqual([sandbox.id]);
  expect(live(sandbox)).toEqual([]);
});

test("an rw workspace is changed in place and outlives the sandbox", async () => {
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-project-"));
  await writeFile(join(folder, "a"), "before");
  {
    await using sandbox = await runtime.create(parseSandboxConfig({ workspace: { kind: "folder", path: folder, access: "rw" } }));
    expect((await runCommand(sandbox, { argv: ["cat", "a"] })).stdout).toBe("before");
    await sandbox.writeFile("/workspace/a", Buffer.from("after"));
  }
  expect(await readFile(join(folder, "a"), "utf8")).toBe("after");
  const overlay = parseSandboxConfig({ workspace: { kind: "folder", path: folder } });
  await expect(runtime.create(overlay)).rejects.toMatchObject({ code: "unsupported", hint: expect.stringContaining(":rw") });
  const own = parseSandboxConfig({ workspace: { kind: "folder", path: stateDir, access: "rw" } });
  await expect(runtime.create(own)).rejects.toMatchObject({ code: "invalid" });
  await rm(folder, { recursive: true });
});

test("works with a state folder whose path is longer than a socket address", async () => {
  const deep = join(stateDir, "x".repeat(100), "y".repeat(100));
  await mkdir(deep, { recursive: true });
  await using sandbox = await createHostRuntime({ stateDir: deep, guestPath }).create(parseSandboxConfig({}));
  expect((await runCommand(sandbox, { argv: ["echo", "deep"] })).stdout).toBe("deep\n");
});

test("its guest requires the token; a guest started without one still opens", async () => {
  const sandbox = await runtime.create(parseSandboxConfig({ keep: true }));
  const folder = join(stateDir, "sandboxes", sandbox.id);
  await expect(connectGuest({ socketPath: join(folder, "guest.sock"), timeoutMs: 5_000 })).rejects.toMatchObject({ code: "denied" });
  await killEverything(folder, sandbox.id);
  await rm(join(folder, "token"));
  await rm(join(folder, "guest.sock"));
  const argv = ["init", "--not-init", "--listen-path", "guest.sock"];
  const guest = spawn(guestPath, argv, { cwd: folder, stdio: "ignore" });
  await until(async () => (await readdir(folder)).includes("guest.sock"));
  const again = await runtime.open(sandbox.id);
  expect((await runCommand(again, { argv: ["echo", "there"] })).stdout).toBe("there\n");
  await again.destroy();
  expect(guest.exitCode ?? guest.signalCode).not.toBeNull();
});

test("warns that nothing is isolated", async () => {
  await using sandbox = await runtime.create(parseSandboxConfig({}));
  expect(sandbox.info.warnings.join(" ")).toMatch(/isolated.*network/s);
  expect(sandbox.info.limits).toMatchObject({ cpus: null, memoryBytes: null, pids: null });
});

test("a missing guest is unavailable, and leaves nothing behind", async () => {
  const broken = createHostRuntime({ stateDir, guestPath: "/nowhere/guest" });
  await expect(broken.create(parseSandboxConfig({}))).rejects.toMatchObject({ code: "unavailable" });
  expect(await readdir(join(stateDir, "sandboxes"))).toEqual([]);
  expect((await broken.probe()).usable).toBe(false);
});

test("runs and forgets ten thousand commands in a row", { timeout: 120_000 }, async () => {
  await using sandbox = await runtime.create(parseSandboxConfig({}));
  for (let round = 0; round < 100; round += 1) {
    const results = await Promise.all(Array.from({ length: 100 }, (_, i) => runCommand(sandbox, { argv: ["echo", `${round}.${i}`] })));
    expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 100 }, (_, i) => `${round}.${i}\n`));
  }
});
