import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import { CaissonError } from "../../src/contract/error/error.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { type Going, type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const RUNS = 3;

/** The work of one run. Each command appends a word, so a lost or repeated command shows. */
const script = {
  turns: [
    { calls: [{ tool: "bash", arguments: { command: "echo one >> counter" } }] },
    { calls: [{ tool: "bash", arguments: { command: "sleep 0.3; echo two >> counter" } }] },
    { say: "Counted." },
  ],
};

interface Served {
  going: Going;
  client: Client;
}

async function serve(home: string, crashAt?: string): Promise<Served> {
  const env = crashAt === undefined ? {} : { CAISSON_CRASH_AT: crashAt };
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home, env });
  // A station that dies before it listens prints nothing.
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

/** Creates a home whose station drives two runs at a time, so others wait. */
async function newHome(name: string): Promise<string> {
  const home = join(cli.base(), `home-${name.replaceAll(/[^a-z0-9]/g, "-")}`);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ station: { runsMax: 2, runsPerOwnerMax: 2 }, runtime: "oci" }));
  return home;
}

/**
 * Starts runs until the station dies or all are started. Returns those that the station acknowledged. A client would
 * try for half a minute to reach a dead station, but here no process restarts it.
 */
async function startRuns({ client, going }: Served, model: string): Promise<string[]> {
  const started: string[] = [];
  const died = new AbortController();
  void going.ended.then(() => died.abort());
  for (let count = 0; count < RUNS; count++) {
    const run = await client.runs.start({ task: "count", model }, { signal: died.signal }).catch((error: unknown) => {
      if (died.signal.aborted) return null;
      if (error instanceof CaissonError && ["unavailable", "lost"].includes(error.code)) return null;
      if (error instanceof CaissonError) throw error;
      return null;
    });
    if (run === null) break;
    started.push(run.run);
  }
  return started;
}

async function eventsIn(home: string, run: string): Promise<LoggedEvent[]> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  return (await log.read(`run/${run}`, { limit: 10_000 })) as unknown as LoggedEvent[];
}

async function runsIn(home: string): Promise<string[]> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  return (await log.streams({ prefix: "run/" })).map(({ stream }) => stream.slice("run/".length));
}

async function untilEnded({ client }: Served, run: string): Promise<void> {
  for await (const _ of client.runs.events(run, { follow: true, signal: AbortSignal.timeout(60_000) }));
}

/** Kills one station after the other at these points; the last one must finish every run. Returns the problems. */
async function crashAt(points: readonly string[], model: string): Promise<string[]> {
  const problems: string[] = [];
  const home = await newHome(points.join("-then-"));
  let answered: string[] = [];
  for (const [at, point] of points.entries()) {
    const station = await serve(home, point);
    if (at === 0) answered = await startRuns(station, model);
    const { signal, stderr } = await station.going.ended;
    if (signal !== "SIGKILL") problems.push(`${point}: it did not die: ${stderr}`);
  }
  const last = await serve(home);
  try {
    const all = await runsIn(home);
    const lost = answered.filter((run) => !all.includes(run));
    if (lost.length > 0) problems.push(`lost: ${lost.join(", ")}`);
    for (const run of all) {
      await untilEnded(last, run);
      const events = await eventsIn(home, run);
      const ends = events.flatMap((event) => (event.type === "run.ended" ? [event.data.reason] : []));
      if (ends.join(" ") !== "done") problems.push(`${run} ended: ${ends.join(" ")}`);
      const counter = await readFile(join(home, "sessions", run, "layer", "upper", "counter"), "utf8").catch(() => "nothing");
      if (counter !== "one\ntwo\n") problems.push(`${run} counted ${JSON.stringify(counter)}`);
    }
  } finally {
    const { code, stderr } = await cli.run(["down"], { home });
    if (code !== 0) problems.push(`down: ${stderr}`);
    await last.going.ended;
  }
  if (cli.sandboxes(home).length > 0) problems.push(`sandboxes left: ${cli.sandboxes(home).join(", ")}`);
  return problems;
}

describe("kill -9 of a station that drives and queues runs", () => {
  const working = "tool.effect#3";
  test.each([
    ["before a run is created", ["run.created:before#2"]],
    ["before the client has its id", ["run.created:after#2"]],
    ["before the run starts", ["queue.begin:before#1"]],
    ["as the run starts", ["queue.begin:after#2"]],
    ["while two work and one waits", [working]],
    ["and again before its runs are requeued", [working, "run.queued:before#1"]],
    ["and again between two requeued runs", [working, "run.queued:after#1"]],
    ["and again before the first resumes", [working, "queue.begin:before#1"]],
  ])("%s: the next station resumes every run once", { timeout: 120_000 }, async (_name, points) => {
    expect(await crashAt(points, await cli.script(script))).toEqual([]);
  });
});

describe("a station that stops", () => {
  test("releases its runs to the next station, or finishes them with --drain", { timeout: 120_000 }, async () => {
    const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command: "sleep 6" } }] }, { say: "Slept." }] });
    const home = await newHome("down");
    const first = await serve(home);
    const started = await startRuns(first, model);
    const [run = ""] = started;
    for await (const { type } of first.client.runs.events(run, { follow: true })) if (type === "tool.started") break;
    const down = await cli.run(["down"], { home });
    expect([down.code, down.stderr]).toEqual([0, expect.stringMatching(/has stopped/)]);
    expect((await first.going.ended).stderr).toMatch(/runs? released/);
    expect(
      JSON.parse((await cli.run(["ps", "--all", "--json"], { home })).text)
        .map(({ status }: { status: string }) => status)
        .sort(),
    ).toEqual(["interrupted", "interrupted", "queued: station"]);
    const second = await serve(home);
    await untilEnded(second, started[2] ?? "");
    const more = await startRuns(second, model);
    const drained = await cli.run(["down", "--drain", "--timeout", "1m"], { home });
    expect([drained.code, drained.stderr]).toEqual([0, expect.stringMatching(/the station is waiting for [12] runs?\n[\s\S]*has stopped/)]);
    await second.going.ended;
    const statuses = new Map<string, string>(
      JSON.parse((await cli.run(["ps", "--all", "--json"], { home })).text).map((row: { run: string; status: string }) => [
        row.run,
        row.status,
      ]),
    );
    for (const each of started) expect([each, statuses.get(each)]).toEqual([each, "done"]);
    // Runs that had started at the signal are done; the queued one waits for the next station.
    expect(more.map((each) => statuses.get(each)).sort()).toEqual(["done", "done", "queued: station"]);
  });
});

describe("a detached run after kill -9 of its driver", () => {
  test("is adopted by the next station, unless it ran at a terminal", {
    timeout: 120_000,
  }, async () => {
    const home = await newHome("adopted");
    const model = await cli.script(script);
    const detached = await cli.run(["run", "count", "--detach", "--json", "--name", "mine", "--model", model], { home });
    expect([detached.code, detached.stderr]).toEqual([0, detached.stderr]);
    const [run = ""] = await runsIn(home);
    const claims = async () => (await eventsIn(home, run)).flatMap((event) => (event.type === "run.claimed" ? [event.data] : []));
    const hasBegun = async () => (await eventsIn(home, run)).some(({ type }) => type === "tool.started");
    await expect.poll(hasBegun, { timeout: 60_000 }).toBe(true);
    const [driver] = await claims();
    expect(driver).toMatchObject({ driver: "detached" });
    process.kill(driver?.pid ?? 0, "SIGKILL");
    // A run that a user drove at a terminal stays with the user.
    const terminal = cli.start(["run", "count", "--json", "--name", "theirs", "--model", model], { home });
    await terminal.event("tool.started");
    terminal.child.kill("SIGKILL");
    await terminal.ended;
    const station = await serve(home);
    try {
      await untilEnded(station, run);
      expect((await claims()).map((claim) => claim.driver)).toEqual(["detached", "station"]);
      expect(await station.client.runs.get("mine")).toMatchObject({ run, finish: "done" });
      expect(await readFile(join(home, "sessions", run, "layer", "upper", "counter"), "utf8")).toBe("one\ntwo\n");
      expect((await station.client.runs.get("theirs")).status).toBe("interrupted");
      const adopted = await cli.run(["adopt", "theirs"], { home });
      expect([adopted.code, adopted.stderr]).toEqual([0, adopted.stderr]);
      await untilEnded(station, (await station.client.runs.get("theirs")).run);
      expect(await station.client.runs.get("theirs")).toMatchObject({ finish: "done" });
    } finally {
      await cli.run(["down"], { home });
      await station.going.ended;
    }
    expect(cli.sandboxes(home)).toEqual([]);
  });
});
