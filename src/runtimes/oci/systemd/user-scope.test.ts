import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type BusReply, jobRemoved, jobStarted, ScriptedBus } from "../../../../test/support/scripted-bus.ts";
import { startScope } from "./user-scope.ts";
import { findUserSystemd, parseBusAddress } from "./user-systemd.ts";

const uid = process.getuid?.() ?? 0;
const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
const socketPath = join(folder, "bus");
const request = { unit: "caisson-test.scope", pid: 4242, uid, description: "Caisson sandbox", timeoutMs: 2_000 };
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const removed = (result: string, job?: string): BusReply => jobRemoved(request.unit, result, job);
const started = jobStarted;

describe("startScope", () => {
  let bus: ScriptedBus;
  const start = (direct = false) => startScope({ endpoints: [{ socketPath, direct }] }, request);
  const open = async (change: (bus: ScriptedBus) => void = () => {}) => {
    bus = new ScriptedBus(socketPath);
    change(bus);
    await bus.listen();
  };
  afterEach(() => bus.close());

  it("greets, subscribes to the job's end, requests the scope and waits", async () => {
    await open();
    await start();
    expect(bus.greetings).toEqual([`\0AUTH EXTERNAL ${Buffer.from(String(uid)).toString("hex")}\r\n`]);
    expect(bus.calls.map(({ member }) => member)).toEqual(["Hello", "AddMatch", "StartTransientUnit"]);
    const [unit, mode, properties] = bus.calls[2]?.body ?? [];
    expect([unit, mode]).toEqual(["caisson-test.scope", "fail"]);
    expect(properties).toContainEqual(["PIDs", { signature: "au", value: [4242] }]);
    expect(properties).toContainEqual(["Delegate", { signature: "b", value: true }]);
  });
  it("only sends the request if there is no bus in between", async () => {
    await open();
    await start(true);
    expect(bus.calls.map(({ member }) => member)).toEqual(["StartTransientUnit"]);
  });
  it("handles a job that ends before its announcement, and ignores other jobs", async () => {
    await open((fake) => {
      fake.answers = (call) =>
        call.member === "StartTransientUnit"
          ? [removed("failed", "/other/job"), removed("done"), started]
          : [{ kind: "return", signature: "", body: [] }];
    });
    await start();
  });
  it("takes the next address if the first is dead", async () => {
    await open();
    const dead = { socketPath: join(folder, "dead"), direct: false };
    await startScope({ endpoints: [dead, { socketPath, direct: false }] }, request);
  });
  it.each<[string, (fake: ScriptedBus) => void, object]>([
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
  ])("reports %s", async (_, change, error) => {
    await open(change);
    await expect(start()).rejects.toMatchObject(error);
  });
  it.each<[string, (fake: ScriptedBus) => void]>([
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
  ])("times out on a bus %s", async (_, change) => {
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

  it("sends only messages that the daemon accepts, without a systemd behind it", async (context) => {
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
  it("returns null without a control group or without a socket", () => {
    expect(find(["/run/user/1000/bus"])).toBeNull();
    expect(find([dir])).toBeNull();
  });
  it("prefers the session's address, then the runtime folder's bus, then systemd", () => {
    const sockets = ["/tmp/b", "/run/u/bus", "/run/u/systemd/private"];
    const session = { runtimeDir: "/run/u", busAddress: "unix:path=/tmp/b,guid=1" };
    expect(find([dir, ...sockets], session)?.endpoints).toEqual([
      { socketPath: "/tmp/b", direct: false },
      { socketPath: "/run/u/bus", direct: false },
      { socketPath: "/run/u/systemd/private", direct: true },
    ]);
  });
  it("works without variables, as in a cron job", () => {
    expect(find([dir, "/run/user/1000/bus"])).toMatchObject({ endpoints: [{ socketPath: "/run/user/1000/bus" }], lingering: false });
  });
  it("tells whether systemd outlives a logout", () => {
    expect(find([dir, "/run/user/1000/bus", "/var/lib/systemd/linger/me"])?.lingering).toBe(true);
  });
});

it("parses bus addresses", () => {
  expect(parseBusAddress("unix:path=/run/user/1000/bus")).toEqual(["/run/user/1000/bus"]);
  expect(parseBusAddress("tcp:host=x,port=1;unix:abstract=/tmp/dbus-x,guid=1;unix:guid=2,path=/a%20b")).toEqual(["\0/tmp/dbus-x", "/a b"]);
  expect(parseBusAddress("")).toEqual([]);
});
