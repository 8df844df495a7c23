import { CaissonError } from "../../contract/error/error.ts";
import { ContinueRun } from "../../contract/run/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { parseChoice } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { textGiven } from "./read-task-text.ts";
import { boundsFrom } from "./run-bounds.ts";
import { runNamed } from "./run-named.ts";
import { showDrivenRun } from "./show-run.ts";

/** Options that may change with each turn; all other settings stay. */
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

/** `caisson run --continue[=RUN] TEXT`: gives a finished run another turn. */
export async function continueRun(context: CliContext, args: ParsedArguments): Promise<number> {
  refuseSettings(args);
  const { text } = await textGiven(context, args, { what: "message", wordsBefore: 0 });
  const name = await runNamed(context, args.option("continue") || undefined);
  const detached = args.flag("detach");
  const request = checkOptions(ContinueRun, {
    text,
    by: context.variable("USER") ?? "user",
    budgets: boundsFrom(args),
    attended: context.stdout.isTerminal || detached,
    detached,
    ...defined({
      model: args.option("model"),
      onAsk: choice(args, "on-ask", ["wait", "deny"]),
      onBudget: choice(args, "on-budget", ["ask", "stop"]),
    }),
  });
  const releaseController = new AbortController();
  const { run, seq } = await context.station.runs.continue(name, request, { signal: releaseController.signal });
  if (!detached) return await showDrivenRun(context, run, { json: args.flag("json"), releaseController, fromSeq: seq + 1 });
  await (args.flag("json") ? context.stdout.printJson({ run }) : context.stdout.print(line`${run}`));
  return 0;
}

function refuseSettings(args: ParsedArguments): void {
  const [first] = args.optionNames.filter((name) => !ofEachTurn.has(name));
  if (first === undefined) return;
  throw new CaissonError("invalid", `--${first} cannot be changed with --continue: the run keeps its settings`, {
    hint: "Leave it out, or start another run in the same session: caisson run --session NAME …",
  });
}

export function choice<Word extends string>(args: ParsedArguments, option: string, words: readonly Word[]): Word | undefined {
  const text = args.option(option);
  return text === undefined ? undefined : parseChoice(...words)(option, text);
}
