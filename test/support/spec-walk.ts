import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { type Client, connect } from "../../src/client/connect.ts";
import { socketFetch } from "../../src/client/socket-fetch.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { ATTRIBUTES, expectTrapsToWork, trapsFor } from "./git-traps.ts";
import type { Going, useRunsCli } from "./runs-cli.ts";

/** The spec example: its script is the model, and its project is what the spec works on. */
export const example = join(import.meta.dirname, "..", "..", "examples", "spec");

interface Served {
  going: Going;
  client: Client;
}

type Cli = ReturnType<typeof useRunsCli>;

interface Walked {
  home: string;
  served: Served;
  session: string;
}

/** Returns random numbers from a seed (mulberry32), so a failed run can be repeated. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

async function eventsOf(home: string, spec: string): Promise<{ type: string; data: Record<string, unknown> }[]> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  return (await log.read(`spec/${spec}`)) as never;
}

/** Waits until the spec has ended or waits for a person, according to the running station. */
async function settled(served: Served, spec: string) {
  return await served.client.specs.wait(spec, { signal: AbortSignal.timeout(240_000) });
}

/** Runs the example's specs on a separate station. Their runs leave traps for git on the host. */
export function specWalks(cli: Cli) {
  return {
    serve: (home: string) => serve(cli, home),
    walk: (how: { parallel: number; project: string }, after?: (walked: Walked) => Promise<Served>) => walk(cli, how, after),
  };
}

async function serve(cli: Cli, home: string): Promise<Served> {
  const going = cli.start(["up", "--port", "0", "--json", "--no-token"], { home });
  await Promise.race([going.output(/"pid"/), once(going.child, "exit")]);
  return { going, client: connect({ url: "http://station", fetch: socketFetch(join(home, "station", "socket")) }) };
}

/** Kills the station with SIGKILL when the spec has this many events, and starts another. */
async function killedAt(cli: Cli, seq: number, { served, home, spec }: { served: Served; home: string; spec: string }): Promise<Served> {
  const found = new AbortController();
  const signal = AbortSignal.any([found.signal, AbortSignal.timeout(240_000)]);
  for await (const event of served.client.specs.events(spec, { follow: true, signal })) {
    if (event.seq >= seq || event.type === "driven.ended") break;
  }
  found.abort();
  served.going.child.kill("SIGKILL");
  await served.going.ended;
  return await serve(cli, home);
}

/** Returns the example's script, changed to leave traps in its first task. */
async function scriptWithTraps(cli: Cli, mark: string): Promise<string> {
  const script = await readFile(join(example, "script.yaml"), "utf8");
  const command = "echo words >> commands.txt";
  expect(script).toContain(command);
  const trapped = script.replace(command, () => `(${JSON.stringify(trapsFor(mark)).slice(1, -1)}) > /dev/null 2>&1; ${command}`);
  return join(await cli.folder({ "script.yaml": trapped }), "script.yaml");
}

/** Drives a spec from its idea to its end. `after` returns the station that runs then. */
async function walk(
  cli: Cli,
  { parallel, project }: { parallel: number; project: string },
  after: (walked: Walked) => Promise<Served> = async ({ served }) => served,
): Promise<void> {
  // The same moments each time by default. SPEC_SEED=$RANDOM picks others.
  const seed = Number(process.env.SPEC_SEED ?? 1);
  console.info(`seed: SPEC_SEED=${seed}`);
  const chance = numbersFrom(seed);
  const home = join(cli.base(), `home-spec-${parallel}`);
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writeFile(join(home, "config.json"), JSON.stringify({ runtime: "oci" }));
  const commands = await readFile(join(project, "commands.txt"), "utf8");
  let served = await serve(cli, home);
  try {
    const mark = join(await cli.folder(), "executed");
    await expectTrapsToWork(mark, await cli.folder({ "README.md": "one\n" }));
    const spec = await propose(cli, { home, project, parallel, model: `scripted:${await scriptWithTraps(cli, mark)}` });
    const execution = await served.client.specs.execute(spec);
    expect(execution).toMatchObject({ spec, run: expect.stringMatching(/^run_/) });
    // Before the first gate, between the gates, and twice while tasks run or are merged.
    const kills = [
      5 + Math.floor(chance() * 20),
      27 + Math.floor(chance() * 5),
      35 + Math.floor(chance() * 15),
      50 + Math.floor(chance() * 15),
    ];
    served = await killedAt(cli, kills[0] ?? 0, { served, home, spec });
    expect(await settled(served, spec)).toMatchObject({ asked: { phase: "requirements", version: 3 } });
    const approved = await cli.run(["spec", "approve", "words", "--version", "3", "--json"], { home });
    expect([approved.code, approved.stderr]).toEqual([0, ""]);
    served = await killedAt(cli, kills[1] ?? 0, { served, home, spec });
    expect(await settled(served, spec)).toMatchObject({ asked: { phase: "design", version: 4 } });
    expect((await cli.run(["spec", "approve", "words", "--json"], { home })).code).toBe(0);
    for (const seq of kills.slice(2)) served = await killedAt(cli, seq, { served, home, spec });
    const session = await expectDone(served, { home, spec });
    // Nothing outside changes before the apply.
    expect(await readFile(join(project, "commands.txt"), "utf8")).toBe(commands);
    served = await after({ home, served, session });
    await expectApplied(cli, { home, project, session, mark });
    const result = await cli.run(["spec", "show", "words"], { home });
    expect(result.text).toContain(`caisson diff ${session}`);
  } finally {
    await cli.run(["down"], { home });
    await served.going.ended;
  }
  expect(cli.sandboxes(home)).toEqual([]);
}

async function propose(
  cli: Cli,
  { home, project, parallel, model }: { home: string; project: string; parallel: number; model: string },
): Promise<string> {
  const how = ["--name", "words", "--parallel", String(parallel), "--model", model, "--phase-agent", "explore=reviewer"];
  const proposed = await cli.run(["spec", "new", "Count words and lines, too", ...how], { home, cwd: project });
  expect([proposed.code, proposed.text]).toEqual([0, expect.stringMatching(/^spec_[a-z2-7]{12}\n$/)]);
  return proposed.text.trim();
}

/**
 * Checks that every phase passed and every requirement is met, each by one run. Resolves with the session of the work.
 */
async function expectDone(served: Served, { home, spec }: { home: string; spec: string }): Promise<string> {
  const view = await settled(served, spec);
  expect(view, JSON.stringify(view.ended)).toMatchObject({ status: "done", version: 6, session: expect.any(String) });
  expect(view.attempts.map(({ phase, judgement }) => [phase, judgement?.passed])).toEqual([
    ["explore", true],
    ["prd", true],
    ["requirements", false],
    ["requirements", true],
    ["design", true],
    ["tasks", true],
    ["sync", true],
  ]);
  expect(view.coverage.map(({ requirement, state }) => [requirement, state])).toEqual([
    ["REQ-001", "done"],
    ["REQ-002", "done"],
  ]);
  // No phase or task has two runs despite the kills: one run per intent.
  const events = await eventsOf(home, spec);
  const intents = events.filter(({ type }) => type === "spec.phase_started" || type === "spec.task_started");
  const { runs } = await served.client.runs.list({ label: [`spec=${spec}`] });
  expect(runs.map(({ labels }) => labels["spec-key"]).sort()).toEqual(intents.map(({ data }) => data.key as string).sort());
  expect(new Set(view.attempts.map(({ run }) => run)).size).toBe(7);
  // Agents that read do not write: phases belong to the planner or the agent that was chosen for them, and tasks to the
  // coder.
  const agents = new Map(runs.map(({ labels, agent }) => [labels["spec-key"]?.split("/")[1]?.replace(/-.*/, ""), agent]));
  const thinking = ["prd", "requirements", "design", "tasks", "sync"].map((phase): [string, string] => [phase, "planner"]);
  expect(agents).toEqual(new Map([["explore", "reviewer"], ...thinking, ["TASK", "coder"]]));
  return view.session ?? "";
}

/** Checks that the changes of the work are outside now, and that none of the traps was triggered. */
async function expectApplied(
  cli: Cli,
  { home, project, session, mark }: { home: string; project: string; session: string; mark: string },
): Promise<void> {
  const applied = await cli.run(["apply", session, "--json"], { home, cwd: project });
  expect([applied.code, applied.stderr]).toEqual([0, ""]);
  expect((await readFile(join(project, "commands.txt"), "utf8")).trim().split("\n").sort()).toEqual(["letters", "lines", "words"]);
  expect(await readFile(join(project, "README.md"), "utf8")).toContain("letters|words|lines");
  // What git would act on stays inside until it is requested. Merging, shipping and applying ran none of it here.
  expect(existsSync(join(project, ".gitattributes"))).toBe(false);
  expect((await cli.run(["apply", session, "--include-config", "--json"], { home, cwd: project })).code).toBe(0);
  expect(await readFile(join(project, ".gitattributes"), "utf8")).toBe(`${ATTRIBUTES}\n`);
  expect(existsSync(mark), "the host executed what an agent wrote").toBe(false);
}
