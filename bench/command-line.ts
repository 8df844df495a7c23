import { join } from "node:path";
import { timeEach } from "./measure.ts";
import { runPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import type { Row, Target } from "./report.ts";

/** Whole processes, as a person at a shell waits for them. */
export async function benchCommandLine(place: Place): Promise<{ rows: Row[]; targets: Target[] }> {
  const home = join(place.dir, "home");
  const caisson = (args: readonly string[]) =>
    runPeer(["env", "-C", "/usr/share/doc", `CAISSON_HOME=${home}`, join(place.root, "caisson"), ...args]);
  const docker = await timeEach({ n: 10, once: () => runPeer([...place.docker, "run", "--rm", "--network", "none", place.image, "true"]) });
  const exec = await timeEach({ n: 15, warmup: 3, once: () => caisson(["exec", "--no-workspace", "--", "true"]) });
  const node = await timeEach({ n: 10, once: () => runPeer([process.execPath, "-e", ""]) });
  const row = (name: string, sample: { p50: number; p95: number; n: number }): Row => ({
    group: "whole process",
    name,
    value: sample.p50,
    unit: "ms",
    p95: sample.p95,
    n: sample.n,
  });
  return {
    rows: [row("`docker run --rm IMAGE true`", docker), row("`./caisson exec -- true`", exec), row("Node itself, doing nothing", node)],
    targets: [{ name: "`./caisson exec -- true`: faster than `docker run --rm`", measured: docker.p50 / exec.p50, unit: "×", atLeast: 1 }],
  };
}
