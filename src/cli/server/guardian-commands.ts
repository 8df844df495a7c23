import type { GuardianExplanation, GuardianLogEntry, GuardianStanding } from "../../contract/guardian/guardian.ts";
import type { GuardianFinding } from "../../contract/guardian/guardian-event.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseCount } from "../options/option-values.ts";
import { bold, dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const TITLE_CHARACTERS_MAX = 50;

/** `caisson guardian status` */
export async function status(context: CliContext, args: ParsedArguments): Promise<number> {
  const { stdout, station } = context;
  const found = await station.guardian.status();
  if (args.flag("json")) {
    await stdout.printJson(found);
    return 0;
  }
  if (found.runs.length === 0) await stdout.print(line`No active runs.`);
  else await stdout.print(table([["RUN", "AGENT", "STEPS", "IDLE", "COHERENCE", "AT MOST", "TASK"], ...found.runs.map(rowOf)]));
  for (const { run, findings } of found.runs) for (const each of findings) await stdout.print(line`${run}: ${each.text}`);
  if (found.settings.watch === "none") await stdout.print(dim("The guardian is switched off (guardian.watch in the configuration)."));
  else if (!found.running) await stdout.print(dim("No station is watching these runs; start one: caisson up"));
  return 0;
}

function rowOf({ run, agent, steps, idleSteps, coherence, atMost, watched, why, title }: GuardianStanding): string[] {
  return [run, agent, String(steps), String(idleSteps), coherence.toFixed(2), watched ? atMost : `unwatched: ${why}`, short(title)];
}

/** `caisson guardian log` */
export async function log(context: CliContext, args: ParsedArguments): Promise<number> {
  const run = args.positionals[0];
  const limitOption = args.option("limit");
  const limit = limitOption === undefined ? undefined : parseCount("limit", limitOption);
  const decisions = await context.station.guardian.log(defined({ run, limit }));
  if (args.flag("json")) await context.stdout.printJson(decisions);
  else if (decisions.length === 0) await context.stdout.print(line`The guardian has not acted${run === undefined ? "" : " on this run"}.`);
  else await context.stdout.print(table([["AT", "RUN", "ACTION", "COHERENCE", "EFFECT", "WHY"], ...decisions.map(entryOf)]));
  return 0;
}

function entryOf({ at, run, action, coherence, effect, text }: GuardianLogEntry): string[] {
  return [at, run, action, coherence.toFixed(2), effect ?? "unknown so far", short(text)];
}

/** `caisson guardian explain RUN` */
export async function explain(context: CliContext, args: ParsedArguments): Promise<number> {
  const explanation = await context.station.guardian.explain(args.positionals[0] ?? "");
  if (args.flag("json")) await context.stdout.printJson(explanation);
  else for (const each of linesOf(explanation)) await context.stdout.print(each);
  return 0;
}

/** Formats an explanation. `line` escapes control characters in what an agent or a judge wrote. */
function* linesOf({ standing, decisions, judgements }: GuardianExplanation): Generator<Line> {
  const { run, why, atMost, steps, idleSteps, progress, coherence, findings, judge } = standing;
  yield line`${bold(run)} ${short(standing.title)}`;
  yield line`watched    ${why === null ? `yes; at most: ${atMost}` : `no: ${why}`}`;
  yield line`steps      ${String(steps)}, ${String(idleSteps)} since the last progress: ${progress.text} ${dim(`event ${progress.event}`)}`;
  yield line`coherence  ${coherence.toFixed(2)}`;
  if (judge.calls > 0) yield line`judge      asked ${String(judge.calls)} times, $${judge.costUsd.toFixed(4)}`;
  for (const each of findings) yield findingLine(each);
  for (const { decision, at, action, text, event, effect, effectText, ...decided } of decisions) {
    yield line``;
    yield line`${bold(action)} ${text} ${dim(`${decision}, ${at}, event ${event}, coherence ${decided.coherence}`)}`;
    for (const each of decided.findings) yield findingLine(each);
    yield line`  effect     ${effect ?? "unknown so far"}${effectText === null ? "" : `: ${effectText}`}`;
  }
  for (const { event, coherence: score, text } of judgements) yield dim(`judge, event ${event}: ${score ?? "no usable answer"}: ${text}`);
}

function findingLine({ detector, severity, text, events }: GuardianFinding): Line {
  const numbers = events.length === 0 ? "" : `, events ${events.join(" ")}`;
  return line`  ${detector.padEnd(11)} ${text} ${dim(`severity ${severity}${numbers}`)}`;
}

const short = (text: string) => (text.length > TITLE_CHARACTERS_MAX ? `${text.slice(0, TITLE_CHARACTERS_MAX - 1)}…` : text);
