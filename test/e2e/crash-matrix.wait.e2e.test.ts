import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import type { StoredPoint } from "../../src/contract/session/session.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { type Going, type LoggedEvent, type StartOptions, useRunsCli } from "../support/runs-cli.ts";
import { tracesOf } from "./caisson-process.ts";

const cli = useRunsCli();

const count = (name: string, more = "") => ({ tool: "bash", arguments: { command: `echo ${name} >> counter${more}` } });
const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });

/**
 * A small run that writes every kind of event that needs no input from outside. Output is streamed in intervals, so a
 * command with a short pause may end before its first piece is.
 */
const reference = (pauseSeconds: number): Script => ({
  contextTokens: 1_400,
  summary: "counted so far",
  turns: [
    { say: "First.", calls: [count("one"), count("two", `; echo begun; sleep ${pauseSeconds}; echo seen`)] },
    {
      fail: { code: "busy", times: 1 },
      calls: [
        write("note.txt", "words ".repeat(300)),
        { tool: "todo_write", arguments: { todo: [{ id: "a", text: "count", status: "in_progress" }] } },
        { tool: "read", arguments: { path: "note.txt" } },
      ],
    },
    { say: "Again and", calls: [count("three"), { tool: "todo_read" }, { tool: "todo_read" }, { tool: "todo_read" }] },
    { calls: [count("four", "; cat counter")], expect: { contains: ["count to four"] } },
    { say: "Counted.", expect: { contains: ["count to four"], news: ["four"] } },
  ],
});
const NAMES = ["one", "two", "three", "four"];

/** A run that asks a question, which another process answers. */
const asking: Script = {
  turns: [
    { calls: [count("one"), count("two")] },
    { calls: [{ tool: "bash", arguments: { command: "git commit -m x; echo three >> counter; true" } }] },
    { calls: [count("four"), write("note.txt", "asked\n")] },
    { say: "Counted." },
  ],
};

interface Outcome {
  point: string;
  problems: string[];
  recoveryMs: number | null;
}

/** Starts a run, kills it at the point and resumes it. Returns what is wrong with the result. */
async function crashAt(point: string, model: string, more: readonly string[] = []): Promise<Outcome> {
  const problems: string[] = [];
  const demand = (holds: boolean, what: string) => void (holds || problems.push(what));
  const folder = await cli.folder({ "a.txt": "a\n" });
  const home = join(folder, "..", `home-${point.replaceAll(/[^a-z0-9]/g, "-")}`);
  const options = { cwd: folder, home };
  const crashing = cli.start(["run", "count to four", "--model", model, "--json", "--runtime", "oci", "--permissions", "strict", ...more], {
    ...options,
    env: { CAISSON_CRASH_AT: point },
  });
  void answerWhenAsked(crashing, options);
  const first = await crashing.ended;
  demand(first.signal === "SIGKILL", `it did not die: ${first.code} ${first.stderr}${first.text.slice(-500)}`);
  const id = await runIn(home);
  let recoveryMs: number | null = null;
  if (id === undefined) {
    demand(point.startsWith("session.") || point === "run.created:before#1", "the run is not there");
    demand(first.events.length === 0, "events of a run that is not there were printed");
    const next = await cli.run(["ps", "--all", "--json"], options);
    demand(next.text === "[]\n", `ps: ${next.text}${next.stderr}`);
    demand(everythingIn(join(home, "sessions")).length === 0, `left: ${everythingIn(join(home, "sessions")).join(", ")}`);
  } else {
    const before = await eventsIn(home, id);
    demand(isPrefix(first.events, before), "what was printed is not what is in the log");
    if (before.at(-1)?.type !== "run.ended") {
      const startedMs = Date.now();
      if (hasOpenQuestion(before)) await cli.run(["answer", id, "allow", "--no-resume"], options);
      const going = cli.start(["resume", "--json", id], options);
      void answerWhenAsked(going, options);
      await going.event("run.claimed");
      recoveryMs = Date.now() - startedMs;
      const second = await going.ended;
      demand(second.code === 0, `resume: ${second.code} ${second.stderr}`);
    } else {
      // The run has ended. The next command removes what its process did not get to remove.
      const next = await cli.run(["sandbox", "ls", "--json"], options);
      demand(next.code === 0, `sandbox ls: ${next.stderr}`);
    }
    const after = await eventsIn(home, id);
    demand(isPrefix(before, after), "an event was lost or changed");
    checkLog(after, demand);
    await checkFiles({ id, home, folder }, demand);
    for (const event of after) {
      if (event.type !== "run.sandboxed") continue;
      const traces = tracesOf(event.data.sandbox);
      demand(traces.length === 0, `left of ${event.data.sandbox}: ${traces.join(", ")}`);
    }
  }
  // Sweeps what the dead process left.
  await cli.run(["sandbox", "ls"], { cwd: folder, home });
  for (const problem of layerProblems(home)) demand(false, problem);
  demand(cli.sandboxes(home).length === 0, `sandboxes left: ${cli.sandboxes(home).join(", ")}`);
  return { point, problems, recoveryMs };
}

/** Answers as another process would. Ignores a run that dies before it asks, or never asks. */
async function answerWhenAsked(going: Going, options: StartOptions): Promise<void> {
  const pause = await going.event("run.paused").catch(() => null);
  const created = pause && (await runIn(options.home ?? ""));
  if (created && going.child.exitCode === null && going.child.signalCode === null)
    await cli.run(["answer", created, "allow", "--no-resume"], options);
}

function hasOpenQuestion(events: readonly LoggedEvent[]): boolean {
  const count = (type: string) => events.filter((event) => event.type === type).length;
  return count("permission.asked") > count("permission.answered");
}

/** Returns what is wrong with the layer store: half layers, unused ones, and points without one. */
function layerProblems(home: string): string[] {
  const layers = join(home, "layers");
  const names = everythingIn(layers);
  const problems = names.filter((name) => !/^ly_[a-z2-7]{12}$/.test(name)).map((name) => `half a layer: ${name}`);
  for (const name of names) if (everythingIn(join(layers, name, "references")).length === 0) problems.push(`an unused layer: ${name}`);
  for (const session of everythingIn(join(home, "sessions"))) {
    const file = join(home, "sessions", session, "restore-points.json");
    const { points } = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { points: StoredPoint[] }) : { points: [] };
    for (const { files, step } of points)
      if (files.kind === "point" && files.id !== null && !names.includes(files.id)) problems.push(`no files for step ${step}`);
  }
  return problems;
}

const everythingIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

function isPrefix(shorter: readonly LoggedEvent[], longer: readonly LoggedEvent[]): boolean {
  return shorter.every((event, at) => JSON.stringify(event) === JSON.stringify(longer[at]));
}

function checkLog(events: readonly LoggedEvent[], demand: (holds: boolean, what: string) => void): void {
  demand(
    events.every((event, at) => event.seq === at + 1),
    "the sequence has a gap",
  );
  const ends = events.filter((event) => event.type === "run.ended");
  demand(ends.length === 1 && events.at(-1)?.type === "run.ended", `${ends.length} ends`);
  demand(ends[0]?.data.reason === "done", `ended: ${JSON.stringify(ends[0]?.data)}`);
  const endedCalls = events.flatMap((event) => (event.type === "tool.ended" ? [event.data.call] : []));
  demand(new Set(endedCalls).size === endedCalls.length, `a call ended twice: ${endedCalls.join(" ")}`);
  const failed = events.flatMap((event) => (event.type === "tool.ended" && event.data.outcome !== "ok" ? [event.data.text] : []));
  demand(failed.length === 0, `calls failed: ${failed.join("; ")}`);
}

async function checkFiles(
  where: { id: string; home: string; folder: string },
  demand: (holds: boolean, what: string) => void,
): Promise<void> {
  demand(!existsSync(join(where.folder, "counter")), "the user's folder was changed");
  const layer = join(where.home, "sessions", where.id, "layer", "upper");
  const counter = await readFile(join(layer, "counter"), "utf8").catch(() => "nothing");
  demand(counter === NAMES.map((name) => `${name}\n`).join(""), `counted ${JSON.stringify(counter)}`);
  demand(existsSync(join(layer, "note.txt")), "the note is missing");
}

/** Reads the log from disk, without starting a command that might repair something. */
async function eventsIn(home: string, run: string): Promise<LoggedEvent[]> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  const stored = await log.read(`run/${run}`, { limit: 10_000 });
  return stored.map(({ seq, type, version, at, data }) => ({ seq, type, version, at, data }) as LoggedEvent);
}

async function runIn(home: string): Promise<string | undefined> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  return (await log.streams({ prefix: "run/" }))[0]?.stream.slice("run/".length);
}

/** Returns the crash points that a run without a crash passes, each with its count. */
async function pointsOf(model: string): Promise<Map<string, number>> {
  const folder = await cli.folder({ "a.txt": "a\n" });
  const list = join(folder, "..", "points");
  const home = join(folder, "..", "home-reference");
  const env = { CAISSON_CRASH_LIST: list };
  const done = await cli.run(["run", "count to four", "--model", model, "--json", "--runtime", "oci"], { cwd: folder, home, env });
  expect(done.code, done.stderr + done.text).toBe(0);
  const points = new Map<string, number>();
  for (const name of (await readFile(list, "utf8")).trimEnd().split("\n")) points.set(name, (points.get(name) ?? 0) + 1);
  return points;
}

/** Points worth a second crash in the middle of the run: what they protect depends on what came before. */
const TWICE = /^(model\.(requested|ended)|tool\.(started|ended)):|^(tool\.effect|tool\.effect\.after|model\.effect)$/;

describe("kill -9 anywhere", () => {
  test("loses nothing, repeats nothing and leaves nothing behind", { timeout: 400_000 }, async () => {
    const model = await cli.script(reference(0.4));
    const slow = await cli.script(reference(3));
    const points = await pointsOf(slow);
    const wanted = [...points].flatMap(([name, times]) => [
      `${name}#1`,
      ...(TWICE.test(name) && times > 2 ? [`${name}#${Math.ceil(times / 2) + 1}`] : []),
    ]);
    const outcomes = await crashAtEach(wanted, (point) => crashAt(point, point.startsWith("tool.streamed:") ? slow : model));
    console.log(matrix(wanted, outcomes));
    expect(outcomes.filter((outcome) => outcome.problems.length > 0)).toEqual([]);
    expect(outcomes.length).toBe(wanted.length);
    // Without these points in the reference run, the matrix would prove nothing.
    for (const name of [
      "run.created",
      "tool.started",
      "tool.ended",
      "context.compacted",
      "model.failed",
      "loop.noticed",
      "tool.streamed",
      "step.ended",
    ])
      expect(wanted).toContain(`${name}:after#1`);
  });

  test("is harmless around a question that another process answers", { timeout: 120_000 }, async () => {
    const model = await cli.script(asking);
    const wanted = ["permission.asked", "run.paused", "run.continued"].flatMap((name) => [`${name}:before#1`, `${name}:after#1`]);
    const outcomes = await crashAtEach(wanted, (point) => crashAt(point, model, ["--on-ask", "wait"]));
    console.log(matrix(wanted, outcomes));
    expect(outcomes.filter((outcome) => outcome.problems.length > 0)).toEqual([]);
  });

  test("is harmless around the end of a run that is continued", async () => {
    const turns = [
      { calls: [count("one")] },
      { say: "One." },
      { calls: [count("two")], expect: { news: ["and to two"] } },
      { say: "Two." },
    ];
    const model = await cli.script({ turns });
    for (const point of ["run.ended:after#1", "run.reopened:before#1", "run.reopened:after#1"]) {
      expect(await crashBetweenTurns(point, model)).toEqual({
        point,
        // Our note, then the user's message.
        types: ["run.sandboxed", "run.ended", "run.reopened", "message.received", "message.received", "run.sandboxed", "run.ended"],
        counter: "one\ntwo\n",
      });
    }
  });
});

/** Runs two turns and kills the process at the point. The next process must continue with every message. */
async function crashBetweenTurns(point: string, model: string): Promise<{ point: string; types: string[]; counter: string }> {
  const cwd = await cli.folder();
  const home = join(cwd, "..", `home-turns-${point.replaceAll(/[^a-z0-9]/g, "-")}`);
  const more = ["--json", "--permissions", "strict"];
  const env = { CAISSON_CRASH_AT: point };
  const first = await cli.run(["run", "count to one", "--model", model, "--runtime", "oci", ...more], { cwd, home, env });
  const next = ["run", "--continue", "and to two", "--json"];
  const second = first.signal === null ? await cli.run(next, { cwd, home, env }) : first;
  expect(second.signal, second.stderr).toBe("SIGKILL");
  const id = (await runIn(home)) ?? "";
  const isOver = (await eventsIn(home, id)).at(-1)?.type === "run.ended";
  const last = await cli.run(isOver ? next : ["resume", "--json", id], { cwd, home });
  expect(last.code, `${point}: ${last.stderr}`).toBe(0);
  const events = await eventsIn(home, id);
  const types = events.map(({ type }) => type).filter((type) => /^run\.(ended|reopened|sandboxed)$|^message\.received$/.test(type));
  const counter = await readFile(join(home, "sessions", id, "layer", "upper", "counter"), "utf8");
  expect(cli.sandboxes(home)).toEqual([]);
  return { point, types, counter };
}

/** Runs two crashes at a time. */
async function crashAtEach(points: readonly string[], crash: (point: string) => Promise<Outcome>): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const queue = [...points];
  const worker = async () => {
    for (let point = queue.shift(); point !== undefined; point = queue.shift()) outcomes.push(await crash(point));
  };
  await Promise.all([worker(), worker()]);
  return outcomes;
}

function matrix(wanted: readonly string[], outcomes: readonly Outcome[]): string {
  const state = (point: string) => {
    const outcome = outcomes.find((each) => each.point === point);
    if (!wanted.includes(point)) return "";
    return outcome === undefined ? "not run" : outcome.problems.length === 0 ? "ok" : "FAILED";
  };
  const events = new Map<string, string[]>();
  for (const point of wanted) {
    const [name = "", number = ""] = point.split("#");
    const row = `${name.replace(/:(before|after)$/, "").replace(/^(.*effect)(\.after)?$/, "$1")} #${number}`;
    events.set(row, [...(events.get(row) ?? []), point]);
  }
  const side = (points: readonly string[], after: boolean) => {
    const found = points.find((point) => /(:|\.)after#/.test(point) === after);
    return found === undefined ? "" : state(found);
  };
  const rows = [...events].map(([row, points]) => `${row.padEnd(26)} ${side(points, false).padEnd(8)} ${side(points, true)}`);
  const times = outcomes.flatMap((outcome) => outcome.recoveryMs ?? []).sort((a, b) => a - b);
  const good = outcomes.filter((outcome) => outcome.problems.length === 0).length;
  const problems = outcomes.flatMap((outcome) => outcome.problems.map((problem) => `${outcome.point}: ${problem}`));
  return [
    `${"crash at".padEnd(26)} ${"before".padEnd(8)} after`,
    ...rows,
    `${good} of ${wanted.length} recovered; from \`resume\` to the run continuing: median ${times[times.length >> 1]} ms, at most ${times.at(-1)} ms`,
    ...problems,
  ].join("\n");
}
