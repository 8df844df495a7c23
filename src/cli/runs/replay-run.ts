import { CaissonError } from "../../contract/error/error.ts";
import {
  type ReplayDifference,
  type ReplayDrift,
  type ReplayEvent,
  type ReplayedStep,
  type ReplayResult,
  ReplayRun,
} from "../../contract/run/run-replay.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { parseStep } from "../sessions/step-of-run.ts";
import { type Line, line } from "../terminal/line.ts";
import { runNamed } from "./run-named.ts";

/** `caisson replay RUN` */
export async function replayRun(context: CliContext, args: ParsedArguments): Promise<number> {
  const liveFrom = args.option("live-from");
  const request = checkOptions(ReplayRun, {
    ignore: [...args.options("ignore")],
    keep: args.flag("keep"),
    ...defined({
      // The schema rejects other words.
      tools: args.option("tools") as ReplayRun["tools"] | undefined,
      liveFrom: liveFrom === undefined ? undefined : parseStep("live-from", liveFrom),
    }),
  });
  const run = await runNamed(context, args.positionals[0]);
  let result: ReplayResult | null = null;
  for await (const event of context.station.runs.replay(run, { ...request, signal: context.interruption.signal })) {
    if (args.flag("json")) await context.stdout.printJson(event);
    else await showEvent(context, event);
    if ("result" in event) result = event.result;
  }
  if (result === null) throw new CaissonError("internal", `the replay of ${run} ended without a result`);
  return result.isSame ? 0 : 1;
}

async function showEvent({ stdout, stderr }: CliContext, event: ReplayEvent): Promise<void> {
  if ("progress" in event) await stderr.print(line`${event.progress}`);
  else if ("step" in event) for (const each of stepLines(event.step)) await stderr.print(each);
  else for (const each of resultLines(event.result)) await stdout.print(each);
}

function stepLines({ step, calls }: ReplayedStep): Line[] {
  const callLines = calls.map(({ call, name, isSame, why }) => {
    if (isSame === null) return line`  ${call} ${name}: not run again, because ${why ?? "it cannot"}`;
    return line`  ${call} ${name}: ${isSame ? "same" : "different"}`;
  });
  return [line`step ${step}`, ...callLines];
}

function resultLines(result: ReplayResult): Line[] {
  const { difference, drift, notCompared, session, fork } = result;
  return [
    ...(difference === null ? [] : differenceLines(difference)),
    ...drift.flatMap(driftLines),
    ...notCompared.map((text) => line`Not compared: ${text}.`),
    verdict(result),
    ...(session === null ? [] : [line`The files are in the session ${session}: caisson diff ${session}`]),
    ...(fork === null ? [] : [line`It continues live as ${fork}: caisson attach ${fork}`]),
  ];
}

function verdict({ run, tools, steps, events, isSame, difference, drift }: ReplayResult): Line {
  const took = steps === 1 ? "1 step" : `${steps} steps`;
  if (isSame && tools === "live") return line`${run}: the tools gave the same results in ${took}.`;
  if (isSame) return line`${run}: all ${events} events of ${took} came out the same.`;
  if (difference !== null) return line`${run}: step ${difference.step} is the first with another event.`;
  return line`${run}: step ${drift[0]?.step ?? 0} is the first with other results.`;
}

function differenceLines({ step, seq, recorded, replayed }: ReplayDifference): Line[] {
  const where = seq === null ? line`Step ${step}, after the last event:` : line`Step ${step}, event ${seq}:`;
  return [where, line`- ${recorded ?? "(the recording ends)"}`, line`+ ${replayed}`];
}

function driftLines({ step, call, name, arguments: args, recorded, live, diff }: ReplayDrift): Line[] {
  const outcome = recorded.outcome === live.outcome ? [] : [line`- ${recorded.outcome}`, line`+ ${live.outcome}`];
  const files = [
    ...recorded.files.filter((file) => !live.files.includes(file)).map((file) => line`- ${file}`),
    ...live.files.filter((file) => !recorded.files.includes(file)).map((file) => line`+ ${file}`),
  ];
  return [
    line`Step ${step}, ${call} ${name} ${args}:`,
    ...outcome,
    ...files,
    ...(diff === "" ? [] : diff.split("\n").map((text) => line`${text}`)),
  ];
}
