import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import type { OwnedSandbox, Process } from "../../../sandbox/sandbox.ts";
import { createOciRuntime, type OciRuntime } from "../runtime.ts";
import { configOf, guestPath, nothing, recordIn, remainsOf, settings, sh } from "../testing-oci.ts";

/** Keeps a count in its memory alone, and 50 MB beside it. */
const counter = `
import time
ballast = bytearray(50 << 20)
count = 0
while True:
  count += 1
  print(count, flush=True)
  time.sleep(0.02)`;

/** Has a socket of MPTCP, which CRIU does not know. */
const unstorable = `
import socket, time
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind(("127.0.0.1", 0))
listener.listen()
print(1, flush=True)
time.sleep(1000)`;

/** Serves, watches a folder, and has a connection to itself. */
const nodeServer = `
const { createServer } = require("node:http");
const net = require("node:net");
createServer((_, answer) => answer.end("served")).listen(3000, "127.0.0.1");
require("node:fs").watch("/workspace", (_, name) => console.log(name));
const echo = net.createServer((socket) => socket.on("error", () => {})).listen(3001, "127.0.0.1", () => {
  const client = net.connect(3001, "127.0.0.1", () => console.log("1"));
  client.on("error", () => {}).on("close", () => console.log("closed"));
});`;

const sleeper = `
import time
print(1, flush=True)
time.sleep(6)
print("woke", flush=True)`;

let stateDir = "";
let runtime: OciRuntime;
let absent: string | null = null;

beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const criu = process.env.CAISSON_CRIU;
  runtime = createOciRuntime({ stateDir, guestPath }, { ...settings, ...(criu !== undefined && { criu }) });
  const { findings } = await runtime.probe();
  const finding = findings.find(({ text }) => text.startsWith("processes can"));
  absent = finding?.level === "ok" ? null : (finding?.text ?? "processes cannot be stored here");
});
afterAll(async () => {
  const remains = absent === null ? remainsOf(stateDir) : nothing;
  await runtime[Symbol.asyncDispose]();
  await rm(stateDir, { recursive: true, force: true });
  expect({ ...remains, folders: [] }).toEqual(nothing);
});

const keptConfig = (input = {}) => configOf({ keep: true, ...input });
const skipIfAbsent = ({ skip }: TestContext) => (absent === null ? undefined : skip(absent));

async function startCounter(sandbox: OwnedSandbox): Promise<Process> {
  const counting = await sandbox.spawn({ argv: ["python3", "-c", counter], keepLastOutput: true });
  return counting;
}

/** Resolves with the first count after `than`, from the process's output. */
async function countAfter(process: Process, than: number): Promise<number> {
  let text = "";
  for await (const { data } of process.output) {
    text += Buffer.from(data).toString();
    const counts = text.split("\n").slice(0, -1).map(Number);
    const last = counts.at(-1) ?? 0;
    if (last > than) {
      process.detach();
      return last;
    }
  }
  throw new Error(`the process ended: ${text.slice(-200)}`);
}

const nextCount = async (sandbox: OwnedSandbox, ref: string, than: number) => countAfter(await sandbox.attach(ref), than);

describe("processes in an image", () => {
  test("a fork continues the processes, and so does the original", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    const { ref, pid } = await startCounter(sandbox);
    const before = await nextCount(sandbox, ref, 5);
    await using fork = await sandbox.fork({ memory: true });
    const inFork = await nextCount(fork, ref, before);
    const inOriginal = await nextCount(sandbox, ref, before);
    expect(inFork).toBeGreaterThan(before);
    expect(inOriginal).toBeGreaterThan(before);
    expect(await nextCount(fork, ref, inFork + 5)).toBeGreaterThan(inFork);
    expect((await fork.processes()).find((process) => process.ref === ref)?.pid).toBe(pid);
    await (await fork.attach(ref)).kill();
    expect(await nextCount(sandbox, ref, inOriginal + 5)).toBeGreaterThan(inOriginal);
  });

  test("files, /tmp and the exit status come along", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    await sh(sandbox, "echo before > /tmp/kept; echo before > /dev/shm/kept; echo before > /workspace/kept");
    const { ref } = await sandbox.spawn({
      argv: ["sh", "-c", 'mkfifo /tmp/fifo; exec 3<>/tmp/fifo; read line <&3; echo "got $line"; exit 7'],
    });
    await expect.poll(async () => (await sh(sandbox, "ls /tmp")).text).toContain("fifo");
    await using fork = await sandbox.fork({ memory: true });
    await sh(sandbox, "echo after > /tmp/kept; echo after > /workspace/kept");
    expect((await sh(fork, "cat /tmp/kept /dev/shm/kept /workspace/kept")).text).toBe("before\nbefore\nbefore");
    const [inFork, inOriginal] = await Promise.all([finish(fork, ref, "fork"), finish(sandbox, ref, "original")]);
    expect(inFork).toEqual({ text: "got fork\n", exit: expect.objectContaining({ kind: "exited", exitCode: 7 }) });
    expect(inOriginal).toEqual({ text: "got original\n", exit: expect.objectContaining({ kind: "exited", exitCode: 7 }) });
  });

  test("clocks continue from the image, also in a fork of a fork", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    const waiter = await sandbox.spawn({ argv: ["python3", "-c", sleeper], keepLastOutput: true });
    await countAfter(waiter, 0);
    const id = await sandbox.snapshot({ memory: true });
    await using first = await runtime.create(configOf({ template: { kind: "snapshot", id } }));
    await using second = await first.fork({ memory: true });
    // Each is behind the machine by the time in which it did not exist.
    for (const each of [first, second]) expect((await sh(each, "cat /proc/self/timens_offsets")).text).toMatch(/monotonic\s+-/);
    for (const each of [first, second]) {
      const process = await each.attach(waiter.ref);
      expect(await outputUntil(process, /woke/)).toContain("woke");
    }
    await first.destroy();
    await second.destroy();
    await runtime.removeSnapshot(id);
  });

  test("a sandbox from a snapshot continues them, with the same options alone", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    const { ref } = await startCounter(sandbox);
    const before = await nextCount(sandbox, ref, 5);
    const id = await sandbox.snapshot({ memory: true });
    try {
      expect((await runtime.snapshots()).find((snapshot) => snapshot.id === id)).toMatchObject({ memory: true });
      const template = { kind: "snapshot" as const, id };
      await expect(runtime.create(configOf({ template, allowRoot: true }))).rejects.toMatchObject({ code: "conflict" });
      await using second = await runtime.create(configOf({ template }));
      await using third = await runtime.create(configOf({ template }));
      expect(await nextCount(second, ref, before)).toBeGreaterThan(before);
      expect(await nextCount(third, ref, before)).toBeGreaterThan(before);
    } finally {
      await runtime.removeSnapshot(id);
    }
  });

  test("the images contain no token and no host path, and only root reads them", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    await startCounter(sandbox);
    const id = await sandbox.snapshot({ memory: true });
    const { readFile, stat } = await import("node:fs/promises");
    const dir = join(stateDir, "snapshots", id, "memory");
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    const token = (await readFile(join(stateDir, "sandboxes", sandbox.id, "token"))).toString("latin1").trim();
    for (const name of await readdir(join(dir, "images"))) {
      const bytes = (await readFile(join(dir, "images", name))).toString("latin1");
      expect(bytes.includes(token), name).toBe(false);
      expect(bytes.includes(join(stateDir, "sandboxes")), name).toBe(false);
    }
    await runtime.removeSnapshot(id);
    await expect(stat(dir)).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("a process that cannot be stored is named, and the sandbox continues", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    const { ref } = await startCounter(sandbox);
    const before = await nextCount(sandbox, ref, 5);
    const holder = await sandbox.spawn({ argv: ["python3", "-c", unstorable], keepLastOutput: true });
    await countAfter(holder, 0);
    const failure = await sandbox.snapshot({ memory: true }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "unsupported", message: expect.stringContaining("python3") });
    expect(await nextCount(sandbox, ref, before + 5)).toBeGreaterThan(before);
    expect(recordIn(stateDir, sandbox.id).state).toBe("running");
  });

  test("System V objects are refused, and the sandbox continues", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    await sh(sandbox, "ipcmk -Q");
    await expect(sandbox.snapshot({ memory: true })).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining("System V"),
    });
    expect((await sh(sandbox, "echo continues")).text).toBe("continues");
  });

  test("servers, watchers and terminals continue, and connections are closed", async (context) => {
    skipIfAbsent(context);
    await using sandbox = await runtime.create(configOf());
    const server = await sandbox.spawn({ argv: ["node", "-e", nodeServer], keepLastOutput: true });
    await countAfter(server, 0);
    const terminal = await sandbox.spawn({ argv: ["sh", "-c", "read line; echo terminal $line; exit 3"], pty: { cols: 80, rows: 24 } });
    terminal.detach();
    await using fork = await sandbox.fork({ memory: true });
    for (const each of [sandbox, fork]) {
      expect((await sh(each, "curl -s http://127.0.0.1:3000")).text).toBe("served");
      await sh(each, "touch /workspace/seen");
      const shell = await each.attach(terminal.ref);
      await shell.write(Buffer.from("typed\n"));
      let text = "";
      for await (const { data } of shell.output) text += Buffer.from(data).toString();
      expect(text).toContain("terminal typed");
      expect(await shell.ended).toMatchObject({ kind: "exited", exitCode: 3 });
    }
    const inFork = await fork.attach(server.ref);
    expect(await outputUntil(inFork, /closed[\s\S]*seen|seen[\s\S]*closed/)).toMatch(/seen/);
  });

  test("a pause on the disk ends the processes, and they continue after the resume", async (context) => {
    skipIfAbsent(context);
    const sandbox = await runtime.create(keptConfig());
    const { id } = sandbox;
    const { ref } = await startCounter(sandbox);
    const before = await nextCount(sandbox, ref, 5);
    await sandbox.pause({ toDisk: true });
    expect(remainsOf(stateDir).processes).toEqual([]);
    await expect(runtime.open(id)).rejects.toMatchObject({ code: "conflict" });
    await runtime.sweep();
    await runtime.wake?.(id);
    await using again = await runtime.open(id);
    expect(await nextCount(again, ref, before)).toBeGreaterThan(before);
    await again.destroy();
  });
});

async function outputUntil(process: Process, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const { data } of process.output) {
    text += Buffer.from(data).toString();
    if (pattern.test(text)) {
      process.detach();
      break;
    }
  }
  return text;
}

async function finish(sandbox: OwnedSandbox, ref: string, line: string) {
  await sh(sandbox, `echo ${line} > /tmp/fifo`);
  const process = await sandbox.attach(ref);
  let text = "";
  for await (const { data } of process.output) text += Buffer.from(data).toString();
  return { text, exit: await process.ended };
}
