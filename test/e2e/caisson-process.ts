import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { hasSandboxes } from "../support/runs-cli.ts";
import { createModeStations, isKeptReady, type StationMode, stationMode } from "../support/station-modes.ts";

export const root = join(import.meta.dirname, "..", "..");
export const launcher = join(root, "caisson");

export interface Finished {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: Buffer;
  stderr: string;
  /** stdout as text. */
  text: string;
}

export interface Started {
  child: ChildProcess;
  finished: Promise<Finished>;
}

interface RunOptions {
  input?: string | Uint8Array;
  cwd?: string;
  env?: Record<string, string>;
}

/** Gives each test file a separate home and a current folder, and removes both at the end. */
export function useCaisson({ mode = stationMode }: { mode?: StationMode } = {}) {
  let outer = "";
  let base = "";
  const stations = createModeStations(mode);
  let underWay = 0;
  beforeAll(async () => {
    outer = await mkdtemp(join(tmpdir(), "caisson-test-"));
    base = join(outer, "work");
    await mkdir(base);
  });
  afterAll(async () => {
    if (hasSandboxes(home())) await run(["sandbox", "rm", "--all", "--yes"]);
    stations.endAll();
    await rm(outer, { recursive: true, force: true });
  });
  const home = () => join(outer, "home");

  /** Returns the environment with which a command finds its state folder and, in a station mode, its station. */
  function environment(own: Record<string, string> = {}): NodeJS.ProcessEnv {
    const env = { ...process.env, CAISSON_HOME: home(), ...own };
    const isIdle = underWay === 0;
    return { ...env, ...stations.variablesFor({ program: [launcher], home: env.CAISSON_HOME, cwd: base, env, own, isIdle }) };
  }
  function start(argv: readonly string[], options: RunOptions = {}): Started {
    const child = spawn(launcher, argv, {
      cwd: options.cwd ?? base,
      env: environment(options.env),
      stdio: ["pipe", "pipe", "pipe"],
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    // A command may end without reading its input.
    child.stdin.on("error", () => {});
    if (options.input !== undefined) child.stdin.end(options.input);
    underWay += 1;
    const finished = once(child, "close").then(([code, signal]) => {
      underWay -= 1;
      const output = Buffer.concat(stdout);
      return { code, signal, stdout: output, stderr: withoutSetup(Buffer.concat(stderr).toString()), text: output.toString() } as Finished;
    });
    return { child, finished };
  }
  async function run(argv: readonly string[], options: RunOptions = {}): Promise<Finished> {
    return start(argv, { input: "", ...options }).finished;
  }
  /** Returns the ids of the sandboxes in our home, except those that a station keeps ready. */
  const sandboxes = (): string[] => {
    const folder = join(home(), "sandboxes");
    return existsSync(folder) ? readdirSync(folder).filter((id) => !isKeptReady(join(folder, id), mode)) : [];
  };
  return { start, run, environment, sandboxes, home, base: () => base };
}

/** Removes the output of the launcher's setup, which runs again when sources have changed. */
function withoutSetup(text: string): string {
  return text.replaceAll(/^setup: .*\n/gm, "");
}

/** Fails a test that leaves a sandbox behind. */
export function expectNothingLeftAfterEach(sandboxes: () => string[]): void {
  afterEach(async () => {
    if (stationMode === "none") return expect(sandboxes(), "folders of sandboxes").toEqual([]);
    // A sandbox that a station prepares in advance has a folder before it can be recognized as one.
    await expect.poll(sandboxes, { message: "folders of sandboxes", timeout: 30_000 }).toEqual([]);
  });
}

/** Returns the traces of a sandbox on this machine: processes, mounts and cgroups. */
export function tracesOf(id: string): string[] {
  if (!/^sb_[a-z2-7]{12}$/.test(id)) throw new Error(`${id} is not a sandbox id`);
  const traces: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const read = (name: string) => {
      try {
        return readFileSync(`/proc/${pid}/${name}`, "latin1").replaceAll("\0", " ");
      } catch {
        return "";
      }
    };
    // Skips dead processes that their parent (here: the machine's process 1) has not reaped yet.
    if (/\) [ZX] /.test(read("stat"))) continue;
    if (read("cmdline").includes(id) || read("cgroup").includes(id)) traces.push(`process ${pid}: ${read("cmdline")}`);
  }
  if (readFileSync("/proc/self/mountinfo", "utf8").includes(id)) traces.push("a mount");
  const cgroups = readdirSync("/sys/fs/cgroup").flatMap((name) => {
    const folder = join("/sys/fs/cgroup", name);
    return [folder, join(folder, "caisson")];
  });
  for (const folder of cgroups) {
    try {
      for (const name of readdirSync(folder)) if (name.includes(id)) traces.push(`cgroup ${join(folder, name)}`);
    } catch {
      // A file, or already removed.
    }
  }
  return traces;
}

/** Resolves when a condition of the outside world holds. Polls, because other processes send no events. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 45_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
