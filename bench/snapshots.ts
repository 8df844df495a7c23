import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../src/sandbox/run-command.ts";
import type { Runtime } from "../src/sandbox/runtime.ts";
import type { OwnedSandbox } from "../src/sandbox/sandbox.ts";
import { mountBtrfs } from "../test/support/small-disk.ts";
import { summarise, timeEach } from "./measure.ts";
import { benchMemoryForks } from "./memory-forks.ts";
import { runPeer } from "./peers.ts";
import { configOf, type Place } from "./place.ts";
import { benchPooledRuns } from "./pooled-runs.ts";
import type { Figures, Row, Target } from "./report.ts";
import { benchTemplateBuilds } from "./template-builds.ts";

const GROUP = "a machine with 20,000 files, 155 MB, written by the agent";
const FILES = 20_000;
const FILE_BYTES = 7_750;
const BYTES_MAX = 8 * 1024 ** 3;
/** Writes files in folders of 100, with content that differs. */
const WRITE =
  "import os,sys\nfor n in range(int(sys.argv[1])):\n d=f'd{n//100}'\n os.makedirs(d,exist_ok=True)\n open(f'{d}/f{n}','wb').write((b'%9d'%n)*(int(sys.argv[2])//9))";

/** Measures points, forks and restores beside `cp -a` and `docker commit`. */
export async function benchSnapshots(place: Place): Promise<Figures> {
  const rows: Row[] = [];
  const folder = join(place.dir, "project");
  await mkdir(folder);
  const delta = await measureMachine(place, { on: "delta", dir: place.dir, folder, rows });
  const disk = mountBtrfs();
  let btrfs: MachineFigures;
  try {
    btrfs = await measureMachine(place, { on: "btrfs", dir: disk.folder, folder, rows });
  } finally {
    disk.remove();
  }
  const dockerMs = await commitAndRun(place);
  rows.push({ group: GROUP, name: "`docker commit` and `docker run`", value: dockerMs.p50, unit: "ms", n: dockerMs.n });
  const builds = await benchTemplateBuilds(place);
  const forkMs = Math.min(delta.forkMs, btrfs.forkMs);
  const best = btrfs.forkMs < delta.forkMs ? btrfs : delta;
  const pooled = await benchPooledRuns();
  const memory = await benchMemoryForks(place);
  return {
    rows: [...rows, ...builds.rows, ...pooled.rows, ...(memory?.rows ?? [])],
    targets: [
      target("fork of a live sandbox: faster than `cp -a`", delta.copyMs / forkMs, { atLeast: 100 }),
      target("fork of a live sandbox: faster than `docker commit` and `run`", dockerMs.p50 / forkMs, { atLeast: 20 }),
      target("fork of 100,000 files against 1,000", best.sizes.large / best.sizes.small, { atMost: 2 }),
      target("point after a step that changed 3 files, delta", delta.changedMs, { atMost: 60 }, "ms"),
      target("point after a step that changed 3 files, btrfs", btrfs.changedMs, { atMost: 10 }, "ms"),
      target("16 forks beyond what they change", Math.max(delta.beyondMiB, btrfs.beyondMiB), { atMost: 5 }, "MiB"),
      target("restore over 100 steps against one, delta", delta.restores.many / delta.restores.one, { atMost: 1.5 }),
      target("restore over 100 steps against one, btrfs", btrfs.restores.many / btrfs.restores.one, { atMost: 1.5 }),
      ...builds.targets,
      ...pooled.targets,
      ...(memory?.targets ?? []),
    ],
  };
}

function target(name: string, measured: number, bound: Pick<Target, "atLeast" | "atMost">, unit: Target["unit"] = "×"): Target {
  return { name, measured, unit, ...bound };
}

interface MachineFigures {
  changedMs: number;
  forkMs: number;
  copyMs: number;
  beyondMiB: number;
  restores: { one: number; many: number };
  sizes: { small: number; large: number };
}

/** Measures one way of storing points. `dir` is a folder on a file system that has it. */
async function measureMachine(
  place: Place,
  { on, dir, folder, rows }: { on: "delta" | "btrfs"; dir: string; folder: string; rows: Row[] },
): Promise<MachineFigures> {
  const add = (name: string, ms: number, more: Partial<Row> = {}) => {
    rows.push({ group: `${GROUP}, ${on}`, name, value: ms, unit: "ms", n: 1, ...more });
  };
  const stateDir = join(dir, `state-${on}`);
  await mkdir(stateDir, { mode: 0o700 });
  const runtime = place.oci({ ociRuntime: "crun", stateDir });
  const machine = await openMachine(runtime, dir, { name: "main", folder });
  await machine.write(FILES, FILE_BYTES);
  add("the first point, which stores everything", await timed(() => machine.take()));
  const idle = await timeEach({ n: 20, once: () => machine.take() });
  add("a point after a step that changed nothing", idle.p50, { n: idle.n, p95: idle.p95 });
  const changed = await afterEach(
    20,
    (n) => machine.sh(`for i in 1 2 3; do echo ${n} > d$i/f${n}; done`),
    () => machine.take(),
  );
  add("a point after a step that changed 3 files", changed.p50, { n: changed.n, p95: changed.p95 });
  const fork = await afterEach(
    10,
    (n) => machine.sh(`echo ${n} > d9/f`),
    async () => await firstCommand(await machine.sandbox.fork()),
  );
  add("a fork of the live sandbox to its first command, cold", fork.p50, { n: fork.n, p95: fork.p95 });
  const pooledFork = await timePooledForks(place, { stateDir, machine });
  add("a fork of the live sandbox to its first command, from the pool", pooledFork.p50, { n: pooledFork.n, p95: pooledFork.p95 });
  const upper = on === "btrfs" ? join(machine.layer, "live", "upper") : join(machine.layer, "upper");
  const copy = await timeEach({ n: 3, once: (n) => runPeer(["cp", "-a", "--reflink=never", upper, join(place.dir, `copy-${on}-${n}`)]) });
  add("`cp -a` of its files", copy.p50, { n: copy.n });
  const beyondMiB = (await bytesOfForks(machine, runtime, { dir, on })) / 2 ** 20;
  rows.push({ group: `${GROUP}, ${on}`, name: "16 forks of one session, beyond what they change", value: beyondMiB, unit: "MiB", n: 1 });
  await machine.close();
  const restores = await timeRestores(runtime, dir, folder);
  add("restore over 1 step", restores.one);
  add("restore over 100 steps", restores.many);
  const sizes = await forksBySize(runtime, dir, folder);
  add("a fork of a machine with 1,000 files", sizes.small);
  add("a fork of a machine with 100,000 files", sizes.large);
  await runtime[Symbol.asyncDispose]();
  return { changedMs: changed.p50, forkMs: pooledFork.p50, copyMs: copy.p50, beyondMiB, restores, sizes };
}

interface BenchMachine {
  layer: string;
  sandbox: OwnedSandbox;
  sh(script: string): Promise<void>;
  write(files: number, bytes: number): Promise<void>;
  take(): Promise<string | null>;
  close(): Promise<void>;
}

async function openMachine(runtime: Runtime, dir: string, { name, folder }: { name: string; folder: string }): Promise<BenchMachine> {
  const layer = join(dir, `layer-${name}`);
  await mkdir(layer, { mode: 0o755 });
  const sandbox = await runtime.create(configOf({ workspace: { kind: "folder", path: folder, layer } }));
  const run = async (argv: [string, ...string[]]) => {
    const { ended } = await runCommand(sandbox, { argv });
    if (ended.kind !== "exited" || ended.exitCode !== 0) throw new Error(`${argv.join(" ")} failed`);
  };
  return {
    layer,
    sandbox,
    sh: (script) => run(["sh", "-c", script]),
    write: (files, bytes) => run(["python3", "-c", WRITE, String(files), String(bytes)]),
    take: async () => (await points(runtime).take(layer, { sandbox: sandbox.id, bytesMax: BYTES_MAX })).id,
    async close() {
      await sandbox.destroy();
      await runtime.removeLayer?.(layer);
    },
  };
}

function points(runtime: Runtime) {
  if (runtime.points === undefined) throw new Error(`${runtime.name} has no points`);
  return runtime.points;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function afterEach(n: number, before: (n: number) => Promise<unknown>, work: () => Promise<unknown>) {
  const times: number[] = [];
  for (let index = -2; index < n; index++) {
    await before(index);
    const ms = await timed(work);
    if (index >= 0) times.push(ms);
  }
  return summarise(times);
}

async function firstCommand(sandbox: OwnedSandbox): Promise<void> {
  await runCommand(sandbox, { argv: ["echo", "hi"] });
  // Removed while the next round prepares, as a user's would be later.
  await sandbox.destroy();
}

async function commitAndRun({ docker, image }: Place) {
  const id = (await runPeer([...docker, "run", "-d", "--network", "none", image, "sleep", "100000"])).trim();
  const write = `n=0; while [ $n -lt ${FILES} ]; do d=d$((n/100)); mkdir -p /data/$d; head -c ${FILE_BYTES} /bin/busybox > /data/$d/f$n; n=$((n+1)); done`;
  await runPeer([...docker, "exec", id, "sh", "-c", write]);
  const times = await timeEach({
    n: 3,
    once: async (n) => {
      await runPeer([...docker, "commit", id, `fork-${n + 10}`]);
      await runPeer([...docker, "run", "--rm", "--network", "none", `fork-${n + 10}`, "echo", "hi"]);
    },
  });
  await runPeer([...docker, "rm", "-f", id]);
  return times;
}

/** Measures forks on a runtime that keeps sandboxes ready, as a station does. */
async function timePooledForks(place: Place, { stateDir, machine }: { stateDir: string; machine: BenchMachine }) {
  const runtime = place.oci({ ociRuntime: "crun", stateDir, pool: { sandboxes: 2 } });
  const sandbox = await runtime.open(machine.sandbox.id);
  const times = await afterEach(
    10,
    async (n) => {
      await machine.sh(`echo ${n} > d9/g`);
      await runtime.warm();
    },
    async () => await firstCommand(await sandbox.fork()),
  );
  await sandbox.detach();
  await runtime[Symbol.asyncDispose]();
  return times;
}

/** Returns what forks of a session take on disk, each having changed one file. */
async function bytesOfForks(machine: BenchMachine, runtime: Runtime, { dir, on }: { dir: string; on: "delta" | "btrfs" }): Promise<number> {
  const point = await machine.take();
  if (point === null) throw new Error("there is no point");
  const layers = Array.from({ length: 16 }, (_, n) => join(dir, `fork-${n}`));
  let bytes = 0;
  for (const layer of layers) {
    await mkdir(layer);
    await points(runtime).fork(machine.layer, layer, { point, bytesMax: BYTES_MAX });
    if (on === "delta") bytes += Number((await runPeer(["du", "-s", "--block-size=1", layer])).split("\t")[0]);
  }
  // Forks share blocks there, which `du` counts for each of them.
  if (on === "btrfs") for (const layer of layers) bytes += await exclusiveBytes(layer);
  for (const layer of layers) await runtime.removeLayer?.(layer);
  return bytes;
}

async function exclusiveBytes(path: string): Promise<number> {
  const lines = (await runPeer(["btrfs", "filesystem", "du", "--summarize", "--raw", path])).trim().split("\n");
  return Number(lines.at(-1)?.trim().split(/\s+/)[1]);
}

async function timeRestores(runtime: Runtime, dir: string, folder: string): Promise<{ one: number; many: number }> {
  const machine = await openMachine(runtime, dir, { name: "steps", folder });
  await machine.write(2_000, FILE_BYTES);
  const taken: (string | null)[] = [await machine.take()];
  for (let step = 1; step <= 101; step++) {
    await machine.sh(`for i in 1 2 3; do echo ${step} > d$i/f${step}; done`);
    taken.push(await machine.take());
  }
  await machine.sandbox.destroy();
  const restore = async (at: number) => {
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      await points(runtime).restore(machine.layer, taken.at(-1) ?? null);
      times.push(
        await timed(async () => {
          await points(runtime).restore(machine.layer, taken[at] ?? null);
          await using sandbox = await runtime.create(configOf({ workspace: { kind: "folder", path: folder, layer: machine.layer } }));
          await runCommand(sandbox, { argv: ["cat", "d1/f1"] });
        }),
      );
    }
    return summarise(times).p50;
  };
  const result = { one: await restore(100), many: await restore(1) };
  await runtime.removeLayer?.(machine.layer);
  return result;
}

async function forksBySize(runtime: Runtime, dir: string, folder: string): Promise<{ small: number; large: number }> {
  const measure = async (name: string, files: number) => {
    const machine = await openMachine(runtime, dir, { name, folder });
    await machine.write(files, 200);
    await machine.take();
    const { p50 } = await afterEach(
      7,
      (n) => machine.sh(`echo ${n} > d1/f`),
      async () => await firstCommand(await machine.sandbox.fork()),
    );
    await machine.close();
    return p50;
  };
  return { small: await measure("small", 1_000), large: await measure("large", 100_000) };
}
