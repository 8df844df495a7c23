import { CaissonError } from "../../contract/error.ts";
import type { RunView } from "../../contract/run-verbs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { newRunRequest } from "../runs/run-agent.ts";
import { runNamed } from "../runs/run-named.ts";
import { canAsk } from "../terminal/ask-yes.ts";
import { exitCodeOf } from "../terminal/signals.ts";
import { optionsOfRunAlone } from "./chat-options.ts";
import { Chat } from "./chat-terminal.ts";
import { openInputHistory } from "./input-history.ts";

/** `caisson chat [AGENT]`, `caisson chat --continue[=RUN]` */
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (!canAsk(context)) {
    throw new CaissonError("invalid", "a chat needs a terminal to be typed into and shown on", {
      hint: 'In scripts and pipes use `caisson run "…"`, and `caisson send RUN "…"` for what comes next.',
    });
  }
  const [agent = "coder"] = given.positionals;
  const continued = given.flag("continue") ? await runToContinue(context, given) : null;
  const model = given.option("model");
  const chat = new Chat({
    context,
    history: await openInputHistory(context),
    continued,
    folder: continued === null ? await folderFrom(context, given) : continued.folder,
    request: (task) => newRunRequest(context, asGivenToRun(given), { agent, task }),
    model: continued === null ? undefined : model,
    defaultModel: model ?? context.config.models.default ?? (await keyedModel(context)),
  });
  await chat.untilLeft();
  const signal = context.interruption.received();
  return signal === null ? 0 : exitCodeOf(signal);
}

/** The station's default model; undefined where one has to be chosen. */
async function keyedModel({ station }: CliContext): Promise<string | undefined> {
  return (await station.machine.models()).default ?? undefined;
}

/** Before anything is typed that a wrong folder would waste. Throws `invalid`. */
async function folderFrom(context: CliContext, given: ParsedArguments): Promise<string | null> {
  const source = sourceFrom(context, given);
  if (source.kind === "folder" && !given.flag("repo")) await context.refuseWrongPlace(source.path, "repo");
  return source.kind === "folder" ? source.path : null;
}

/** What `run` alone has was not given. */
function asGivenToRun(given: ParsedArguments): ParsedArguments {
  const isAbsent = (name: string) => optionsOfRunAlone.has(name);
  return {
    positionals: given.positionals,
    optionNames: given.optionNames,
    flag: (name) => !isAbsent(name) && given.flag(name),
    option: (name) => (isAbsent(name) ? undefined : given.option(name)),
    options: (name) => (isAbsent(name) ? [] : given.options(name)),
  };
}

/**
 * Throws `not_found`, `conflict` for a run that another process drives, `invalid` for what a new run alone can have.
 */
async function runToContinue(context: CliContext, given: ParsedArguments): Promise<RunView> {
  const [misplaced] = given.optionNames.filter((name) => name !== "continue" && name !== "model");
  if (misplaced !== undefined || given.positionals.length > 0) {
    const what = misplaced === undefined ? "the agent" : `--${misplaced}`;
    throw new CaissonError("invalid", `${what} cannot be changed with --continue: the run continues as it began`, {
      hint: "Leave it out, or begin another conversation without --continue.",
    });
  }
  const view = await context.station.runs.get(await runNamed(context, given.option("continue") || undefined));
  const isDriven = view.finish === null && view.status !== "interrupted" && view.status !== "created";
  if (isDriven) {
    throw new CaissonError("conflict", `another process drives ${view.run}`, {
      hint: `Watch it with \`caisson attach ${view.run}\`, or tell it something with \`caisson send ${view.run} "…"\`.`,
    });
  }
  return view;
}
