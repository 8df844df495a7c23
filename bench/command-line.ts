import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createSqliteLog } from "../src/log/sqlite/log.ts";
import { appendLongRun, appendRuns } from "./listing.ts";
import { type Sample, timeTogether } from "./measure.ts";
import { runPeer, startPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import type { Row, Target } from "./report.ts";

/** A folder after some months: most runs have ended. */
const RUNS = { count: 2000, events: 200, open: 20 };
const LONG_RUN = { run: "run_benchbenchbe", events: 100_000 };

/**
 * Measures whole processes, as a person at a shell waits for them. Compared commands take turns, so a busy minute
 * affects all of them.
 */
export async function benchCommandLine(place: Place): Promise<{ rows: Row[]; targets: Target[] }> {
  const home = join(place.dir, "home");
  const argvOf = (stateDir: string, args: readonly string[]) => [
    "env",
    "-C",
    "/usr/share/doc",
    `CAISSON_HOME=${stateDir}`,
    join(place.root, "caisson"),
    ...args,
  ];
  const caisson = (stateDir: string, args: readonly string[]) => () => runPeer(argvOf(stateDir, args));
  const node = () => runPeer([join(place.root, "node_modules", "node", "bin", "node"), "-e", "0"]);
  // A serving station has what `exec` needs ready; only commands with its state folder find it.
  const served = join(place.dir, "home-with-a-station");
  const detached = caisson(served, ["up", "--detach", "--port", "0", "--no-token"]);
  const up = () => startPeer(argvOf(served, ["up", "--json", "--port", "0", "--no-token"]));
  const down = caisson(served, ["down"]);
  await using _station = { [Symbol.asyncDispose]: async () => void (await down()) };
  await detached();
  const starts = await timeTogether({
    n: 15,
    warmup: 3,
    each: {
      docker: () => runPeer([...place.docker, "run", "--rm", "--network", "none", place.image, "true"]),
      exec: caisson(home, ["exec", "--no-workspace", "--", "true"]),
      through: caisson(served, ["exec", "--no-workspace", "--", "true"]),
      node,
      version: caisson(home, ["--version"]),
    },
  });
  const ups = await timeTogether({ n: 7, warmup: 1, before: down, each: { up, detached } });
  const full = join(place.dir, "home-with-runs");
  await fill(full);
  const lists = await timeTogether({ n: 15, warmup: 2, each: { empty: caisson(home, ["ps"]), full: caisson(full, ["ps"]) } });
  const long = join(place.dir, "home-with-a-long-run");
  const exported = await fillLong(long, (args) => caisson(long, args)());
  const replays = await timeTogether({
    n: 5,
    warmup: 1,
    each: {
      attach: caisson(long, ["attach", LONG_RUN.run]),
      whole: caisson(long, ["attach", "--all", LONG_RUN.run]),
      json: caisson(long, ["logs", "--json", LONG_RUN.run]),
      jq: () => runPeer(["jq", "-c", ".", exported]),
    },
  });
  const row = (name: string, sample: Sample): Row => ({
    group: "whole process",
    name,
    value: sample.p50,
    unit: "ms",
    p95: sample.p95,
    n: sample.n,
  });
  const ratio = (name: string, [of, over]: readonly [Sample, Sample], bound: { atLeast: number } | { atMost: number }): Target => ({
    name,
    measured: of.p50 / over.p50,
    unit: "×",
    ...bound,
  });
  return {
    rows: [
      row("`docker run --rm IMAGE true`", starts.docker),
      row("`./caisson exec -- true`", starts.exec),
      row("`./caisson exec -- true`, through a station", starts.through),
      row("`./caisson up`, until it prints its address", ups.up),
      row("`./caisson up --detach`, until it returns", ups.detached),
      row("Node itself, doing nothing", starts.node),
      row("`./caisson --version`", starts.version),
      row("`./caisson ps`, no runs", lists.empty),
      row("`./caisson ps`, 2,000 runs of 200 events, 20 of them open", lists.full),
      row("`./caisson attach`, a finished run of 100,000 events", replays.attach),
      row("`./caisson attach --all`, the same", replays.whole),
      row("`./caisson logs --json`, the same", replays.json),
      row("`jq -c .` over the same events as JSON lines", replays.jq),
    ],
    targets: [
      ratio("`./caisson exec -- true`: faster than `docker run --rm`", [starts.docker, starts.exec], { atLeast: 2.5 }),
      ratio("`./caisson exec -- true` with a station: faster than `docker run --rm`", [starts.docker, starts.through], { atLeast: 3 }),
      { name: "`./caisson up`, until it listens", measured: ups.up.p50, unit: "ms", atMost: 500 },
      ratio("`./caisson --version` over Node doing nothing", [starts.version, starts.node], { atMost: 1.5 }),
      ratio("`./caisson ps` with 2,000 runs over none", [lists.full, lists.empty], { atMost: 1.5 }),
    ],
  };
}

/** Writes a file with the run's events as `logs --json` prints them, and returns its path. */
async function fillLong(stateDir: string, caisson: (args: readonly string[]) => Promise<string>): Promise<string> {
  await mkdir(stateDir, { recursive: true });
  {
    await using log = createSqliteLog({ path: join(stateDir, "log.db") });
    await appendLongRun(log, LONG_RUN.run, LONG_RUN.events);
  }
  const path = join(stateDir, "events.jsonl");
  await writeFile(path, await caisson(["logs", "--json", LONG_RUN.run]));
  return path;
}

async function fill(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true });
  await using log = createSqliteLog({ path: join(stateDir, "log.db") });
  await appendRuns(log, RUNS);
}
