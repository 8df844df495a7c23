import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type DbusMessage, decodeMessage } from "./dbus-message.ts";
import { type DbusValue, marshal } from "./dbus-value.ts";
import { startScope } from "./user-scope.ts";
import { findUserSystemd, parseBusAddress } from "./user-systemd.ts";

const uid = process.getuid?.() ?? 0;
const JOB = "/org/freedesktop/systemd1/job/7";
const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
const socketPath = join(folder, "bus");
const request = { unit: "caisson-test.scope", pid: 4242, uid, description: "Caisson sandbox", timeoutMs: 2_000 };
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Reply = { kind: "return" | "error" | "signal"; signature: string; body: DbusValue[]; errorName?: string; member?: string };
const removed = (result: string, job = JOB): Reply => ({
  kind: "signal",
  member: "JobRemoved",
  signature: "uoss",
  body: [7, job, request.unit, result],
});
const started: Reply = { kind: "return", signature: "o", body: [JOB] };

/** A bus that greets everybody and answers as it is told. */
class FakeBus {
  readonly calls: DbusMessage[] = [];
  greeting = "OK 1234deadbeef\r\n";
  answers: (call: DbusMessage) => Reply[] = (call) =>
    call.member === "StartTransientUnit" ? [started, removed("done")] : [{ kind: "return", signature: "", body: [] }];
  private readonly sockets = new Set<Socket>();
  private readonly server: Server = createServer((socket) => this.serve(socket));

  listen = () => new Promise<void>((resolve) => this.server.listen(socketPath, resolve));
  close = () =>
    new Promise((resolve) => {
      for (const socket of this.sockets) socket.destroy();
      this.server.close(resolve);
    });

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    let bytes = Buffer.alloc(0);
    let begun = false;
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!begun && bytes.includes("AUTH") && bytes.includes("\r\n")) {
        expect(bytes.toString("latin1")).toBe(`\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString("hex")}\r\n`);
        socket.write(this.greeting);
        bytes = Buffer.alloc(0);
        begun = true;
        return;
      }
      if (bytes.toString("latin1", 0, 7) === "BEGIN\r\n") bytes = bytes.subarray(7);
      for (let next = decodeMessage(bytes); next !== null; next = decodeMessage(bytes)) {
        bytes = bytes.subarray(next.length);
        this.calls.push(next.message);
        for (const reply of this.answers(next.message)) socket.write(encode(reply, next.message.serial));
      }
    });
  }
}

function encode(reply: Reply, serial: number): Buffer {
  const body = marshal(reply.signature, reply.body);
  const fields: DbusValue[] = [
    [5, { signature: "u", value: serial }],
    [8, { signature: "g", value: reply.signature }],
    ...(reply.errorName === undefined ? [] : [[4, { signature: "s", value: reply.errorName }]]),
    ...(reply.member === undefined ? [] : [[3, { signature: "s", value: reply.member }]]),
  ];
  const header = marshal("yyyyuua(yv)", [0x6c, { return: 2, error: 3, signal: 4 }[reply.kind], 0, 1, body.length, 1, fields]);
  return Buffer.concat([header, Buffer.alloc((8 - (header.length % 8)) % 8), body]);
}

describe("startScope", () => {
  let bus: FakeBus;
  const start = (direct = false) => startScope({ endpoints: [{ socketPath, direct }] }, request);
  const open = async (change: (bus: FakeBus) => void = () => {}) => {
    bus = new FakeBus();
    change(bus);
    await bus.listen();
  };
  afterEach(() => bus.close());

  it("says hello, listens for the end of the job, asks, and waits for it", async () => {
    await open();
    await start();
    expect(bus.calls.map(({ member }) => member)).toEqual(["Hello", "AddMatch", "StartTransientUnit"]);
    const [unit, mode, properties] = bus.calls[2]?.body ?? [];
    expect([unit, mode]).toEqual(["caisson-test.scope", "fail"]);
    expect(properties).toContainEqual(["PIDs", { signature: "au", value: [4242] }]);
    expect(properties).toContainEqual(["Delegate", { signature: "b", value: true }]);
  });
  it("without a bus between, only asks", async () => {
    await open();
    await start(true);
    expect(bus.calls.map(({ member }) => member)).toEqual(["StartTransientUnit"]);
  });
  it("a job that was over before it was announced, and other jobs, do not confuse it", async () => {
    await open((fake) => {
      fake.answers = (call) =>
        call.member === "StartTransientUnit"
          ? [removed("failed", "/other/job"), removed("done"), started]
          : [{ kind: "return", signature: "", body: [] }];
    });
    await start();
  });
  it("takes the next address where the first is dead", async () => {
    await open();
    const dead = { socketPath: join(folder, "dead"), direct: false };
    await startScope({ endpoints: [dead, { socketPath, direct: false }] }, request);
  });
  it.each<[string, (fake: FakeBus) => void, object]>([
    [
      "a refusal",
      (fake) => {
        fake.answers = () => [{ kind: "error", signature: "s", body: ["no"], errorName: "org.test.No" }];
      },
      { code: "unavailable", message: expect.stringMatching(/no \(org.test.No\)/) },
    ],
    [
      "a job that fails",
      (fake) => {
        fake.answers = () => [started, removed("failed")];
      },
      { code: "unavailable", message: expect.stringMatching(/failed/) },
    ],
    [
      "another user's bus",
      (fake) => {
        fake.greeting = "REJECTED EXTERNAL\r\n";
      },
      { code: "unavailable" },
    ],
    [
      "a bus that greets without end",
      (fake) => {
        fake.greeting = "x".repeat(5000);
      },
      { code: "protocol" },
    ],
  ])("%s is told", async (_, change, error) => {
    await open(change);
    await expect(start()).rejects.toMatchObject(error);
  });
  it.each<[string, (fake: FakeBus) => void]>([
    [
      "that never greets",
      (fake) => {
        fake.greeting = "";
      },
    ],
    [
      "that never answers",
      (fake) => {
        fake.answers = () => [];
      },
    ],
    [
      "whose job never ends",
      (fake) => {
        fake.answers = () => [started];
      },
    ],
  ])("a bus %s is given up", async (_, change) => {
    await open(change);
    await expect(startScope({ endpoints: [{ socketPath, direct: false }] }, { ...request, timeoutMs: 100 })).rejects.toMatchObject({
      code: "timeout",
    });
  });
});

describe("startScope with dbus-daemon", () => {
  let daemon: ChildProcess | null = null;
  let address = "";
  beforeAll(async () => {
    const child = spawn(
      "dbus-daemon",
      ["--session", "--nofork", "--nopidfile", "--print-address", `--address=unix:path=${join(folder, "real")}`],
      {
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    address = await new Promise<string>((resolve) => {
      child.once("error", () => resolve(""));
      child.stdout.once("data", (data: Buffer) => resolve(data.toString().trim()));
    });
    daemon = address === "" ? null : child;
  });
  afterAll(() => daemon?.kill());

  it("the daemon takes every message; there is no systemd behind it", async (context) => {
    if (daemon === null) return context.skip("dbus-daemon is not installed");
    const endpoints = parseBusAddress(address).map((path) => ({ socketPath: path, direct: false }));
    await expect(startScope({ endpoints }, request)).rejects.toMatchObject({
      details: { errorName: expect.stringMatching(/^org\.freedesktop\.DBus\.Error\.(?:ServiceUnknown|Spawn\.|NameHasNoOwner)/) },
    });
  });
});

describe("findUserSystemd", () => {
  const dir = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service";
  const find = (there: string[], session = {}) =>
    findUserSystemd({
      mountPoint: "/sys/fs/cgroup",
      uid: 1000,
      userName: "me",
      session,
      look: { exists: (path) => there.includes(path), isSocket: (path) => there.includes(path) },
    });
  it("none without its control group, or without a socket", () => {
    expect(find(["/run/user/1000/bus"])).toBeNull();
    expect(find([dir])).toBeNull();
  });
  it("the session's own address first, then the bus of the run-time folder, then systemd itself", () => {
    const sockets = ["/tmp/b", "/run/u/bus", "/run/u/systemd/private"];
    const session = { runtimeDir: "/run/u", busAddress: "unix:path=/tmp/b,guid=1" };
    expect(find([dir, ...sockets], session)?.endpoints).toEqual([
      { socketPath: "/tmp/b", direct: false },
      { socketPath: "/run/u/bus", direct: false },
      { socketPath: "/run/u/systemd/private", direct: true },
    ]);
  });
  it("is found without variables, as in a job of cron", () => {
    expect(find([dir, "/run/user/1000/bus"])).toMatchObject({ endpoints: [{ socketPath: "/run/user/1000/bus" }], lingering: false });
  });
  it("knows whether it outlives a logout", () => {
    expect(find([dir, "/run/user/1000/bus", "/var/lib/systemd/linger/me"])?.lingering).toBe(true);
  });
});

it("reads addresses of a bus", () => {
  expect(parseBusAddress("unix:path=/run/user/1000/bus")).toEqual(["/run/user/1000/bus"]);
  expect(parseBusAddress("tcp:host=x,port=1;unix:abstract=/tmp/dbus-x,guid=1;unix:guid=2,path=/a%20b")).toEqual(["\0/tmp/dbus-x", "/a b"]);
  expect(parseBusAddress("")).toEqual([]);
});
