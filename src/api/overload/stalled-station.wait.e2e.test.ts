import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { socketFetch } from "../../client/socket-fetch.ts";

/** On SIGUSR2 the event loop blocks, as in a write to a frozen disk, until the file is removed. */
const hook = (file: string) =>
  `data:text/javascript,${encodeURIComponent(`
  import { existsSync } from "node:fs";
  process.on("SIGUSR2", () => {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    while (existsSync(${JSON.stringify(file)})) Atomics.wait(cell, 0, 0, 20);
  });`)}`;

let home: string;
/** The guards that a stall was under. Each answers one stall, then exits, and the station starts another. */
let usedGuards: number[];
let station: ChildProcess;
let up: { url: string; token: string; socket: string };

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "caisson-stalled-"));
  usedGuards = [];
  await start("0");
});

const start = async (port: string) => {
  const program = join(import.meta.dirname, "..", "..", "main.ts");
  const env = { ...process.env, CAISSON_HOME: home };
  station = spawn(process.execPath, ["--import", hook(join(home, "frozen")), program, "up", "--port", port, "--json"], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let output = "";
  for await (const line of createInterface({ input: station.stdout as NodeJS.ReadableStream })) {
    output += line;
    if (line === "}" || output.endsWith("}")) break;
  }
  up = JSON.parse(output) as typeof up;
};

/** Returns the running guards that the station has started. */
const guards = async (): Promise<number[]> => {
  const children = await readFile(`/proc/${station.pid}/task/${station.pid}/children`, "utf8");
  const isGuard = async (pid: string) => (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).startsWith("caisson-stall-guard");
  const pids = children.split(" ").filter((pid) => pid !== "");
  const found = await Promise.all(pids.map(async (pid) => ((await isGuard(pid)) ? [Number(pid)] : [])));
  return found.flat();
};
const guardStarted = () => expect.poll(guards).toHaveLength(1);

afterEach(async () => {
  await rm(join(home, "frozen"), { force: true });
  const closed = once(station, "close");
  station.kill("SIGTERM");
  await closed;
  await rm(home, { recursive: true, force: true });
});

const ask = (path: string, token = up.token) =>
  fetch(`${up.url}${path}`, { headers: { authorization: `Bearer ${token}`, connection: "close" }, signal: AbortSignal.timeout(20_000) });

/** Whether the guard answers. A connection that the station accepted just before it stalled stays silent. */
const isStalled = async (): Promise<boolean> => {
  const status = await ask("/v1/status").then(
    (answer) => answer.json(),
    () => ({}),
  );
  return Object.hasOwn(status as object, "stalledMs");
};

/** Blocks the station under a guard that has not answered yet. */
const freeze = async () => {
  await expect.poll(async () => (await guards()).filter((pid) => !usedGuards.includes(pid))).toHaveLength(1);
  usedGuards = await guards();
  await writeFile(join(home, "frozen"), "");
  station.kill("SIGUSR2");
  await expect.poll(isStalled).toBe(true);
};
const thaw = async () => {
  await rm(join(home, "frozen"));
  await expect.poll(isStalled).toBe(false);
  // The guard may have accepted one more connection before it received the station's beat.
  await expect.poll(async () => (await ask("/v1/runs")).status).toBe(200);
};

test("the guard answers status and health while the station waits for its disk", async () => {
  expect((await ask("/v1/status")).status).toBe(200);
  await freeze();
  const stalled = await ask("/v1/status");
  expect(stalled.status).toBe(200);
  expect(await stalled.json()).toMatchObject({ pid: station.pid, stalledMs: expect.any(Number) });
  expect((await ask("/healthz")).status).toBe(200);
  expect((await ask("/readyz")).status).toBe(503);
  const refused = await ask("/v1/runs");
  expect(refused.status).toBe(503);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await ask("/v1/status", "tok_unknown_token")).status).toBe(503);
  const bySocket = await socketFetch(up.socket)("http://station/v1/status", {});
  expect(bySocket.status).toBe(200);
  await thaw();
  // The next stall gets a new guard.
  await freeze();
  await thaw();
});

test("a killed station takes its guard along and frees its port at once", async () => {
  await guardStarted();
  const [guard] = await guards();
  const { port } = new URL(up.url);
  const closed = once(station, "close");
  station.kill("SIGKILL");
  await closed;
  await start(port);
  expect(new URL(up.url).port).toBe(port);
  await expect.poll(() => existsSync(`/proc/${guard}`)).toBe(false);
});

test("a suspended station stays silent", async () => {
  await guardStarted();
  station.kill("SIGSTOP");
  try {
    const silent = fetch(`${up.url}/healthz`, { signal: AbortSignal.timeout(8_000) });
    await expect(silent).rejects.toThrow("timeout");
  } finally {
    station.kill("SIGCONT");
  }
  expect((await ask("/healthz")).status).toBe(200);
});
