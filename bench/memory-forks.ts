import type { OwnedSandbox, Process } from "../src/sandbox/sandbox.ts";
import { summarise } from "./measure.ts";
import { configOf, type Place } from "./place.ts";
import type { Figures } from "./report.ts";

const GROUP = "a sandbox with a Python process of 50 MB that counts";
const ROUNDS = 10;
/** Counts that the process may have printed between the last look at it and the moment when it is frozen. */
const COUNTS_BEFORE_FREEZE = 5;
const COUNTER =
  "import time\nballast = bytearray(50 << 20)\ncount = 0\nwhile True:\n count += 1\n print(count, flush=True)\n time.sleep(0.02)";

/** Measures from the request for a fork with its processes to their next output there. Null without a CRIU that works. */
export async function benchMemoryForks(place: Place): Promise<Figures | null> {
  const criu = process.env.CAISSON_CRIU;
  const runtime = place.oci({ ociRuntime: "crun", ...(criu !== undefined && { criu }) });
  const { findings } = await runtime.probe();
  if (!findings.some(({ level, text }) => level === "ok" && text.startsWith("processes can"))) return null;
  await using sandbox = await runtime.create(configOf());
  const { ref } = await sandbox.spawn({ argv: ["python3", "-c", COUNTER], keepLastOutput: true });
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = await countAfter(sandbox, ref, 0);
    const start = performance.now();
    await using fork = await sandbox.fork({ memory: true });
    await countAfter(fork, ref, before + COUNTS_BEFORE_FREEZE);
    times.push(performance.now() - start);
    await countAfter(sandbox, ref, before + COUNTS_BEFORE_FREEZE);
  }
  const { p50, p95, n } = summarise(times);
  return {
    rows: [{ group: GROUP, name: "a fork with its processes, to their next output", value: p50, p95, n, unit: "ms" }],
    targets: [{ name: "fork with processes, to their next output", measured: p50, unit: "ms", atMost: 1000 }],
  };
}

/** Resolves with the newest count of the process, as soon as it is more than `than`. */
async function countAfter(sandbox: OwnedSandbox, ref: string, than: number): Promise<number> {
  const counter: Process = await sandbox.attach(ref);
  let text = "";
  for await (const { data } of counter.output) {
    text += Buffer.from(data).toString();
    const last = Number(text.split("\n").at(-2) ?? 0);
    if (last <= than) continue;
    counter.detach();
    return last;
  }
  throw new Error("the process ended");
}
