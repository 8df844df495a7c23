import { CaissonError } from "../../contract/error/error.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
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
export async function runChat(context: CliContext, args: ParsedArguments): Promise<number> {
  if (!canAsk(context)) {
    throw new CaissonError("invalid", "a chat needs an interactive terminal", {
      hint: 'In scripts and pipes use `caisson run "…"`, then `caisson send RUN "…"` for further messages.',
    });
  }
  const [agent = "coder"] = args.positionals;
  const continued = args.flag("continue") ? await runToContinue(context, args) : null;
  const model = args.option("model");
  const chat = new Chat({
    context,
    history: await openInputHistory(context),
    continued,
    folder: continued === null ? await folderFrom(context, args) : continued.folder,
    request: (task) => newRunRequest(context, asGivenToRun(args), { agent, task }),
    model: continued === null ? undefined : model,
    defaultModel: model ?? context.config.models.default ?? (await keyedModel(context)),
  });
  await chat.untilLeft();
  const signal = context.interruption.received();
  return signal === null ? 0 : exitCodeOf(signal);
}

/** Returns the station's default model, or undefined if the user has to choose one. */
async function keyedModel({ station }: CliContext): Promise<string | undefined> {
  return (await station.machine.models()).default ?? undefined;
}

/** Checks the folder before the user types anything, so that a wrong folder wastes no input. Throws `invalid`. */
async function folderFrom(context: CliContext, args: ParsedArguments): Promise<string | null> {
  const source = sourceFrom(context, args);
  if (source.kind === "folder" && !args.flag("repo")) await context.refuseWrongPlace(source.path, "repo");
  return source.kind === "folder" ? source.path : null;
}

/** Hides the options that only `run` has. */
function asGivenToRun(args: ParsedArguments): ParsedArguments {
  const isAbsent = (name: string) => optionsOfRunAlone.has(name);
  return {
    positionals: args.positionals,
    optionNames: args.optionNames,
    flag: (name) => !isAbsent(name) && args.flag(name),
    option: (name) => (isAbsent(name) ? undefined : args.option(name)),
    options: (name) => (isAbsent(name) ? [] : args.options(name)),
  };
}

/**
 * Throws `not_found`, `conflict` if another process drives the run, and `invalid` for options that only a new run can
 * have.
 */
async function runToContinue(context: CliContext, args: ParsedArguments): Promise<RunView> {
  const [misplaced] = args.optionNames.filter((name) => name !== "continue" && name !== "model");
  if (misplaced !== undefined || args.positionals.length > 0) {
    const what = misplaced === undefined ? "the agent" : `--${misplaced}`;
    throw new CaissonError("invalid", `${what} cannot be changed with --continue: the run keeps its settings`, {
      hint: "Leave it out, or start a new conversation without --continue.",
    });
  }
  const view = await context.station.runs.get(await runNamed(context, args.option("continue") || undefined));
  const isDriven = view.finish === null && view.status !== "interrupted" && view.status !== "created";
  if (isDriven) {
    throw new CaissonError("conflict", `another process drives ${view.run}`, {
      hint: `Watch it with \`caisson attach ${view.run}\`, or send it a message with \`caisson send ${view.run} "…"\`.`,
    });
  }
  return view;
}
