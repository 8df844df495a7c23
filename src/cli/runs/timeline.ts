import type { TimelineFork, TimelineStep } from "../../contract/run/run-timeline.ts";
import { showBytes } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { type Line, line } from "../terminal/line.ts";
import { visibleText } from "../terminal/plain-text.ts";
import { type Cell, table } from "../terminal/table.ts";
import { runNamed } from "./run-named.ts";

const TEXT_CHARACTERS = 60;

/** `caisson timeline [RUN]` */
export async function showTimeline(context: CliContext, args: ParsedArguments): Promise<number> {
  const name = await runNamed(context, args.positionals[0]);
  const timeline = await context.station.runs.timeline(name);
  if (args.flag("json")) {
    await context.stdout.printJson(timeline);
    return 0;
  }
  const { run, from, steps, forks } = timeline;
  if (from !== null) await context.stdout.print(line`${run} was forked from ${from.run} after step ${from.step}.`);
  if (steps.length === 0) await context.stdout.print(line`${run} has taken no step yet.`);
  else await context.stdout.print(table([["STEP", "CHANGED", "COST", "FILES", "WHAT"], ...steps.map(stepRow)]));
  if (forks.length > 0) await context.stdout.print([line``, line`Forks:`, ...forkLines(run, forks)]);
  return 0;
}

function stepRow({ step, files, bytes, costUsd, isStored, text, tools, isInherited }: TimelineStep): Cell[] {
  const changed =
    files === null ? "unknown" : files === 0 ? "nothing" : `${files} ${files === 1 ? "file" : "files"}, ${showBytes(bytes ?? 0)}`;
  const did = [tools.join(", "), visibleText(text.replace(/\s+/g, " ")).slice(0, TEXT_CHARACTERS)].filter(Boolean).join(": ");
  return [`${step}${isInherited ? " ↑" : ""}`, changed, costUsd === null ? "" : `$${costUsd.toFixed(4)}`, isStored ? "stored" : "", did];
}

/** Shows the forks as a tree: each below the run that it was forked from. */
function forkLines(parent: string, forks: readonly TimelineFork[], indent = "  "): Line[] {
  return forks
    .filter(({ from }) => from.run === parent)
    .flatMap((fork) => [line`${indent}${forkText(fork)}`, ...forkLines(fork.run, forks, `${indent}  `)]);
}

function forkText({ run, name, from, isTail, finish, status, steps, costUsd }: TimelineFork): string {
  const cost = costUsd === null ? "unknown cost" : `$${costUsd.toFixed(4)}`;
  const about = isTail ? "what a rewind took back" : `${finish ?? status}, ${cost}`;
  return `${run}${name === null ? "" : ` (${name})`} after step ${from.step}: ${steps} steps, ${about}`;
}
