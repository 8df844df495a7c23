import { CaissonError } from "../../contract/error.ts";
import type { ModelList } from "../../contract/machine-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { nearest } from "../../lib/nearest.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { CliContext } from "../context.ts";
import { parseArguments } from "../options/arguments.ts";
import { runCommands } from "../runs/run-command-specs.ts";
import { undoCommand } from "../sessions/undo-command-spec.ts";
import { bold, dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import type { Conversation } from "./conversation.ts";

/** What a command of a chat works with. Its output is printed above the prompt. */
export interface SlashContext {
  context: CliContext;
  conversation: Conversation;
  /** Named by the options or the configuration, for a run that is not there yet. */
  defaultModel: string | undefined;
  /** Used from the next turn on. */
  chooseModel: (name: string) => void;
  leave: () => void;
}

interface SlashCommand {
  name: string;
  argument?: string;
  summary: string;
  run: (slash: SlashContext, words: readonly string[]) => Promise<void>;
}

const SESSIONS_SHOWN = 10;

export const slashCommands: readonly SlashCommand[] = [
  { name: "diff", argument: "[PATH…]", summary: "show what changed and is not applied; --stat for names only", run: command("diff") },
  { name: "apply", argument: "[PATH…]", summary: "bring the changes into your folder", run: whenIdle("apply", command("apply")) },
  {
    name: "undo",
    summary: "take back what the last turn changed in files; again: the turn before",
    run: whenIdle("undo", command("undo")),
  },
  { name: "model", argument: "[NAME]", summary: "show the model, or choose another for the next turn", run: model },
  { name: "cost", summary: "what this conversation has cost so far", run: cost },
  { name: "new", summary: "begin another conversation in this folder", run: whenIdle("new", begin) },
  { name: "sessions", summary: "other conversations and runs of this folder", run: sessions },
  { name: "help", summary: "show this", run: help },
  { name: "exit", summary: "leave; so does Ctrl-D", run: async ({ leave }) => leave() },
];

/** Throws `invalid` for a command that is none. */
export async function runSlashCommand(slash: SlashContext, input: string): Promise<void> {
  const [name = "", ...words] = input.trim().slice(1).split(/\s+/);
  const found = slashCommands.find((each) => each.name === name);
  if (found) return await found.run(slash, words);
  const near = nearest(
    name,
    slashCommands.map((each) => each.name),
  );
  throw new CaissonError("invalid", `there is no command /${name}`, {
    hint: near === null ? "/help lists them; a message that begins with a slash can begin with a space." : `Did you mean /${near}?`,
  });
}

/** A command of the shell, for this conversation's run. */
function command(name: string): SlashCommand["run"] {
  return async ({ context, conversation }, words) => {
    const run = runOf(conversation);
    const spec = [...runCommands, undoCommand].find(({ path }) => path.join(" ") === name);
    if (!spec) throw new CaissonError("internal", `there is no command ${name}`);
    const { run: perform } = await spec.load();
    await perform(context, parseArguments(spec, [run, ...words]));
  };
}

function runOf({ run }: Conversation): string {
  if (run !== null) return run;
  throw new CaissonError("not_found", "nothing was said yet", { hint: "Type what is to be done." });
}

function whenIdle(name: string, run: SlashCommand["run"]): SlashCommand["run"] {
  return async (slash, words) => {
    if (slash.conversation.state === "idle") return await run(slash, words);
    throw new CaissonError("conflict", `/${name} has to wait: the agent is at work`, { hint: "Ctrl-C holds it, and again stops it." });
  };
}

/** A name that no provider can have, or whose key is missing, is refused here and not with the next message. */
async function model(slash: SlashContext, [name]: readonly string[]): Promise<void> {
  const { context, conversation } = slash;
  const { providers } = await context.station.machine.models(defined({ check: name }));
  if (name !== undefined) slash.chooseModel(name);
  const current = conversation.run === null ? slash.defaultModel : (await context.station.runs.get(conversation.run)).model;
  const chosen = conversation.model ?? current;
  await context.stdout.print(
    chosen === undefined
      ? line`No model is chosen.`
      : line`${bold(chosen)}${conversation.model === null || chosen === current ? "" : dim(" from the next turn on")}`,
  );
  if (name === undefined) await context.stdout.print(modelLines(providers));
}

function modelLines(providers: ModelList["providers"]): Line[] {
  const usable = providers.filter(({ hasKey }) => hasKey).flatMap(({ models }) => models);
  if (usable.length > 0)
    return [...usable.map((each) => line`  ${each}`), dim("/model NAME chooses one of these, or any other of the provider")];
  return [dim(`No key is set: ${providers.map(({ keys }) => keys[0]).join(", ")}. /model PROVIDER/MODEL chooses a model.`)];
}

async function cost({ context, conversation }: SlashContext): Promise<void> {
  const { steps, usage, costUsd, workedMs } = await context.station.runs.get(runOf(conversation));
  const shown = costUsd === null ? "cost unknown" : `$${costUsd.toFixed(4)}`;
  const tokens = `${usage.inputTokens.toLocaleString("en")} tokens in, ${usage.outputTokens.toLocaleString("en")} out`;
  await context.stdout.print(
    line`${bold(shown)} · ${tokens} · ${steps} ${steps === 1 ? "step" : "steps"} · ${showDuration(workedMs)} of work`,
  );
}

async function begin({ context, conversation }: SlashContext): Promise<void> {
  const before = conversation.run;
  conversation.forget();
  await context.stdout.print([
    line`A new conversation: the agent remembers nothing of the last one, and begins from your folder.`,
    ...(before === null ? [] : [dim(`the last one: caisson chat --continue ${before}`)]),
  ]);
}

async function sessions({ context, conversation }: SlashContext): Promise<void> {
  const { runs, total } = await context.station.runs.list({ folder: context.cwd, parent: null, limit: SESSIONS_SHOWN });
  const rows = runs.map(({ run, title, finish, status, updatedAt }) => [
    run === conversation.run ? bold(run) : run,
    finish ?? status,
    `${showDuration(Math.max(0, Date.now() - Date.parse(updatedAt)))} ago`,
    title.split("\n")[0]?.slice(0, 50) ?? "",
  ]);
  await context.stdout.print([
    ...(rows.length === 0 ? [line`There is none yet.`] : table(rows)),
    ...(total > runs.length ? [dim(`and ${total - runs.length} more: caisson ps --all`)] : []),
    ...(rows.length === 0 ? [] : [dim("caisson chat --continue RUN goes on with one")]),
  ]);
}

async function help({ context }: SlashContext): Promise<void> {
  const rows = slashCommands.map(({ name, argument = "", summary }) => [`  /${name} ${argument}`, dim(summary)]);
  const keys = [
    ["  Enter", "send; while the agent works, it is told before its next step"],
    ["  Alt-Enter, \\ Enter", "a new line; what is pasted keeps its lines"],
    ["  @ Tab", "a file of the workspace; Tab also completes commands"],
    ["  Up, Down", "what was typed before"],
    ["  Ctrl-C", "hold the agent, and again: stop it; clear what is typed, and again: leave"],
    ["  Ctrl-D", "leave; what the agent changed stays"],
  ] as const;
  await context.stdout.print([...table(rows), line``, ...table(keys.map(([key, meaning]) => [key, dim(meaning)]))]);
}
