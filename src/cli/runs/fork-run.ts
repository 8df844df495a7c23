import { ForkRun, type RunView } from "../../contract/run/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { parseCount } from "../options/option-values.ts";
import { pairs } from "../options/parse-pairs.ts";
import { atStep } from "../sessions/step-of-run.ts";
import { dim, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { choice } from "./continue-run.ts";
import { boundsFrom } from "./run-bounds.ts";
import { runNamed } from "./run-named.ts";
import { showDrivenRun } from "./show-run.ts";

/** `caisson fork [RUN[@STEP]]`, and `/fork` in a chat */
export async function forkRun(context: CliContext, args: ParsedArguments): Promise<number> {
  const [word] = args.positionals;
  const { name, at } = word === undefined ? { name: undefined } : atStep(word);
  const run = await runNamed(context, name === "" ? undefined : name);
  const number = args.option("number");
  const count = number === undefined ? 1 : parseCount("number", number);
  // Several would mix their output.
  const detached = args.flag("detach") || count > 1;
  const request = checkOptions(ForkRun, {
    count,
    by: context.variable("USER") ?? "user",
    labels: pairs(context, args.options("label"), "label"),
    budgets: boundsFrom(args),
    attended: context.stdout.isTerminal || detached,
    detached,
    ...defined({
      at,
      text: args.option("send"),
      model: args.option("model"),
      name: args.option("name"),
      onAsk: choice(args, "on-ask", ["wait", "deny"]),
      onBudget: choice(args, "on-budget", ["ask", "stop"]),
    }),
  });
  const releaseController = new AbortController();
  const forks = await context.station.runs.fork(run, request, { signal: releaseController.signal });
  const [fork] = forks;
  if (fork !== undefined && !detached && !isWaiting(fork)) {
    const fromSeq = (fork.forked?.seq ?? 0) + 1;
    return await showDrivenRun(context, fork.run, { json: args.flag("json"), releaseController, fromSeq });
  }
  await (args.flag("json") ? context.stdout.printJson({ runs: forks.map(rowOf) }) : printForks(context, forks));
  return 0;
}

const isWaiting = ({ paused }: RunView) => paused?.why === "forked";

function rowOf(view: RunView) {
  const { run, name, session, model, forked } = view;
  return { run, name, session, model, from: { run: forked?.run, step: forked?.step }, isWaiting: isWaiting(view) };
}

async function printForks(context: CliContext, forks: readonly RunView[]): Promise<void> {
  const rows = forks.map((fork) => [
    fork.run,
    fork.name ?? "",
    dim(`${fork.forked?.run}@${fork.forked?.step}`),
    isWaiting(fork) ? "waits for a message" : "works in the background",
  ]);
  await context.stdout.print(table(rows));
  const [first] = forks;
  if (first === undefined) return;
  const hint = isWaiting(first) ? `caisson send ${first.run} "…"` : `caisson attach ${first.run}`;
  await context.stderr.print(line`hint: Run \`${hint}\`${isWaiting(first) ? " to continue it." : " to watch it."}`);
}
