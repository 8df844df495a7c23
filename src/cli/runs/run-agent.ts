import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { StartRun, type StartRunInput } from "../../contract/run-verbs.ts";
import type { WorkspaceSource } from "../../contract/session.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { hidingFrom } from "../options/hiding-asked.ts";
import { checkOptions } from "../options/option-names.ts";
import { inputsFrom, parseChoice, parseCount, parseDuration, parseNumber } from "../options/option-values.ts";
import { pairs } from "../options/pairs-asked.ts";
import { imageFrom, runtimeFrom, sandboxSettingsFrom } from "../options/spec-options.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { atStep } from "../sessions/step-of-run.ts";
import { line } from "../terminal/line.ts";
import { continueRun } from "./continue-run.ts";
import { textGiven } from "./given-text.ts";
import { priorityFrom, startAtFrom, tellQueued } from "./queue-commands.ts";
import { showDrivenRun } from "./show-driven-run.ts";

/** `caisson run [AGENT] TASK`, `caisson run --continue[=RUN] TEXT` */
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.flag("continue")) return await continueRun(context, given);
  const letGo = new AbortController();
  const detached = given.flag("detach");
  const request = checkOptions(StartRun, { ...(await requestFrom(context, given)), detached });
  const started = await context.station.runs.start(request, { signal: letGo.signal });
  const { run: id } = started;
  if (!given.flag("json")) await tellQueued(context, started);
  if (!detached) return await showDrivenRun(context, id, { json: given.flag("json"), letGo });
  await (given.flag("json") ? context.stdout.printJson({ run: id }) : context.stdout.print(line`${id}`));
  return 0;
}

async function requestFrom(context: CliContext, given: ParsedArguments): Promise<StartRunInput> {
  const { before, text: task } = await textGiven(context, given, { what: "task", wordsBefore: 1 });
  await checkWords(context, given.flag("task-file") ? [...before, "-"] : given.positionals);
  return await newRunRequest(context, given, { agent: before[0] ?? "coder", task });
}

/** Words without quotes, and an agent without a task, look like something else than they mean. */
async function checkWords(context: CliContext, words: readonly string[]): Promise<void> {
  const [first = ""] = words;
  const isPath = first.endsWith(".prompt") || first.includes("/");
  if (isPath || /\s/.test(first)) return;
  const names = [...new Set((await context.station.agents.list()).map(({ name }) => name))];
  const isAgent = names.includes(first);
  if (words.length === 1 && isAgent) {
    throw new CaissonError("invalid", `${first} is an agent, and there is no task for it`, {
      hint: `Say what it is to do: caisson run ${first} "…"`,
    });
  }
  if (words.length === 1 || isAgent) return;
  throw new CaissonError("not_found", `there is no agent ${JSON.stringify(first)}`, {
    hint: `If these words are the task, quote them: caisson run "${words.join(" ")}". There are the agents ${names.join(", ")}.`,
  });
}

/** What a run is asked for, by the options of `run` or of `chat`. */
export async function newRunRequest(
  context: CliContext,
  given: ParsedArguments,
  { agent, task }: { agent: string; task: string },
): Promise<StartRunInput> {
  const fileFrom = (option: string) => {
    const path = given.option(option);
    return path === undefined || path === "" ? undefined : resolve(context.cwd, path);
  };
  const session = sessionFrom(given);
  const from = fromGiven(given);
  return {
    task,
    agent,
    input: inputsFrom(given),
    labels: pairs(context, given.options("label"), "label"),
    budgets: budgetsFrom(given),
    settings: settingsFrom(context, given),
    sourceNamed: given.flag("repo"),
    attended: context.stdout.isTerminal || given.flag("detach"),
    ...defined({
      model: given.option("model"),
      name: given.option("name"),
      priority: given.option("priority") === undefined ? undefined : priorityFrom("--priority", given.option("priority") ?? ""),
      startAt: given.option("start-at") === undefined ? undefined : startAtFrom(given.option("start-at") ?? ""),
      record: fileFrom("record"),
      replay: fileFrom("replay"),
      session,
      from,
      source: from === undefined ? await sourceOfNew(context, given, session?.id) : undefined,
    }),
  };
}

/** The name under which a workspace is found again, and whose it is. Undefined: the run's own. */
function sessionFrom(given: ParsedArguments): StartRunInput["session"] {
  const session = given.option("session");
  const workflow = given.option("workflow");
  if (session !== undefined && workflow !== undefined)
    throw new CaissonError("invalid", "a run works in a session or in a workflow, not in both");
  if (session !== undefined) return { id: session, scope: "session" };
  return workflow === undefined ? undefined : { id: `workflow-${workflow}`, scope: "workflow" };
}

/** Whose files it begins with, in a copy. */
function fromGiven(given: ParsedArguments): StartRunInput["from"] {
  const word = given.option("from");
  if (word === undefined) return undefined;
  if (given.option("repo") !== undefined || given.flag("no-workspace"))
    throw new CaissonError("invalid", "--from brings the files of another run, and --repo or --no-workspace others");
  const { name, at } = atStep(word);
  return { session: name, ...defined({ at }) };
}

/** Undefined for a session that has its workspace already. */
async function sourceOfNew(context: CliContext, given: ParsedArguments, session: string | undefined): Promise<WorkspaceSource | undefined> {
  if (session === undefined || given.option("repo") !== undefined) return sourceFrom(context, given);
  try {
    await context.station.sessions.get(session);
    return undefined;
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "not_found") throw error;
    return sourceFrom(context, given);
  }
}

export function settingsFrom(context: CliContext, given: ParsedArguments): NonNullable<StartRunInput["settings"]> {
  const parse = <Value>(option: string, read: (name: string, text: string) => Value): Value | undefined => {
    const text = given.option(option);
    return text === undefined ? undefined : read(option, text);
  };
  return {
    ...sandboxSettingsFrom(context, given),
    mountGuard: { ...hidingFrom(context, given), allowHooks: given.flag("allow-hooks") },
    ...defined({
      runtime: runtimeFrom(given),
      ociRuntime: given.option("oci-runtime"),
      image: parse("image", (_, image) => imageFrom(image, context.cwd)),
      snapshot: given.option("snapshot"),
      allowRoot: given.flag("allow-root") || undefined,
      stationAccess: given.flag("station-access") || undefined,
      timeoutMs: parse("timeout", parseDuration),
      maxSteps: parse("max-steps", parseCount),
      permissions: parse("permissions", parseChoice("strict")),
      guardian: parse("guardian", parseChoice("on", "off")),
      onAsk: parse("on-ask", parseChoice("wait", "deny")),
      onBudget: parse("on-budget", parseChoice("ask", "stop")),
    }),
  };
}

export function budgetsFrom(given: ParsedArguments): NonNullable<StartRunInput["budgets"]> {
  const cost = given.option("max-cost");
  const tokens = given.option("max-tokens");
  return defined({
    costUsd: cost === undefined ? undefined : parseNumber("max-cost", cost),
    tokens: tokens === undefined ? undefined : parseCount("max-tokens", tokens),
  });
}
