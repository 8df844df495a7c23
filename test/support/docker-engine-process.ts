import { spawn } from "node:child_process";
import {
  chmodSync,
  closeSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { imageArchive, type TestImage } from "./docker-images.ts";
import { processLives, removeRemains, waitForProcessEnd } from "./docker-remains.ts";

/** A real engine of the test run's own: nothing of it touches the machine's other engines, images or networks. */
export interface TestEngine {
  kind: "docker" | "podman";
  socketPath: string;
  pid: number;
  /** The name of an image that is there, imported on first use. */
  image(name: TestImage): Promise<string>;
  /** Removes every sandbox, ends the engine and removes all it made. */
  stop(): Promise<void>;
}

/** What `start` left in an engine's folder, so that another process can use and stop it. */
export interface EngineRecord {
  kind: "docker" | "podman";
  pid: number;
  cgroupName: string;
}

const START_MS = 30_000;
/** Short: podman takes no runroot of more than 50 characters. */
const foldersPrefix = "caisson-engine-";

/** For tests that kill their engine. */
export async function startDockerEngine(options: { folder?: string } = {}): Promise<TestEngine> {
  const folder = options.folder ?? newEngineFolder();
  const cgroupName = cgroupNameFor(folder);
  // An engine that was killed leaves the pid of a helper that died with it; if it was not reaped, the next engine waits
  // for it in vain.
  rmSync(join(folder, "exec/containerd/containerd.pid"), { force: true });
  // biome-ignore format: one option a line reads best.
  const args = [
    "--data-root", join(folder, "data"),
    "--exec-root", join(folder, "exec"),
    "--pidfile", join(folder, "pid"),
    "-H", `unix://${socketIn(folder)}`,
    "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
    "--exec-opt", "native.cgroupdriver=cgroupfs",
    "--cgroup-parent", `/${cgroupName}`,
    "--containerd-namespace", cgroupName,
    "--containerd-plugins-namespace", `${cgroupName}-plugins`,
  ];
  return startEngine({ kind: "docker", folder, cgroupName, program: "/usr/sbin/dockerd", args });
}

export function newEngineFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), foldersPrefix));
  // Members of the socket's group must be able to come to it.
  chmodSync(folder, 0o711);
  writeFileSync(join(folder, "owner"), String(process.pid));
  return folder;
}

export function cgroupNameFor(folder: string): string {
  const run = process.env.CAISSON_TEST_RUN;
  const own = folder.slice(folder.indexOf(foldersPrefix) + foldersPrefix.length);
  return `caisson-test-${run === undefined ? "" : `${run}-`}${own.replaceAll(/[^A-Za-z0-9]/g, "-")}`;
}

/** Unix socket paths are at most 107 bytes long, so it lies at the top. */
export function socketIn(folder: string): string {
  return join(folder, "engine.sock");
}

export async function startEngine(options: EngineRecordInput): Promise<TestEngine> {
  const { folder, program, args, kind, cgroupName } = options;
  const log = openSync(join(folder, "log"), "w");
  const child = spawn(program, args, {
    detached: true,
    stdio: ["ignore", log, log],
    // podman's monitor leaves an empty file there when a container runs out of memory.
    cwd: folder,
    // The engine may outlive the file that started it.
    env: { ...process.env, TMPDIR: folder, ...options.env },
  });
  closeSync(log);
  const failed = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${program} ended with ${code}:\n${tail(join(folder, "log"))}`)));
  });
  failed.catch(() => {});
  writeFileSync(join(folder, "engine.json"), JSON.stringify({ kind, cgroupName, pid: child.pid ?? 0 } satisfies EngineRecord));
  try {
    await Promise.race([answers(folder), failed]);
  } catch (error) {
    await stopEngine(folder);
    throw error;
  }
  child.unref();
  return attachEngine(folder);
}

interface EngineRecordInput {
  kind: TestEngine["kind"];
  folder: string;
  cgroupName: string;
  program: string;
  args: readonly string[];
  env?: Record<string, string>;
}

/** Ends what lives in an engine's folder, however it came to be there, and removes the folder. */
export async function stopEngine(folder: string): Promise<void> {
  const record = readRecord(folder);
  if (record !== null && processLives(record.pid)) {
    await removeContainers(folder).catch(() => {});
    process.kill(record.pid, "SIGTERM");
    await waitForProcessEnd(record.pid);
  }
  await removeRemains({ folder, cgroupName: record?.cgroupName ?? cgroupNameFor(folder) });
}

/** Engines of test runs that were killed. A folder says whose it is by the pid in its `owner` file. */
export async function sweepEngines(): Promise<void> {
  await sweepEnginesIn(tmpdir());
  // Runs of `scripts/test` have a folder each (see scripts/own-run), beside this one where this is one.
  const runs = process.env.CAISSON_TEST_RUN === undefined ? tmpdir() : dirname(tmpdir());
  for (const name of readdirSync(runs)) {
    const folder = join(runs, name);
    if (!name.startsWith("ct-") || !isOwnerDead(folder)) continue;
    await sweepEnginesIn(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function sweepEnginesIn(place: string): Promise<void> {
  for (const name of readdirSync(place)) {
    const folder = join(place, name);
    if (name.startsWith(foldersPrefix) && isOwnerDead(folder)) await stopSharedEngines(folder);
  }
}

function isOwnerDead(folder: string): boolean {
  const owner = readNumber(join(folder, "owner"));
  return owner !== null && !processLives(owner);
}

export async function stopSharedEngines(folder: string): Promise<void> {
  if (readRecord(folder) !== null) return stopEngine(folder);
  for (const kind of ["docker", "podman"]) if (existsSync(join(folder, kind))) await stopEngine(join(folder, kind));
  rmSync(folder, { recursive: true, force: true });
}

export function attachEngine(folder: string): TestEngine {
  const record = readRecord(folder);
  if (record === null) throw new Error(`no engine in ${folder}`);
  const socketPath = socketIn(folder);
  return {
    kind: record.kind,
    socketPath,
    pid: record.pid,
    image: (name) => withLock(join(folder, `${name}.lock`), () => importImage(socketPath, name)),
    stop: () => stopEngine(folder),
  };
}

async function importImage(socketPath: string, name: TestImage): Promise<string> {
  const reference = `caisson-test:${name}`;
  if ((await call({ socketPath, method: "GET", path: `/images/${reference}/json` })).status === 200) return reference;
  // Podman ignores the `tag` parameter, and Docker takes it from `repo` as well.
  const path = `/images/create?fromSrc=-&repo=${encodeURIComponent(reference)}`;
  const answer = await call({ socketPath, method: "POST", path, bodyFile: imageArchive(name) });
  if (answer.status !== 200) throw new Error(`importing ${reference}: ${answer.status} ${answer.text}`);
  return reference;
}

async function removeContainers(folder: string): Promise<void> {
  const socketPath = socketIn(folder);
  const { text } = await call({ socketPath, method: "GET", path: "/containers/json?all=1" });
  for (const { Id } of JSON.parse(text) as { Id: string }[]) {
    await call({ socketPath, method: "DELETE", path: `/containers/${Id}?force=1&v=1` });
  }
}

async function answers(folder: string): Promise<void> {
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    const answer = await call({ socketPath: socketIn(folder), method: "GET", path: "/_ping" }).catch(() => null);
    if (answer?.status === 200) return;
    await sleep(25);
  }
  throw new Error(`the engine in ${folder} did not answer in ${START_MS} ms:\n${tail(join(folder, "log"))}`);
}

interface Call {
  socketPath: string;
  method: string;
  path: string;
  bodyFile?: string;
}

function call({ socketPath, method, path, bodyFile }: Call): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = bodyFile === undefined ? {} : { "content-type": "application/x-tar" };
    const outgoing = request({ socketPath, method, path: `/v1.41${path}`, headers, agent: false, timeout: 60_000 }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk) => {
        text += chunk;
      });
      incoming.on("end", () => resolve({ status: incoming.statusCode ?? 0, text }));
      incoming.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${method} ${path} took too long`)));
    if (bodyFile === undefined) outgoing.end();
    else createReadStream(bodyFile).pipe(outgoing);
  });
}

/** Test files may run in several processes; the first to make the lock file does the work, a dead holder's lock is taken over. */
export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 2 * START_MS;
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx" });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || Date.now() > deadline) throw error;
      const holder = readNumber(path);
      if (holder !== null && !processLives(holder)) rmSync(path, { force: true });
      else await sleep(50);
    }
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

export function readRecord(folder: string): EngineRecord | null {
  try {
    return JSON.parse(readFileSync(join(folder, "engine.json"), "utf8")) as EngineRecord;
  } catch {
    return null;
  }
}

function readNumber(path: string): number | null {
  try {
    const number = Number(readFileSync(path, "latin1"));
    return Number.isInteger(number) && number > 0 ? number : null;
  } catch {
    return null;
  }
}

function tail(path: string): string {
  // An engine that was stopped took its log with it.
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(-15).join("\n") : "";
}
