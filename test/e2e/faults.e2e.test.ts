import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { lockHolder } from "../../src/log/sqlite/lock-holder.ts";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { processOne } from "../support/process-one.ts";
import { createRandom, type Random } from "../support/random.ts";
import { type Ended, type Going, type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";
import { tracesOf } from "./caisson-process.ts";

const cli = useRunsCli();
const isRoot = process.getuid?.() === 0;

/** Every kind of fault once, in random order at random moments; then more of them for as long as this says. */
const MORE_SECONDS = Number(process.env.CAISSON_FAULTS_SECONDS ?? 0);
const SEED = Number(process.env.CAISSON_FAULTS_SEED ?? Date.now() % 1_000_000);

const CALLS = 6;
/** How often a run that nobody drives is gone on with before that counts as a failure. */
const RESUMES_MAX = 6;
const LEASE_MS = 15_000;
/**
 * A fault and its recovery take half a minute at most on a busy machine. Whoever takes longer is told of with what it
 * was doing.
 */
const STANDSTILL_MS = 120_000;

/** One run with a fault in it. */
interface Round {
  home: string;
  folder: string;
  model: string;
  going: Going;
  run: string;
  random: Random;
  /** How the run is to end. */
  reason: "done" | "cancelled";
  problems: string[];
  demand(holds: boolean, what: string): void;
}

interface Fault {
  /**
   * Does it, at a random moment of the run. What it resolves with must hold of the driver that suffered it, once it has
   * ended.
   */
  strike(round: Round): Promise<((ended: Ended) => void) | undefined>;
  /** Calls may have failed, or nobody knows whether they happened: they count once at most. */
  callsMayFail?: boolean;
  /** In place of an ordinary folder. */
  smallDisk?: boolean;
  /** A question is asked in the middle. */
  asks?: boolean;
}

const faults: Record<string, Fault> = {
  "the log is locked for long": {
    async strike({ going, home, random, demand }) {
      const database = new DatabaseSync(join(home, "log.db"), { timeout: 5_000 });
      database.exec("BEGIN IMMEDIATE");
      // Whoever waits says so after a while; a busy machine may take long until it waits, and a run that is over never does.
      const isTold = () => going.said().includes(`process ${process.pid} holds the log`);
      const isOver = () => going.child.exitCode !== null || going.child.signalCode !== null;
      while (!isTold() && !isOver()) await delay(50);
      await delay(random.between(0, 9_000));
      database.exec("ROLLBACK");
      database.close();
      return (ended) => demand(ended.code === 0, `a locked log: exit ${ended.code} ${ended.stderr}`);
    },
  },
  "the driver is killed": {
    async strike({ going }) {
      going.child.kill("SIGKILL");
      return undefined;
    },
  },
  "the driver stands still for longer than its lease": {
    async strike({ going, run, home, demand }) {
      await stopBetweenWrites(going, join(home, "log.db"));
      await delay(LEASE_MS);
      const second = await cli.run(["resume", "--json", run], { home });
      demand(second.code === 0, `taken over: exit ${second.code} ${second.stderr}${second.text.slice(-300)}`);
      going.child.kill("SIGCONT");
      return (ended) => {
        demand(ended.code === 123, `the driver that was taken over from: exit ${ended.code} ${ended.text.slice(-300)}`);
        demand(ended.text.includes("superseded"), `it does not say so: ${ended.text.slice(-300)}`);
      };
    },
  },
  "the guest is killed": {
    callsMayFail: true,
    async strike({ home }) {
      const [sandbox] = cli.sandboxes(home);
      const pid = sandbox === undefined ? undefined : processOne(sandbox);
      if (pid !== undefined) process.kill(pid, "SIGKILL");
      return undefined;
    },
  },
  "the sandbox is removed": {
    callsMayFail: true,
    async strike({ home, demand }) {
      const [sandbox] = cli.sandboxes(home);
      if (sandbox === undefined) return undefined;
      const removed = await cli.run(["sandbox", "rm", sandbox, "--yes"], { home });
      // The run may have been over, and its sandbox with it.
      demand(removed.code === 0 || removed.stderr.includes("no sandbox"), `sandbox rm: ${removed.stderr}`);
      return undefined;
    },
  },
  "several stop it at once": {
    callsMayFail: true,
    async strike(round) {
      const { run, home, going, random, demand } = round;
      // Sometimes nobody drives it.
      if (random.chance(0.5)) going.child.kill("SIGKILL");
      const stops = await Promise.all(Array.from({ length: 4 }, () => cli.run(["stop", run], { home })));
      // They may have come too late; but they agree about it.
      const late = stops.filter((stop) => stop.stderr.includes("has ended (done)"));
      if (late.length < stops.length) round.reason = "cancelled";
      for (const stop of stops) demand(stop.code === 0 || late.length === stops.length, `stop: exit ${stop.code} ${stop.stderr}`);
      return undefined;
    },
  },
  "several answer at once": {
    asks: true,
    callsMayFail: true,
    async strike({ run, home, going, demand }) {
      await going.event("permission.asked");
      const answers = await Promise.all(
        ["allow", "deny", "allow"].map((answer) => cli.run(["answer", run, answer, "--no-resume"], { home })),
      );
      demand(answers.filter((answer) => answer.code === 0).length === 1, `answers: ${answers.map((answer) => answer.stderr).join()}`);
      return undefined;
    },
  },
  "the disk is full": {
    smallDisk: true,
    callsMayFail: true,
    async strike({ home, random }) {
      const filler = join(home, "filler");
      try {
        writeFileSync(filler, Buffer.alloc(64 * 1024 * 1024));
      } catch {
        // That is the point.
      }
      await delay(random.between(200, 2_000));
      rmSync(filler);
      return undefined;
    },
  },
};

describe("faults at random moments", () => {
  test(`lose nothing that was acknowledged, repeat nothing, leave nothing (seed ${SEED})`, {
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
 * A run, with messages sent to it, a fault in its middle, and whatever it takes to bring it to its end. Says what is
 * wrong with what is left.
 */
async function suffer(kind: string, random: Random): Promise<string[]> {
  const fault = faults[kind] as Fault;
  const problems: string[] = [];
  const demand = (holds: boolean, what: string) => void (holds || problems.push(what));
  const folder = await cli.folder({ "a.txt": "a\n" });
  const home = `${folder}-state`;
  await mkdir(home);
  if (fault.smallDisk) execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", home]);
  const standstill = setTimeout(() => problems.push("stands still", ...cli.killAll(home)), STANDSTILL_MS);
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
    // Between the second event and the last ones; a run that asks waits for its answer before it comes so far.
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

/** Whoever is stopped in the middle of writing to the log keeps everybody else waiting, and is not taken over from. */
async function stopBetweenWrites({ child }: Going, log: string): Promise<void> {
  for (;;) {
    child.kill("SIGSTOP");
    const stat = `/proc/${child.pid}/stat`;
    // It may have come to its end before the signal did.
    await vi.waitFor(() => expect(existsSync(stat) ? readFileSync(stat, "utf8") : ") Z ").toMatch(/\) [TZ] /), {
      timeout: 60_000,
      interval: 1,
    });
    if (lockHolder(log) !== child.pid) return;
    child.kill("SIGCONT");
    await delay(5);
  }
}

function script(fault: Fault) {
  const count = (number: number) => ({ tool: "bash", arguments: { command: `echo ${number} >> counter; sleep 0.2; echo counted` } });
  const asked = { tool: "bash", arguments: { command: "git commit -m x; true" } };
  return {
    turns: [
      ...Array.from({ length: CALLS }, (_, at) => ({
        say: `Now ${at}.`,
        calls: [count(at), ...(fault.asks && at === 2 ? [asked] : []), { tool: "write", arguments: { path: `f${at}`, content: `${at}` } }],
      })),
      // For messages that come at the very end.
      ...Array.from({ length: 40 }, () => ({ say: "Done." })),
    ],
  };
}

/** Resolves with the ids of those that were acknowledged. */
async function sendMessages({ run, home, random, demand }: Round): Promise<string[]> {
  const sent: string[] = [];
  for (let left = random.between(1, 4); left > 0; left--) {
    await delay(random.between(0, 1_500));
    const { code, text, stderr } = await cli.run(["send", "--queue", "--no-resume", run, `message ${left}`], { home });
    if (code === 0) sent.push(text.trim());
    else demand(/has ended|disk is full|can only be read/.test(stderr), `send: exit ${code} ${stderr}`);
  }
  return sent;
}

async function bringToItsEnd({ home, run, demand }: Round): Promise<void> {
  for (let left = RESUMES_MAX; left > 0; left--) {
    if ((await eventsIn(home, run)).at(-1)?.type === "run.ended") return;
    const again = await cli.run(["resume", "--json", run], { home });
    demand([0, 125, 130].includes(again.code ?? -1), `resume: exit ${again.code} ${again.signal} ${again.stderr}`);
  }
  demand(
    false,
    `the run did not come to its end in ${RESUMES_MAX} tries: ${(await cli.run(["resume", "--json", run], { home })).text.slice(-500)}`,
  );
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
  const heard = new Set(of("model.requested").flatMap((event) => event.data.messages));
  for (const message of sent) {
    demand(known.has(message), `${message} was acknowledged and is not in the log`);
    demand(end?.data.reason !== "done" || heard.has(message), `${message} was acknowledged and no model call saw it`);
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

/** What was counted was counted once; and all of it, unless calls failed or the run was stopped. */
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
