import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Config } from "../contract/config/config.ts";
import { PROTOCOL } from "../contract/protocol.ts";
import { stationFolder } from "../contract/station-note.ts";
import { isStopped, processStat } from "../lib/process-stat.ts";
import { readEnvironment } from "./environment.ts";
import { stationAtSocket } from "./remote.ts";
import { findOwnStation, settingsText } from "./target.ts";

let stateDir = "";
const children: ChildProcess[] = [];
const servers: Server[] = [];
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "caisson-test-target-"));
  mkdirSync(stationFolder(stateDir).folder);
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) server.close();
  rmSync(stateDir, { recursive: true, force: true });
});

const own = () => ({ stateDir, version: "1", settings: "same" });

/** Starts a process that only waits. */
async function process(): Promise<ChildProcess & { pid: number }> {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  children.push(child);
  await once(child, "spawn");
  return child as ChildProcess & { pid: number };
}

function note(over: { pid?: number; version?: string; protocol?: number; settings?: string } = {}): void {
  const whole = { pid: 1, version: "1", protocol: PROTOCOL, settings: "same", ...over };
  writeFileSync(stationFolder(stateDir).notePath, JSON.stringify(whole));
}

/** Accepts connections but never answers, as the kernel does for a stopped process. */
async function listen(): Promise<void> {
  const server = createServer(() => {}).listen(stationFolder(stateDir).socketPath);
  servers.push(server);
  await once(server, "listening");
}

async function stop(child: ChildProcess & { pid: number }): Promise<void> {
  child.kill("SIGSTOP");
  await expect.poll(() => isStopped(processStat(child.pid)), { timeout: 60_000 }).toBe(true);
}

describe("finding this state folder's station", () => {
  test("requires a listener of the same version, protocol and configuration", async () => {
    expect(await findOwnStation(own())).toEqual({ kind: "here" });
    await listen();
    expect(await findOwnStation(own())).toEqual({ kind: "here" });
    note();
    expect(await findOwnStation(own())).toMatchObject({ kind: "socket", pid: 1 });
    note({ version: "2" });
    expect(await findOwnStation(own())).toEqual({ kind: "here", unused: "the station 1 has version 2, but this program has 1" });
    note({ protocol: PROTOCOL + 1 });
    expect(await findOwnStation(own())).toMatchObject({ kind: "here", unused: expect.stringContaining("version") });
    note({ settings: "other" });
    expect(await findOwnStation(own())).toEqual({ kind: "here", unused: "the station 1 uses another configuration" });
  });

  test("ignores the files of a killed station, and a broken note", async () => {
    note();
    const { socketPath, notePath } = stationFolder(stateDir);
    const child = spawn("node", ["-e", `require("net").createServer().listen(${JSON.stringify(socketPath)}, () => console.log("up"))`]);
    children.push(child);
    await once(child.stdout, "data");
    expect(await findOwnStation(own())).toMatchObject({ kind: "socket" });
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await findOwnStation(own())).toEqual({ kind: "here" });
    rmSync(socketPath);
    writeFileSync(socketPath, "");
    expect(await findOwnStation(own())).toEqual({ kind: "here" });
    rmSync(socketPath);
    await listen();
    writeFileSync(notePath, '{"pid":1');
    expect(await findOwnStation(own())).toEqual({ kind: "here" });
  });

  test("waits a moment for a stopped station, then reports it with a hint", async () => {
    await listen();
    const child = await process();
    note({ pid: child.pid });
    await stop(child);
    await expect(findOwnStation(own())).rejects.toMatchObject({
      code: "unavailable",
      message: `the station does not answer: process ${child.pid} is stopped`,
      hint: expect.stringMatching(/kill -CONT \d+.*--no-station/),
    });
    const looking = findOwnStation(own());
    child.kill("SIGCONT");
    expect(await looking).toMatchObject({ kind: "socket" });
  });

  test("fails waiting requests and sockets when the station is stopped", async () => {
    await listen();
    const child = await process();
    const { socketPath } = stationFolder(stateDir);
    const station = stationAtSocket(socketPath, child.pid);
    const requests = [station.runs.list(), station.sandboxes.hold("sb_aaaaaaaaaaaa")];
    const failed = Promise.allSettled(requests);
    await stop(child);
    for (const each of await failed) {
      expect(each).toMatchObject({ status: "rejected", reason: { code: "unavailable", message: expect.stringContaining("is stopped") } });
    }
  });
});

test("gives a command and a service the same settings, with or without `HOME`", () => {
  const settings = (variables: Record<string, string>) =>
    settingsText(Config.parse({}), {
      environment: readEnvironment({ CAISSON_HOME: "/var/lib/caisson", ...variables }),
      program: ["node", "caisson"],
    });
  expect(settings({ HOME: userInfo().homedir })).toBe(settings({}));
  expect(settings({ XDG_CONFIG_HOME: join(userInfo().homedir, ".config") })).toBe(settings({}));
  expect(settings({ HOME: "/elsewhere" })).not.toBe(settings({}));
  expect(settings({ XDG_CONFIG_HOME: "/elsewhere" })).not.toBe(settings({}));
  expect(settings({ GIT_AUTHOR_NAME: "Ada" })).not.toBe(settings({}));
});
