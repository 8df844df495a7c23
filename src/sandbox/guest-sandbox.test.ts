import { duplexPair } from "node:stream";
import { afterEach, expect, test } from "vitest";
import { CaissonError } from "../contract/error/error.ts";
import type { SandboxConfigInput, SandboxInfo } from "../contract/sandbox/sandbox.ts";
import { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import { systemClock } from "../runtimes/fake/clock.ts";
import { FakeMachine } from "../runtimes/fake/machine.ts";
import { MemoryFiles } from "../runtimes/fake/memory-files.ts";
import { basicPrograms } from "../runtimes/fake/program.ts";
import { serveGuest } from "../runtimes/fake/serve-guest.ts";
import { greet } from "./guest/connection.ts";
import { createGuestSandbox, type GuestSandboxOptions } from "./guest-sandbox.ts";
import { runCommand } from "./run-command.ts";
import { type OwnedSandbox, restricted } from "./sandbox.ts";
import { parseSandboxConfig } from "./sandbox-config.ts";
import type { Wall } from "./wall.ts";

interface Made {
  sandbox: OwnedSandbox;
  events: SandboxEvent[];
  calls: string[];
  machine: FakeMachine;
  breakConnection: () => void;
}
const fixtures: Made[] = [];
afterEach(async () => {
  for (const { sandbox } of fixtures.splice(0)) await sandbox.destroy().catch(() => {});
});

async function make(
  input: SandboxConfigInput = {},
  options: {
    wall?: Partial<Wall>;
    paths?: GuestSandboxOptions["paths"];
    limits?: Partial<SandboxInfo["limits"]>;
    onEvent?: () => void;
  } = {},
): Promise<Made> {
  const config = parseSandboxConfig(input);
  const files = new MemoryFiles({ now: Date.now });
  for (const path of ["/workspace", "/elsewhere"]) files.mkdir(path, { parents: true, mode: 0o755, uid: 1000 });
  const machine = new FakeMachine({ files, clock: systemClock, programs: new Map(Object.entries(basicPrograms)) });
  const [inside, outside] = duplexPair();
  serveGuest(machine, inside, { uid: 1000, rootAllowed: config.allowRoot });
  const connection = await greet({ socket: outside, name: "test", timeoutMs: 60_000 });
  const calls: string[] = [];
  const events: SandboxEvent[] = [];
  const note = (name: string) => async () => void calls.push(name);
  const wall: Wall = {
    stats: async () => ({ cpuMs: null, memoryBytes: null, memoryKills: null, processes: 0, diskBytes: null, source: "host" }),
    condition: async () => "running",
    pause: note("pause"),
    resume: note("resume"),
    snapshot: async () => "sn_aaaaaaaaaaaa",
    fork: async () => Promise.reject(new CaissonError("unsupported", "no fork here")),
    release: note("release"),
    destroy: note("destroy"),
    ...options.wall,
  };
  const info: SandboxInfo = {
    ...config,
    id: "sb_aaaaaaaaaaaa",
    runtime: "test",
    state: "running",
    createdAt: new Date().toISOString(),
    limits: { cpus: null, memoryBytes: null, pids: null, diskBytes: null, wallClockMs: 60_000, outputBytes: null, ...options.limits },
    owner: "local",
    warnings: [],
  };
  const onEvent = (event: SandboxEvent) => {
    events.push(SandboxEvent.parse(event));
    options.onEvent?.();
  };
  const sandbox = createGuestSandbox({ info, config, connection, wall, onEvent, ...(options.paths && { paths: options.paths }) });
  const result = { sandbox, events, calls, machine, breakConnection: () => outside.destroy() };
  fixtures.push(result);
  return result;
}
const typesOf = (events: SandboxEvent[]) => events.map(({ type }) => type);

test("reports a command's start, output and end as events", async () => {
  const { sandbox, events } = await make();
  await runCommand(sandbox, { argv: ["echo", "hello"], ref: "r1" });
  expect(typesOf(events)).toEqual(["command.started", "command.output", "command.ended"]);
  expect(events[1]?.data).toEqual({ sandbox: sandbox.id, ref: "r1", stream: "stdout", offset: 0, encoding: "utf8", text: "hello\n" });
  expect(events[2]?.data).toMatchObject({ ref: "r1", ended: { kind: "exited", exitCode: 0 } });
});

test("reports bytes that are not UTF-8 as base64", async () => {
  const { sandbox, events } = await make();
  await sandbox.writeFile("raw", Buffer.from([0xff, 0x00]));
  await runCommand(sandbox, { argv: ["cat", "raw"] });
  expect(events.find(({ type }) => type === "command.output")?.data).toMatchObject({ encoding: "base64", text: "/wA=" });
});

test("reports only one start for commands with the same ref", async () => {
  const { sandbox, events } = await make();
  await runCommand(sandbox, { argv: ["true"], ref: "once" });
  await runCommand(sandbox, { argv: ["true"], ref: "once" });
  expect(typesOf(events).filter((type) => type === "command.started")).toHaveLength(1);
});

test("survives an observer that throws", async () => {
  const { sandbox } = await make(
    {},
    {
      onEvent: () => {
        throw new Error("observer");
      },
    },
  );
  expect((await runCommand(sandbox, { argv: ["echo", "x"] })).ended.kind).toBe("exited");
});

test("a command's variables override the config's and the defaults", async () => {
  const { sandbox } = await make({ env: { FROM: "config", BOTH: "config" } });
  const env = async (options: object) => (await runCommand(sandbox, { argv: ["env"], ...options })).stdout.trim().split(/\r?\n/);
  expect(await env({ env: { BOTH: "command" } })).toEqual([
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/home/user",
    "USER=user",
    "LANG=C.UTF-8",
    "FROM=config",
    "BOTH=command",
  ]);
  expect(await env({ pty: { cols: 80, rows: 24 } })).toContain("TERM=xterm-256color");
});

test("denies root unless the config allows it, and gives it root's home", async () => {
  const { sandbox: strict } = await make();
  await expect(strict.spawn({ argv: ["true"], user: "root" })).rejects.toMatchObject({ code: "denied" });
  await expect(strict.stat("/", { user: "0" })).rejects.toMatchObject({ code: "denied" });
  const { sandbox } = await make({ allowRoot: true });
  expect((await runCommand(sandbox, { argv: ["env"], user: "root" })).stdout).toContain("HOME=/root\nUSER=root");
});

test("applies the sandbox's limits to every command, even if it requests higher ones", async () => {
  const { sandbox } = await make({}, { limits: { wallClockMs: 30, outputBytes: 4 } });
  expect((await runCommand(sandbox, { argv: ["sleep", "60"], timeoutMs: 50_000 })).ended.kind).toBe("timedOut");
  expect((await runCommand(sandbox, { argv: ["echo", "123456"], outputBytesMax: 100 })).ended).toMatchObject({
    kind: "killed",
    why: "output",
  });
});

test("only an explicit time limit applies to a command that keeps its last output", async () => {
  const left = { argv: ["sleep", "0.1"], keepLastOutput: true };
  const endOf = async (sandbox: OwnedSandbox, options: { timeoutMs?: number } = {}) => {
    const process = await sandbox.spawn({ ...left, ...options });
    process.discardOutput();
    return (await process.ended).kind;
  };
  const { sandbox } = await make({}, { limits: { wallClockMs: 30 } });
  expect(await endOf(sandbox)).toBe("exited");
  expect(await endOf(sandbox, { timeoutMs: 20 })).toBe("timedOut");
  const { sandbox: limited } = await make({ limits: { wallClockMs: 30 } }, { limits: { wallClockMs: 30 } });
  expect(await endOf(limited)).toBe("timedOut");
});

test("a paused sandbox rejects calls with conflict until it is resumed", async () => {
  const { sandbox, calls, events } = await make();
  await sandbox.pause();
  await sandbox.pause();
  expect(sandbox.info.state).toBe("paused");
  await expect(sandbox.spawn({ argv: ["true"] })).rejects.toMatchObject({ code: "conflict" });
  await expect(sandbox.stat("/")).rejects.toMatchObject({ code: "conflict" });
  await expect(sandbox.ping()).rejects.toMatchObject({ code: "conflict" });
  await sandbox.stats();
  await sandbox.resume();
  await sandbox.resume();
  await sandbox.ping();
  expect(calls).toEqual(["pause", "resume", "resume"]);
  expect(typesOf(events)).toEqual(["sandbox.paused", "sandbox.resumed"]);
});

test("destroy runs once even if repeated, and later calls are lost", async () => {
  const { sandbox, calls, events } = await make();
  const process = await sandbox.spawn({ argv: ["sleep", "60"] });
  await Promise.all([sandbox.destroy(), sandbox.destroy()]);
  await sandbox.destroy();
  expect(calls).toEqual(["destroy"]);
  expect(await sandbox.closed).toEqual({ why: "destroyed" });
  expect((await process.ended).kind).toBe("lost");
  expect(events.at(-1)).toMatchObject({ type: "sandbox.ended", data: { why: "destroyed" } });
  expect(typesOf(events).filter((type) => type === "sandbox.ended")).toHaveLength(1);
  for (const call of [() => sandbox.ping(), () => sandbox.stats(), () => sandbox.stat("/"), () => sandbox.fork()]) {
    await expect(call()).rejects.toMatchObject({ code: "lost" });
  }
});

test("retries a destroy that failed", async () => {
  let attempts = 0;
  const destroy = async () => {
    attempts += 1;
    if (attempts === 1) throw new CaissonError("unavailable", "the engine is away");
  };
  const { sandbox } = await make({}, { wall: { destroy } });
  await expect(sandbox.destroy()).rejects.toMatchObject({ code: "unavailable" });
  await sandbox.destroy();
  expect(attempts).toBe(2);
  expect(await sandbox.closed).toEqual({ why: "destroyed" });
});

test("a broken connection makes the sandbox lost, but it can still be destroyed", async () => {
  const { sandbox, events, calls, breakConnection } = await make();
  const process = await sandbox.spawn({ argv: ["sleep", "60"] });
  breakConnection();
  expect(await sandbox.closed).toEqual({ why: "lost" });
  expect((await process.ended).kind).toBe("lost");
  expect(sandbox.info.state).toBe("failed");
  expect(events.at(-1)).toMatchObject({ type: "sandbox.ended", data: { why: "lost" } });
  await expect(sandbox.ping()).rejects.toMatchObject({ code: "lost" });
  await sandbox.destroy();
  expect(calls).toEqual(["destroy"]);
});

test("leaving the scope destroys the sandbox, or releases it if it has keep", async () => {
  const plain = await make();
  await plain.sandbox[Symbol.asyncDispose]();
  expect(plain.calls).toEqual(["destroy"]);
  const persistent = await make({ keep: true });
  await persistent.sandbox.spawn({ argv: ["sleep", "60"] });
  await persistent.sandbox[Symbol.asyncDispose]();
  expect(persistent.calls).toEqual(["release"]);
  expect(persistent.machine.live()).toHaveLength(1);
  await expect(plain.sandbox.release()).rejects.toMatchObject({ code: "invalid" });
});

test("translates paths to and from the guest if they differ from the contract's", async () => {
  const paths = {
    toGuest: (path: string) => path.replace(/^\/workspace/, "/elsewhere"),
    fromGuest: (path: string) => path.replace(/^\/elsewhere/, "/workspace"),
  };
  const { sandbox, machine } = await make({}, { paths });
  const watch = await sandbox.watch("/workspace");
  await sandbox.writeFile("note", Buffer.from("x"));
  expect(machine.files.exists("/elsewhere/note")).toBe(true);
  expect((await sandbox.stat("/workspace/note")).name).toBe("/workspace/note");
  expect((await runCommand(sandbox, { argv: ["pwd"] })).stdout).toBe("/elsewhere\n");
  expect((await watch[Symbol.asyncIterator]().next()).value).toMatchObject({ kind: "created", path: "/workspace/note" });
  watch.close();
});

test("a tool's sandbox has no lifecycle methods, even at run time", async () => {
  const { sandbox } = await make();
  const tool = restricted(sandbox);
  expect((await runCommand(tool, { argv: ["echo", "x"] })).stdout).toBe("x\n");
  for (const name of ["destroy", "pause", "snapshot", "fork", "connect", "release", "closed", "info"]) expect(name in tool).toBe(false);
});

test.each([
  [{ argv: [] }],
  [{ argv: [""] }],
  [{ argv: ["a\0b"] }],
  [{ argv: ["x"], env: { "A B": "x" } }],
  [{ argv: ["x"], env: { A: "\0" } }],
  [{ argv: ["x"], ref: "a/b" }],
  [{ argv: ["x"], timeoutMs: 0 }],
  [{ argv: ["x"], outputBytesMax: 1.5 }],
  [{ argv: ["x"], cwd: "../x" }],
  [{ argv: ["x"], pty: { cols: 0, rows: 1 } }],
  [{ argv: ["x"], user: "nobody" }],
])("rejects spawn(%j) as invalid", async (options) => {
  const { sandbox } = await make();
  await expect(sandbox.spawn(options)).rejects.toMatchObject({ code: "invalid" });
});

test("rejects arguments that exceed a frame as too_large and keeps working", async () => {
  const { sandbox } = await make();
  await expect(sandbox.spawn({ argv: ["echo", "x".repeat(300_000)] })).rejects.toMatchObject({ code: "too_large" });
  expect((await runCommand(sandbox, { argv: ["true"] })).ended.kind).toBe("exited");
});
