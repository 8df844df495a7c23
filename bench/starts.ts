import { runCommand } from "../src/sandbox/run-command.ts";
import type { Runtime } from "../src/sandbox/runtime.ts";
import { type Sample, timeEach } from "./measure.ts";
import { plainRuntimeArgv, runPeer } from "./peers.ts";
import { configOf, type Place } from "./place.ts";
import type { Row, Target } from "./report.ts";

const GROUP = "create → first output";

/** Measures from nothing to the output of a first command, without the removal afterwards. */
export async function benchStarts(place: Place): Promise<{ rows: Row[]; targets: Target[]; dockerRunMs: number }> {
  const rows: Row[] = [];
  const add = (name: string, sample: Sample) => {
    rows.push({ group: GROUP, name, value: sample.p50, unit: "ms", p95: sample.p95, n: sample.n });
    return sample.p50;
  };
  const dockerRunMs = add(
    "`docker run --rm IMAGE echo`",
    await timeEach({ n: 15, once: () => runPeer([...place.docker, "run", "--rm", "--network", "none", place.image, "echo", "hi"]) }),
  );
  for (const runtime of ["runc", "crun"] as const) {
    const bundle = await place.bundle(runtime, ["echo", "hi"]);
    const once = (index: number) =>
      runPeer(plainRuntimeArgv(runtime, ["--root", `${place.dir}/plain-${runtime}`, "run", "--bundle", bundle, `plain${index}`]));
    add(`plain \`${runtime} run\`, no hardening`, await timeEach({ n: 20, once }));
  }
  add(
    "bubblewrap, no seccomp, no limits",
    await timeEach({ n: 30, once: () => runPeer(["bwrap", "--ro-bind", "/", "/", "--unshare-all", "/bin/echo", "hi"]) }),
  );
  const cold: Record<string, number> = {};
  for (const ociRuntime of ["runc", "crun"] as const) {
    cold[ociRuntime] = add(`**oci** (${ociRuntime}), cold`, await firstOutput(place.oci({ ociRuntime }), 25));
  }
  const pooled = place.oci({ ociRuntime: "crun", pool: { sandboxes: 4, networkNamespaces: 4 } });
  const pooledMs = add("**oci** (crun), from the pool", await firstOutput(pooled, 25, () => pooled.warm()));
  add("**docker** runtime", await firstOutput(place.dockerRuntime, 8));
  const faster = (name: string, ms: number, atLeast: number): Target => ({ name, measured: dockerRunMs / ms, unit: "×", atLeast });
  return {
    rows,
    dockerRunMs,
    targets: [
      faster("cold create, runc: faster than `docker run`", cold.runc ?? Number.NaN, 8),
      faster("cold create, crun: faster than `docker run`", cold.crun ?? Number.NaN, 15),
      faster("pooled create: faster than `docker run`", pooledMs, 60),
    ],
  };
}

async function firstOutput(runtime: Runtime, n: number, before: () => Promise<unknown> = async () => undefined): Promise<Sample> {
  const times: number[] = [];
  for (let index = -2; index < n; index++) {
    await before();
    const start = performance.now();
    const sandbox = await runtime.create(configOf());
    const { stdout } = await runCommand(sandbox, { argv: ["echo", "hi"] });
    if (index >= 0) times.push(performance.now() - start);
    if (stdout !== "hi\n") throw new Error(`${runtime.name} printed ${stdout}`);
    await sandbox.destroy();
  }
  const { summarise } = await import("./measure.ts");
  return summarise(times);
}
