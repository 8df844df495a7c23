import { CaissonError } from "../../contract/error.ts";
import { ContinueRun } from "../../contract/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { parseChoice } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { textGiven } from "./given-text.ts";
import { boundsFrom } from "./run-bounds.ts";
import { runNamed } from "./run-named.ts";
import { showDrivenRun } from "./show-driven-run.ts";

/** What can be said anew with each turn; everything else is as the run began. */
const ofEachTurn = new Set([
  "continue",
  "model",
  "max-cost",
  "max-tokens",
  "max-steps",
  "timeout",
  "on-ask",
  "on-budget",
  "detach",
  "json",
  "task-file",
]);

/** `caisson run --continue[=RUN] TEXT`: the next turn of a run that has ended. */
export async function continueRun(context: CliContext, given: ParsedArguments): Promise<number> {
  refuseSettings(given);
  const { text } = await textGiven(context, given, { what: "message", wordsBefore: 0 });
  const name = await runNamed(context, given.option("continue") || undefined);
  const detached = given.flag("detach");
  const request = checkOptions(ContinueRun, {
    text,
    by: context.variable("USER") ?? "user",
    budgets: boundsFrom(given),
    attended: context.stdout.isTerminal || detached,
    detached,
    ...defined({
      model: given.option("model"),
      onAsk: choice(given, "on-ask", ["wait", "deny"]),
      onBudget: choice(given, "on-budget", ["ask", "stop"]),
    }),
  });
  const letGo = new AbortController();
  const { run, seq } = await context.station.runs.continue(name, request, { signal: letGo.signal });
  if (!detached) return await showDrivenRun(context, run, { json: given.flag("json"), letGo, fromSeq: seq + 1 });
  await (given.flag("json") ? context.stdout.printJson({ run }) : context.stdout.print(line`${run}`));
  return 0;
}

function refuseSettings(given: ParsedArguments): void {
  const [first] = given.optionNames.filter((name) => !ofEachTurn.has(name));
  if (first === undefined) return;
  throw new CaissonError("invalid", `--${first} cannot be changed with --continue: the run continues as it began`, {
    hint: "Leave it out, or start another run in the same session: caisson run --session NAME …",
  });
}

function choice<Word extends string>(given: ParsedArguments, option: string, words: readonly Word[]): Word | undefined {
  const text = given.option(option);
  return text === undefined ? undefined : parseChoice(...words)(option, text);
}
