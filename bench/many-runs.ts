import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoredEvent } from "../src/log/log.ts";
import { createFakeRuntime } from "../src/runtimes/fake/runtime.ts";
import { openBenchStation } from "./bench-station.ts";
import type { Figures } from "./report.ts";

const runs = 200;
const steps = 20;

/** Measures many runs that one process drives at once. Nothing else runs in it, because its memory counts. */
export async function benchManyRuns(): Promise<Figures> {
  await using dir = await mkdtempDisposable(join(tmpdir(), "caisson-bench-many-"));
  await using station = await openBenchStation(dir.path, () => createFakeRuntime());
  const turns = Array.from({ length: steps - 1 }, (_, at) => ({
    calls: [{ tool: "write", arguments: { path: `f${at}.txt`, content: `${at}` } }],
  }));
  let peakBytes = 0;
  const watching = setInterval(() => {
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
  }, 20);
  const start = performance.now();
  const all = await Promise.all(Array.from({ length: runs }, () => station.run({ turns: [...turns, { say: "Done." }] })));
  const tookMs = performance.now() - start;
  clearInterval(watching);
  const isWhole = (events: readonly StoredEvent[]) => {
    const last = events.at(-1);
    return (
      last?.type === "run.ended" && (last.data as { reason: string }).reason === "done" && events.every((event, at) => event.seq === at + 1)
    );
  };
  const whole = all.filter(isWhole).length;
  return {
    rows: [
      { group: "200 runs of 20 steps at once", name: "until the last one ends", value: tookMs, unit: "ms", n: runs },
      { group: "200 runs of 20 steps at once", name: "steps", value: ((runs * steps) / tookMs) * 1000, unit: "per s", n: runs * steps },
      { group: "200 runs of 20 steps at once", name: "peak memory of the process", value: peakBytes / 2 ** 20, unit: "MiB", n: 1 },
    ],
    targets: [
      { name: "of 200 runs, unfinished or with a gap", measured: runs - whole, unit: "left", atMost: 0 },
      { name: "memory with 200 runs at once", measured: peakBytes / 2 ** 20, unit: "MiB", atMost: 286 },
    ],
  };
}
