import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type BusReply, jobRemoved, jobStarted, nothing, ScriptedBus } from "../../../../test/support/scripted-bus.ts";
import { type CgroupFolder, removeCgroups } from "./cgroup.ts";
import { enterScope } from "./cgroup-scope.ts";

const PID = 4242;
let base: string;
let bus: ScriptedBus;
let folder: CgroupFolder;
const enter = () =>
  enterScope({
    manager: { endpoints: [{ socketPath: join(base, "bus"), direct: false }], dir: base, lingering: false },
    folder,
    pid: PID,
    uid: process.getuid?.() ?? 0,
  });
const read = (name: string) => readFileSync(join(folder.dir, name), "latin1");

/** Creates ordinary files in place of the kernel's. */
function makeScope(content: { processes: string; controllers: string }): void {
  mkdirSync(folder.dir);
  writeFileSync(join(folder.dir, "cgroup.procs"), content.processes);
  writeFileSync(join(folder.dir, "cgroup.controllers"), content.controllers);
  writeFileSync(join(folder.dir, "cgroup.subtree_control"), "");
}

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = { version: 2, controllers: ["memory", "pids"], dir: join(base, "caisson-0a1b-sb_x.scope"), scope: true };
  bus = new ScriptedBus(join(base, "bus"));
  await bus.listen();
});
afterEach(async () => {
  await bus.close();
  rmSync(base, { recursive: true, force: true });
});

describe("enterScope", () => {
  it("requests a scope, moves the process into the guest's group, enables limits", async () => {
    makeScope({ processes: `${PID}\n`, controllers: "cpu memory pids\n" });
    await enter();
    expect(bus.calls.at(-1)?.body[0]).toBe(basename(folder.dir));
    expect([read("guest/cgroup.procs"), read("cgroup.subtree_control")]).toEqual([String(PID), "+memory +pids"]);
    expect(existsSync(join(folder.dir, "work"))).toBe(true);
  });
  it("waits for an earlier scope of that name to disappear", async () => {
    makeScope({ processes: `${PID}\n`, controllers: "memory pids\n" });
    const conflict: BusReply = { kind: "error", signature: "s", body: ["taken"], errorName: "org.freedesktop.systemd1.UnitExists" };
    let tries = 0;
    bus.answers = ({ member }) => {
      if (member !== "StartTransientUnit") return [nothing];
      return tries++ === 0 ? [conflict] : [jobStarted, jobRemoved("x", "done")];
    };
    await enter();
    expect(tries).toBe(2);
  });
  it.each([
    ["lacks a controller", { processes: `${PID}\n`, controllers: "memory\n" }, /has no pids/],
    ["holds another process", { processes: "1\n", controllers: "memory pids\n" }, /process 4242 is not in/],
  ])("refuses a scope that %s, and divides nothing", async (_, content, message) => {
    makeScope(content);
    await expect(enter()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(message),
      details: { step: "scope" },
    });
    expect(existsSync(join(folder.dir, "guest"))).toBe(false);
  });
  it("passes on systemd's message", async () => {
    bus.answers = () => [{ kind: "error", signature: "s", body: ["no room"], errorName: "org.test.Full" }];
    await expect(enter()).rejects.toMatchObject({
      message: expect.stringMatching(/created no control group: no room/),
      details: { step: "scope" },
    });
  });
});

it("leaves the scope itself to systemd, and removes only what is below it", async () => {
  mkdirSync(join(folder.dir, "guest"), { recursive: true });
  mkdirSync(join(folder.dir, "work"));
  const emptied = new Promise<void>((resolve) => {
    const watcher = watch(folder.dir, () => {
      if (existsSync(join(folder.dir, "work"))) return;
      watcher.close();
      resolve();
    });
  });
  const removing = removeCgroups([folder]);
  await emptied;
  expect(existsSync(folder.dir)).toBe(true);
  rmSync(folder.dir, { recursive: true });
  await removing;
});
