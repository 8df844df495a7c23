import { CaissonError } from "../contract/error.ts";
import type { MessageMode } from "../contract/run.ts";
import { type RunFacts, waitsForResume } from "../contract/run-facts.ts";
import { showDuration } from "../lib/quantity.ts";
import { createStore } from "../sandbox/store.ts";
import { runStream } from "../station/runs/head-of-run.ts";
import { parseRunEvent } from "../station/runs/owned-journal.ts";
import { RUN_LABEL } from "../station/runs/run-sandbox.ts";
import type { ParsedArguments } from "./command.ts";
import type { CliContext } from "./context.ts";
import { followRun } from "./follow-run.ts";
import { line } from "./line.ts";
import { parseCount, parseDuration, parseNumber } from "./option-values.ts";
import { driveAndShow, exitCodes, raisedBudgets } from "./run-agent.ts";
import { printOutcome } from "./run-outcome.ts";
import { exitCodeOf } from "./signals.ts";
import { type LocalStation, openStation } from "./station.ts";
import { table } from "./table.ts";

/** Runs that are shown at most; what is left out is counted. */
const SHOWN_MAX = 1000;
const ENDED_SHOWN = 10;

/** `caisson ps` */
export async function ps(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const all = given.flag("all");
  const { runs, left } = await station.runs.list({ openMax: SHOWN_MAX, endedMax: all ? SHOWN_MAX : ENDED_SHOWN });
  const rows = runs.map(({ run, facts, owner, at, damage }) => ({
    run,
    agent: facts.agent,
    model: facts.model,
    session: facts.session,
    status: damage === null ? statusOf(facts, owner) : "damaged",
    steps: facts.step,
    costUsd: facts.costUsd,
    parent: facts.parent?.run ?? null,
    updatedAt: at,
    task: facts.title,
  }));
  if (all) rows.sort((a, b) => (a.updatedAt === b.updatedAt ? 0 : a.updatedAt < b.updatedAt ? 1 : -1));
  await tellLeftOut(context, { open: left.open, ended: all ? left.ended : 0 });
  if (given.flag("json")) {
    await context.stdout.printJson(rows);
    return 0;
  }
  if (rows.length === 0) {
    await context.stdout.print(line`No run yet. Start one: caisson run "fix the failing test"`);
    return 0;
  }
  const cells = rows.map((row) => [
    row.run,
    row.agent,
    row.status,
    String(row.steps),
    row.costUsd === null ? "?" : `$${row.costUsd.toFixed(3)}`,
    `${showDuration(Date.now() - Date.parse(row.updatedAt))} ago`,
    row.task.split("\n")[0]?.slice(0, 60) ?? "",
  ]);
  await context.stdout.print(table([["RUN", "AGENT", "STATUS", "STEPS", "COST", "UPDATED", "TASK"], ...cells]));
  return 0;
}

async function tellLeftOut(context: CliContext, left: { open: number; ended: number }): Promise<void> {
  const parts = [left.open > 0 ? `${left.open} that are not over` : "", left.ended > 0 ? `${left.ended} that have ended` : ""].filter(
    Boolean,
  );
  if (parts.length === 0) return;
  await context.stderr.print(line`caisson: the newest ${SHOWN_MAX} of each kind are shown; older ones are not: ${parts.join(", ")}`);
}

function statusOf(facts: RunFacts, owner: string | null): string {
  if (facts.finish !== null) return facts.finish;
  if (facts.paused) return `paused: ${facts.paused.why}`;
  return owner === null ? "interrupted" : "running";
}

/** `caisson logs RUN` */
export async function logs(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  if (given.flag("check")) {
    const damages = await station.log.check();
    if (given.flag("json")) await context.stdout.printJson(damages);
    else for (const damage of damages) await context.stdout.print(line`${damage.stream ?? "log"}: ${damage.text}`);
    if (damages.length === 0 && !given.flag("json")) await context.stdout.print(line`The log is whole.`);
    return damages.length === 0 ? 0 : 1;
  }
  const run = await runNamed(station, given.positionals[0]);
  await checkThere(station, run);
  const from = given.option("from");
  await followRun(context, station, run, {
    json: given.flag("json"),
    live: given.flag("follow"),
    signal: context.interruption.signal,
    ...(from === undefined ? {} : { fromSeq: parseCount("from", from) }),
  });
  return 0;
}

/** `caisson attach RUN`: watches only; `caisson answer` answers, `caisson send` steers. */
export async function attach(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const run = await runNamed(station, given.positionals[0]);
  await station.runs.facts(run);
  await followRun(context, station, run, { json: given.flag("json"), live: true, signal: context.interruption.signal });
  const state = await station.runs.state(run);
  if (state.status !== "ended") return 0;
  await printOutcome(context, station, state, { json: given.flag("json") });
  return exitCodes[state.ended?.reason ?? "error"];
}

/** `caisson resume RUN`: goes on with a run that was paused or lost its process. */
export async function resume(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const run = await runNamed(station, given.positionals[0]);
  const facts = await station.runs.facts(run);
  if (facts.status === "ended")
    throw new CaissonError("conflict", `the run ${run} has ended (${facts.finish})`, {
      hint: `Go on in its session: caisson run --session ${facts.session} "…"`,
    });
  if (waitsForResume(facts)) await station.runs.goOn(run, { by: context.variable("USER") ?? "user" });
  return await driveAndShow(context, station, run, {
    json: given.flag("json"),
    fromSeq: (await station.log.lastSeq(runStream(run))) + 1,
  });
}

/** `caisson send RUN TEXT` */
export async function send(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const [run = "", ...words] = given.positionals;
  const text = words.join(" ").trim();
  if (text === "") throw new CaissonError("invalid", "there is no message", { hint: 'caisson send RUN "use the other parser"' });
  const modes = (["steer", "queue", "interrupt"] as const).filter((mode) => given.flag(mode));
  if (modes.length > 1) throw new CaissonError("invalid", `a message is sent in one way, not with --${modes.join(" and --")}`);
  const mode: MessageMode = modes[0] ?? "steer";
  const message = await station.runs.send(run, { text, mode, source: "user" });
  const receipt = given.flag("wait") ? await waitForReceipt(context, station, run, message) : null;
  if (given.flag("json")) await context.stdout.printJson({ message, mode, seenBy: receipt });
  else await context.stdout.print(receipt === null ? line`${message}` : line`${message} was first seen by model call ${receipt}`);
  return 0;
}

async function waitForReceipt(context: CliContext, station: LocalStation, run: string, message: string): Promise<string | null> {
  for await (const stored of station.log.subscribe(runStream(run), { signal: context.interruption.signal })) {
    const event = parseRunEvent(stored);
    if (event.type === "model.requested" && event.data.messages.includes(message)) return event.data.call;
    if (event.type === "run.ended") return null;
  }
  return null;
}

/** `caisson answer RUN allow|always|deny` */
export async function answer(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  const [run = "", word = "", ...text] = given.positionals;
  const answers: Record<string, "allow" | "always" | "deny"> = { allow: "allow", yes: "allow", always: "always", deny: "deny", no: "deny" };
  const chosen = answers[word.toLowerCase()];
  if (!chosen) throw new CaissonError("invalid", `${JSON.stringify(word)} is not an answer`, { hint: "Answer allow, always or deny." });
  const { asked } = await station.runs.facts(run);
  const question = given.option("question") ?? asked[0]?.question;
  const budget = asked.find((each) => each.question === question)?.kind === "budget" && chosen !== "deny";
  const cost = given.option("max-cost");
  const timeout = given.option("timeout");
  const steps = given.option("max-steps");
  const budgets = budget
    ? {
        budgets: {
          ...(await raisedBudgets(station, run)),
          ...(cost === undefined ? {} : { costUsd: parseNumber("max-cost", cost) }),
          ...(timeout === undefined ? {} : { timeMs: parseDuration("timeout", timeout) }),
          ...(steps === undefined ? {} : { steps: parseCount("max-steps", steps) }),
        },
      }
    : {};
  await station.runs.answer(run, {
    answer: chosen,
    by: context.variable("USER") ?? "user",
    ...(question === undefined ? {} : { question }),
    ...(text.length === 0 ? {} : { text: text.join(" ") }),
    ...budgets,
  });
  if (given.flag("json")) await context.stdout.printJson({ run, question, answer: chosen });
  return 0;
}

/** `caisson stop RUN` */
export async function stop(context: CliContext, given: ParsedArguments): Promise<number> {
  await using station = openStation(context);
  for (const run of given.positionals) {
    const isStopped = await stopAndWait(context, station, run);
    if (given.flag("json")) await context.stdout.printJson({ run, stopped: isStopped });
    else if (isStopped) await context.stdout.print(line`${run} stopped`);
    if (isStopped) continue;
    await context.stderr.print(line`caisson: ${run} was asked to stop, and has not ended yet`);
    await context.stderr.print(line`hint: \`caisson attach ${run}\` watches it.`);
    return exitCodeOf(context.interruption.received() ?? "SIGINT");
  }
  return 0;
}

/** How often to look whether the process that was to end the run died over it. */
const DRIVER_CHECK_MS = 2_000;

/** How long whoever drives the run may take to end it; then its sandbox is ended from here, and the driver has as long again to notice. */
const STOP_GRACE_MS = 45_000;

/** False when we were told to end before the run had. Throws `timeout` for a driver that does nothing. */
async function stopAndWait(context: CliContext, station: LocalStation, run: string): Promise<boolean> {
  const by = context.variable("USER") ?? "user";
  const interrupted = context.interruption.signal;
  const beganMs = performance.now();
  let sandboxEnded = false;
  while (!interrupted.aborted) {
    const waitedMs = performance.now() - beganMs;
    if (waitedMs > 2 * STOP_GRACE_MS) throw await driverStuck(station, run);
    if (waitedMs > STOP_GRACE_MS && !sandboxEnded) {
      sandboxEnded = true;
      await endSandboxOf(context, run);
    }
    // Asked for once, however often this is called; whoever finds nobody driving the run ends it.
    await station.runs.stop(run, { by });
    const fromSeq = await station.log.lastSeq(runStream(run));
    const signal = AbortSignal.any([interrupted, AbortSignal.timeout(DRIVER_CHECK_MS)]);
    for await (const event of station.log.subscribe(runStream(run), { fromSeq, signal })) if (event.type === "run.ended") return true;
  }
  return false;
}

async function endSandboxOf(context: CliContext, run: string): Promise<void> {
  const { records } = await createStore({ stateDir: context.stateDir }).list();
  for (const { id } of records.filter(({ spec }) => spec.labels[RUN_LABEL] === run)) await context.station.sandboxes.remove(id);
}

async function driverStuck(station: LocalStation, run: string): Promise<CaissonError> {
  const holder = await station.log.holder(runStream(run));
  return new CaissonError("timeout", `the run ${run} has not ended: what drives it does not answer (${holder?.owner ?? "unknown"})`, {
    hint: "Its sandbox was ended. End that process, then stop the run again.",
  });
}

/** Also of a run whose log is damaged: what can be read of it is shown. */
async function checkThere(station: LocalStation, run: string): Promise<void> {
  if ((await station.log.lastSeq(runStream(run))) === 0) await station.runs.facts(run);
}

async function runNamed(station: LocalStation, name: string | undefined): Promise<string> {
  if (name !== undefined) return name;
  const [newest] = await station.log.streams({ prefix: "run/", limit: 1 });
  if (!newest) throw new CaissonError("not_found", "there is no run yet", { hint: 'Start one: caisson run "…"' });
  return newest.stream.slice("run/".length);
}
