import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { runCommand } from "../src/sandbox/run-command.ts";
import type { OwnedSandbox } from "../src/sandbox/sandbox.ts";
import { runPeer } from "./peers.ts";
import { configOf, type Place } from "./place.ts";
import type { Row, Target } from "./report.ts";

const SANDBOXES = 100;
const CONTAINERS = 20;
const AT_ONCE = 4;

/** Measures many sandboxes at once: what each costs, how fast they come and go, and what remains afterwards. */
export async function benchHeld(place: Place): Promise<{ rows: Row[]; targets: Target[] }> {
  const docker = await holdContainers(place);
  const rows: Row[] = [
    { group: "memory of an idle sandbox", name: `${CONTAINERS} containers of docker`, value: docker.mib, unit: "MiB", n: CONTAINERS },
    { group: "creates", name: "`docker run -d`, four at once", value: docker.perSecond, unit: "per s", n: CONTAINERS },
  ];
  const oci = await holdSandboxes(place);
  rows.splice(1, 0, {
    group: "memory of an idle sandbox",
    name: `${SANDBOXES} sandboxes of **oci** (crun)`,
    value: oci.mib,
    unit: "MiB",
    n: SANDBOXES,
  });
  rows.push(
    { group: "creates", name: "**oci** (crun), four at once", value: oci.perSecond, unit: "per s", n: SANDBOXES },
    { group: "destroy", name: "`docker rm -f`", value: docker.destroyMs, unit: "ms", n: CONTAINERS },
    { group: "destroy", name: "**oci**", value: oci.destroyMs, unit: "ms", n: SANDBOXES },
    { group: "destroy", name: "left after 100: processes, mounts, cgroups, sandboxes", value: oci.left, unit: "left", n: SANDBOXES },
  );
  return {
    rows,
    targets: [
      { name: "oci sandboxes created per second, four at once", measured: oci.perSecond, unit: "per s", atLeast: 120 },
      { name: "idle memory of an oci sandbox", measured: oci.mib, unit: "MiB", atMost: 1.2 },
      { name: "docker's idle memory over ours", measured: docker.mib / oci.mib, unit: "×", atLeast: 3 },
      { name: "left behind by 100 destroyed sandboxes", measured: oci.left, unit: "left", atMost: 0 },
    ],
  };
}

interface Held {
  mib: number;
  perSecond: number;
  destroyMs: number;
}

async function holdContainers(place: Place): Promise<Held> {
  const before = availableMib();
  const start = performance.now();
  const ids = await inParallel(CONTAINERS, async () =>
    (await runPeer([...place.docker, "run", "-d", "--network", "none", place.image, "sleep", "600"])).trim(),
  );
  const perSecond = CONTAINERS / ((performance.now() - start) / 1000);
  const mib = (before - availableMib()) / CONTAINERS;
  const destroying = performance.now();
  for (const id of ids) await runPeer([...place.docker, "rm", "-f", id]);
  return { mib, perSecond, destroyMs: (performance.now() - destroying) / CONTAINERS };
}

async function holdSandboxes(place: Place): Promise<Held & { left: number }> {
  const runtime = place.oci({ ociRuntime: "crun" });
  // The first one pays for what all of them share.
  await (await runtime.create(configOf())).destroy();
  const baseline = traces();
  const before = availableMib();
  const start = performance.now();
  const sandboxes: OwnedSandbox[] = await inParallel(SANDBOXES, () => runtime.create(configOf()));
  const perSecond = SANDBOXES / ((performance.now() - start) / 1000);
  const mib = (before - availableMib()) / SANDBOXES;
  const { ended } = await runCommand(sandboxes.at(-1) as OwnedSandbox, { argv: ["true"] });
  if (ended.kind !== "exited") throw new Error(`the last of ${SANDBOXES} does not work`);
  const destroying = performance.now();
  for (const sandbox of sandboxes) await sandbox.destroy();
  const destroyMs = (performance.now() - destroying) / SANDBOXES;
  const now = traces();
  const left =
    Object.entries(now).reduce((sum, [key, count]) => sum + Math.max(0, count - (baseline[key] ?? 0)), 0) + (await runtime.list()).length;
  return { mib, perSecond, destroyMs, left };
}

/** Counts what sandboxes leave on a host that does not clean up. */
function traces(): Record<string, number> {
  const guests = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && read(`/proc/${name}/cmdline`).includes("/.caisson/guest"),
  ).length;
  const cgroups = readdirSync("/sys/fs/cgroup", { recursive: true }).filter((name) => String(name).includes("sb_")).length;
  return { guests, mounts: read("/proc/self/mounts").split("\n").length, cgroups };
}

/**
 * Returns the free memory of the whole machine, which includes what the kernel and helpers need; without caches, which
 * come and go, and without the growth of this program itself.
 */
function availableMib(): number {
  globalThis.gc?.();
  execFileSync("sync");
  writeFileSync("/proc/sys/vm/drop_caches", "3");
  const freeKib = Number(/MemFree:\s+(\d+)/.exec(read("/proc/meminfo"))?.[1]);
  return freeKib / 1024 + process.memoryUsage.rss() / 2 ** 20;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

async function inParallel<Result>(count: number, once: () => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let started = 0;
  const worker = async () => {
    while (started < count) {
      started += 1;
      results.push(await once());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
