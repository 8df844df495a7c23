import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { StartRun, type StartRunInput } from "../../contract/run/run-verbs.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { inputsFrom, parseChoice, parseCount, parseDuration, parseNumber } from "../options/option-values.ts";
import { pairs } from "../options/parse-pairs.ts";
import { sandboxSettingsFrom, startSettingsFrom } from "../options/parse-sandbox-options.ts";
import { cleanupFrom } from "../options/workspace-options.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { atStep } from "../sessions/step-of-run.ts";
import { line } from "../terminal/line.ts";
import { continueRun } from "./continue-run.ts";
import { priorityFrom, startAtFrom, tellQueued } from "./queue-commands.ts";
import { textGiven } from "./read-task-text.ts";
import { showDrivenRun } from "./show-run.ts";

/** `caisson run [AGENT] TASK`, `caisson run --continue[=RUN] TEXT` */
export async function runAgent(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.flag("continue")) return await continueRun(context, args);
  const releaseController = new AbortController();
  const detached = args.flag("detach");
  const request = checkOptions(StartRun, { ...(await requestFrom(context, args)), detached });
  const started = await context.station.runs.start(request, { signal: releaseController.signal });
  const { run: id } = started;
  if (!args.flag("json")) await tellQueued(context, started);
  if (!detached) return await showDrivenRun(context, id, { json: args.flag("json"), releaseController });
  await (args.flag("json") ? context.stdout.printJson({ run: id }) : context.stdout.print(line`${id}`));
  return 0;
}

async function requestFrom(context: CliContext, args: ParsedArguments): Promise<StartRunInput> {
  const { before, text: task } = await textGiven(context, args, { what: "task", wordsBefore: 1 });
  await rejectUnquotedTask(context, args.flag("task-file") ? [...before, "-"] : args.positionals);
  return await newRunRequest(context, args, { agent: before[0] ?? "coder", task });
}

/** Throws for unquoted words and for an agent without a task, which would otherwise be misread. */
async function rejectUnquotedTask(context: CliContext, words: readonly string[]): Promise<void> {
  const [first = ""] = words;
  const isPath = first.endsWith(".prompt") || first.includes("/");
  if (isPath || /\s/.test(first)) return;
  const names = [...new Set((await context.station.agents.list()).map(({ name }) => name))];
  const isAgent = names.includes(first);
  if (words.length === 1 && isAgent) {
    throw new CaissonError("invalid", `${first} is an agent, but there is no task`, {
      hint: `Add a task: caisson run ${first} "…"`,
    });
  }
  if (words.length === 1 || isAgent) return;
  throw new CaissonError("not_found", `there is no agent ${JSON.stringify(first)}`, {
    hint: `If these words are the task, quote them: caisson run "${words.join(" ")}". Available agents: ${names.join(", ")}.`,
  });
}

/** Builds the request for a new run from the options of `run` or `chat`. */
export async function newRunRequest(
  context: CliContext,
  args: ParsedArguments,
  { agent, task }: { agent: string; task: string },
): Promise<StartRunInput> {
  const fileFrom = (option: string) => {
    const path = args.option(option);
    return path === undefined || path === "" ? undefined : resolve(context.cwd, path);
  };
  const session = sessionFrom(args);
  const from = fromGiven(args);
  return {
    task,
    agent,
    input: inputsFrom(args),
    labels: pairs(context, args.options("label"), "label"),
    budgets: budgetsFrom(args),
    settings: settingsFrom(context, args),
    sourceNamed: args.flag("repo"),
    attended: context.stdout.isTerminal || args.flag("detach"),
    ...defined({
      model: args.option("model"),
      name: args.option("name"),
      priority: args.option("priority") === undefined ? undefined : priorityFrom("--priority", args.option("priority") ?? ""),
      startAt: args.option("start-at") === undefined ? undefined : startAtFrom(args.option("start-at") ?? ""),
      record: fileFrom("record"),
      replay: fileFrom("replay"),
      session,
      cleanup: cleanupFrom(args),
      from,
      source: from === undefined ? await sourceOfNew(context, args, session?.id) : undefined,
    }),
  };
}

/** Returns the session that --session or --workflow names. Undefined if the run gets its own. */
function sessionFrom(args: ParsedArguments): StartRunInput["session"] {
  const session = args.option("session");
  const workflow = args.option("workflow");
  if (session !== undefined && workflow !== undefined) throw new CaissonError("invalid", "--session and --workflow are mutually exclusive");
  if (session !== undefined) return { id: session, scope: "session" };
  return workflow === undefined ? undefined : { id: `workflow-${workflow}`, scope: "workflow" };
}

/** Returns the session whose files the run starts with a copy of. */
function fromGiven(args: ParsedArguments): StartRunInput["from"] {
  const word = args.option("from");
  if (word === undefined) return undefined;
  if (args.option("repo") !== undefined || args.flag("no-workspace"))
    throw new CaissonError("invalid", "--from cannot be combined with --repo or --no-workspace");
  const { name, at } = atStep(word);
  return { session: name, ...defined({ at }) };
}

/** Returns the source for a new session; undefined if the session already exists. */
async function sourceOfNew(context: CliContext, args: ParsedArguments, session: string | undefined): Promise<WorkspaceSource | undefined> {
  if (session === undefined || args.option("repo") !== undefined) return sourceFrom(context, args);
  try {
    await context.station.sessions.get(session);
    return undefined;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
    return sourceFrom(context, args);
  }
}

export function settingsFrom(context: CliContext, args: ParsedArguments): NonNullable<StartRunInput["settings"]> {
  const parse = <Value>(option: string, read: (name: string, text: string) => Value): Value | undefined => {
    const text = args.option(option);
    return text === undefined ? undefined : read(option, text);
  };
  return {
    ...sandboxSettingsFrom(context, args),
    ...startSettingsFrom(context, args),
    ...defined({
      timeoutMs: parse("timeout", parseDuration),
      maxSteps: parse("max-steps", parseCount),
      permissions: parse("permissions", parseChoice("strict")),
      guardian: parse("guardian", parseChoice("on", "off")),
      onAsk: parse("on-ask", parseChoice("wait", "deny")),
      onBudget: parse("on-budget", parseChoice("ask", "stop")),
    }),
  };
}

export function budgetsFrom(args: ParsedArguments): NonNullable<StartRunInput["budgets"]> {
  const cost = args.option("max-cost");
  const tokens = args.option("max-tokens");
  return defined({
    costUsd: cost === undefined ? undefined : parseNumber("max-cost", cost),
    tokens: tokens === undefined ? undefined : parseCount("max-tokens", tokens),
  });
}
