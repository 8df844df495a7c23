import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { createRandom, type Random } from "../support/random.ts";
import { type Fault, faultsOf, type Round } from "../support/run-faults.ts";
import { type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";
import { tracesOf } from "./caisson-process.ts";

const cli = useRunsCli();
const isRoot = process.getuid?.() === 0;

/** Every kind of fault strikes once, in random order at random moments; then random faults for this many seconds. */
const MORE_SECONDS = Number(process.env.CAISSON_FAULTS_SECONDS ?? 0);
const SEED = Number(process.env.CAISSON_FAULTS_SEED ?? Date.now() % 1_000_000);

const CALLS = 6;
/** Resumes of a run without a driver before the test fails. */
const RESUMES_MAX = 6;
/**
 * A fault and its recovery take at most half a minute on a busy machine. A round that takes longer than this is
 * reported as stuck.
 */
const STANDSTILL_MS = 120_000;

const faults = faultsOf(cli);

describe("faults at random moments", () => {
  test(`lose nothing acknowledged, repeat nothing and leave nothing (seed ${SEED})`, {
    timeout: 300_000 + 2_000 * MORE_SECONDS,
  }, async () => {
    const random = createRandom(SEED);
    const kinds = Object.keys(faults).filter((kind) => isRoot || !faults[kind]?.smallDisk);
    const outcomes: { kind: string; problems: string[] }[] = [];
    const queue = random.shuffled(kinds);
    const endMs = Date.now() + 1000 * MORE_SECONDS;
    const worker = async () => {
      for (;;) {
        const kind = queue.shift() ?? (Date.now() < endMs ? random.pick(kinds) : undefined);
        if (kind === undefined) return;
        outcomes.push({ kind, problems: await suffer(kind, createRandom(random.between(1, 1_000_000_000))) });
      }
    };
    await Promise.all([worker(), worker()]);
    console.log(`${outcomes.length} faults, seed ${SEED}: ${outcomes.map(({ kind }) => kind).join("; ")}`);
    expect(outcomes.filter(({ problems }) => problems.length > 0)).toEqual([]);
    expect(new Set(outcomes.map(({ kind }) => kind)).size).toBe(kinds.length);
  });
});

/**
 * Starts a run, sends it messages, strikes it with a fault, and resumes it until it ends. Returns what is wrong with
 * the result.
 */
async function suffer(kind: string, random: Random): Promise<string[]> {
  const fault = faults[kind] as Fault;
  const problems: string[] = [];
  const demand = (holds: boolean, what: string) => void (holds || problems.push(what));
  const folder = await cli.folder({ "a.txt": "a\n" });
  const home = `${folder}-state`;
  await mkdir(home);
  if (fault.smallDisk) execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", home]);
  const standstill = setTimeout(() => problems.push("is stuck", ...cli.killAll(home)), STANDSTILL_MS);
  try {
    const model = await cli.script(script(fault));
    const going = cli.start(
      ["run", "count", "--model", model, "--json", "--runtime", "oci", "--permissions", "strict", "--on-ask", "wait"],
      { cwd: folder, home },
    );
    const created = await going.event("run.created");
    const { run } = created.data;
    const round: Round = { home, folder, model, going, run, random, reason: "done", problems, demand };
    const sending = sendMessages(round);
    // Between the second event and the last ones. A run that asks waits for its answer before it gets that far.
    if (!fault.asks) await going.output(new RegExp(`"seq":${random.between(3, 45)},`)).catch(() => undefined);
    const afterwards = await fault.strike(round);
    afterwards?.(await going.ended);
    await going.ended;
    await bringToItsEnd(round);
    const sent = await sending;
    await check({ fault, round, sent });
  } catch (error) {
    problems.push(String(error instanceof Error ? error.stack : error));
  } finally {
    clearTimeout(standstill);
    await cli.run(["sandbox", "rm", "--all", "--yes"], { home });
    if (fault.smallDisk) execFileSync("umount", ["-l", home]);
  }
  return problems;
}

function script(fault: Fault) {
  const count = (number: number) => ({ tool: "bash", arguments: { command: `echo ${number} >> counter; sleep 0.2; echo counted` } });
  const commitCall = { tool: "bash", arguments: { command: "git commit -m x; true" } };
  return {
    turns: [
      ...Array.from({ length: CALLS }, (_, at) => ({
        say: `Now ${at}.`,
        calls: [
          count(at),
          ...(fault.asks && at === 2 ? [commitCall] : []),
          { tool: "write", arguments: { path: `f${at}`, content: `${at}` } },
        ],
      })),
      // For messages that arrive at the very end.
      ...Array.from({ length: 40 }, () => ({ say: "Done." })),
    ],
  };
}

/** Resolves with the ids of the acknowledged messages. */
async function sendMessages({ run, home, random, demand }: Round): Promise<string[]> {
  const sent: string[] = [];
  for (let left = random.between(1, 4); left > 0; left--) {
    await delay(random.between(0, 1_500));
    const { code, text, stderr } = await cli.run(["send", "--queue", "--no-resume", run, `message ${left}`], { home });
    if (code === 0) sent.push(text.trim());
    else demand(/has ended|disk is full|log is read-only/.test(stderr), `send: exit ${code} ${stderr}`);
  }
  return sent;
}

async function bringToItsEnd({ home, run, demand }: Round): Promise<void> {
  for (let left = RESUMES_MAX; left > 0; left--) {
    if ((await eventsIn(home, run)).at(-1)?.type === "run.ended") return;
    const again = await cli.run(["resume", "--json", run], { home });
    demand([0, 125, 130].includes(again.code ?? -1), `resume: exit ${again.code} ${again.signal} ${again.stderr}`);
  }
  demand(false, `the run did not finish in ${RESUMES_MAX} tries: ${(await cli.run(["resume", "--json", run], { home })).text.slice(-500)}`);
}

async function check({ fault, round, sent }: { fault: Fault; round: Round; sent: readonly string[] }): Promise<void> {
  const { home, run, folder, demand } = round;
  const events = await eventsIn(home, run);
  const of = <Type extends LoggedEvent["type"]>(type: Type) =>
    events.filter((event): event is Extract<LoggedEvent, { type: Type }> => event.type === type);
  demand(
    events.every((event, at) => event.seq === at + 1),
    "the sequence has a gap",
  );
  const [end, ...more] = of("run.ended");
  demand(more.length === 0 && events.at(-1)?.type === "run.ended", "something comes after the end");
  demand(end?.data.reason === round.reason, `ended ${JSON.stringify(end?.data)}`);
  const known = new Set(of("message.received").map((event) => event.data.message));
  const modelMessages = new Set(of("model.requested").flatMap((event) => event.data.messages));
  for (const message of sent) {
    demand(known.has(message), `${message} was acknowledged and is not in the log`);
    demand(end?.data.reason !== "done" || modelMessages.has(message), `${message} was acknowledged and no model call saw it`);
  }
  const ended = of("tool.ended").map((event) => event.data.call);
  demand(new Set(ended).size === ended.length, `a call ended twice: ${ended.join(" ")}`);
  await checkEffects({ fault, round, failed: of("tool.ended").flatMap((event) => (event.data.outcome === "ok" ? [] : [event.data.text])) });
  demand(readFileSync(join(folder, "a.txt"), "utf8") === "a\n" && !existsSync(join(folder, "counter")), "the user's folder was changed");
  const listed = JSON.parse((await cli.run(["ps", "--all", "--json"], { home })).text) as { run: string; status: string }[];
  demand(listed.find((each) => each.run === run)?.status === end?.data.reason, `ps says ${JSON.stringify(listed)}`);
  demand(cli.sandboxes(home).length === 0, `sandboxes left: ${cli.sandboxes(home).join(", ")}`);
  for (const { data } of of("run.sandboxed"))
    demand(tracesOf(data.sandbox).length === 0, `left of ${data.sandbox}: ${tracesOf(data.sandbox).join(", ")}`);
}

/** Checks that every effect happened exactly once, or at most once if calls may fail or the run was stopped. */
async function checkEffects({ fault, round, failed }: { fault: Fault; round: Round; failed: readonly string[] }): Promise<void> {
  const { demand, home, run } = round;
  const path = join(home, "sessions", run, "layer", "upper", "counter");
  const counted = (await readFile(path, "utf8").catch(() => "")).trim().split("\n").filter(Boolean);
  demand(new Set(counted).size === counted.length, `something happened twice: ${counted.join(" ")}`);
  if (fault.callsMayFail) return;
  demand(failed.length === 0, `calls failed: ${failed.join("; ")}`);
  demand(counted.join(" ") === Array.from({ length: CALLS }, (_, at) => `${at}`).join(" "), `counted ${counted.join(" ")}`);
}

async function eventsIn(home: string, run: string): Promise<LoggedEvent[]> {
  await using log = createSqliteLog({ path: join(home, "log.db") });
  const stored = await log.read(`run/${run}`, { limit: 10_000 });
  return stored.map(({ seq, type, version, at, data }) => ({ seq, type, version, at, data }) as LoggedEvent);
}
