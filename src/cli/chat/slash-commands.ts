import { CaissonError } from "../../contract/error/error.ts";
import type { ModelList } from "../../contract/machine/machine-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { nearest } from "../../lib/nearest.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { CliContext } from "../context.ts";
import { parseArguments } from "../options/arguments.ts";
import { forkCommands } from "../runs/define-fork-commands.ts";
import { runCommands } from "../runs/define-run-commands.ts";
import { undoCommand } from "../sessions/define-undo-command.ts";
import { parseStep } from "../sessions/step-of-run.ts";
import { bold, dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import type { Conversation } from "./conversation.ts";

/** The context of a slash command. Its output is printed above the prompt. */
export interface SlashContext {
  context: CliContext;
  conversation: Conversation;
  /** The model from the options or the configuration, for a run that does not exist yet. */
  defaultModel: string | undefined;
  /** Chooses the model for the next turn. */
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
  { name: "diff", argument: "[PATH…]", summary: "show unapplied changes; --stat for names only", run: command("diff") },
  { name: "apply", argument: "[PATH…]", summary: "apply the changes to your folder", run: whenIdle("apply", command("apply")) },
  {
    name: "undo",
    summary: "undo the last turn's file changes; repeat to undo the turn before",
    run: whenIdle("undo", command("undo")),
  },
  { name: "rewind", argument: "STEP", summary: "take conversation and files back to a step", run: whenIdle("rewind", rewind) },
  {
    name: "fork",
    argument: "[@STEP] [TEXT]",
    summary: "continue in a copy of this conversation, also after a step",
    run: whenIdle("fork", fork),
  },
  { name: "model", argument: "[NAME]", summary: "show the model, or choose another for the next turn", run: model },
  { name: "cost", summary: "show what this conversation has cost so far", run: cost },
  { name: "new", summary: "start another conversation in this folder", run: whenIdle("new", begin) },
  { name: "sessions", summary: "list other conversations and runs in this folder", run: sessions },
  { name: "help", summary: "show this", run: help },
  { name: "exit", summary: "leave; so does Ctrl-D", run: async ({ leave }) => leave() },
];

/** Throws `invalid` for an unknown command. */
export async function runSlashCommand(slash: SlashContext, input: string): Promise<void> {
  const [name = "", ...words] = input.trim().slice(1).split(/\s+/);
  const found = slashCommands.find((each) => each.name === name);
  if (found) return await found.run(slash, words);
  const near = nearest(
    name,
    slashCommands.map((each) => each.name),
  );
  throw new CaissonError("invalid", `there is no command /${name}`, {
    hint:
      near === null
        ? "Type /help for a list. To send a message that begins with a slash, put a space before it."
        : `Did you mean /${near}?`,
  });
}

/** Runs a command of the shell on this conversation's run. */
function command(name: string): SlashCommand["run"] {
  return async ({ context, conversation }, words) => {
    const run = runOf(conversation);
    const definition = [...runCommands, ...forkCommands, undoCommand].find(({ path }) => path.join(" ") === name);
    if (!definition) throw new CaissonError("internal", `there is no command ${name}`);
    const runCommand = await definition.load();
    await runCommand(context, parseArguments(definition, [run, ...words]));
  };
}

function runOf({ run }: Conversation): string {
  if (run !== null) return run;
  throw new CaissonError("not_found", "this conversation has no run yet", { hint: "Type a task first." });
}

function whenIdle(name: string, run: SlashCommand["run"]): SlashCommand["run"] {
  return async (slash, words) => {
    if (slash.conversation.state === "idle") return await run(slash, words);
    throw new CaissonError("conflict", `/${name} has to wait until the agent has finished`, {
      hint: "Press Ctrl-C to hold the agent, and again to stop it.",
    });
  };
}

/** Rejects an unknown model or a missing key here rather than with the next message. */
async function model(slash: SlashContext, [name]: readonly string[]): Promise<void> {
  const { context, conversation } = slash;
  const { providers } = await context.station.machine.models(defined({ check: name }));
  if (name !== undefined) slash.chooseModel(name);
  const current = conversation.run === null ? slash.defaultModel : (await context.station.runs.get(conversation.run)).model;
  const chosen = conversation.model ?? current;
  await context.stdout.print(
    chosen === undefined
      ? line`No model is chosen.`
      : line`${bold(chosen)}${conversation.model === null || chosen === current ? "" : dim(" from the next turn")}`,
  );
  if (name === undefined) await context.stdout.print(modelLines(providers));
}

function modelLines(providers: ModelList["providers"]): Line[] {
  const usable = providers.filter(({ hasKey }) => hasKey).flatMap(({ models }) => models);
  if (usable.length > 0)
    return [...usable.map((each) => line`  ${each}`), dim("/model NAME chooses one of these, or any other model of the provider")];
  return [dim(`No key is set: ${providers.map(({ keys }) => keys[0]).join(", ")}. Use /model PROVIDER/MODEL to choose a model.`)];
}

async function cost({ context, conversation }: SlashContext): Promise<void> {
  const { steps, usage, costUsd, workedMs } = await context.station.runs.get(runOf(conversation));
  const costText = costUsd === null ? "cost unknown" : `$${costUsd.toFixed(4)}`;
  const tokens = `${usage.inputTokens.toLocaleString("en")} tokens in, ${usage.outputTokens.toLocaleString("en")} out`;
  await context.stdout.print(
    line`${bold(costText)} · ${tokens} · ${steps} ${steps === 1 ? "step" : "steps"} · ${showDuration(workedMs)} of work`,
  );
}

async function rewind(slash: SlashContext, [step, ...rest]: readonly string[]): Promise<void> {
  const { steps } = await slash.context.station.runs.get(runOf(slash.conversation));
  if (step === undefined || rest.length > 0) {
    throw new CaissonError("invalid", "/rewind needs the step to go back to", {
      hint: `This conversation has taken ${steps}. For example: /rewind ${Math.max(0, steps - 1)}`,
    });
  }
  await command("rewind")(slash, ["--to", step]);
}

async function fork({ context, conversation }: SlashContext, words: readonly string[]): Promise<void> {
  const before = runOf(conversation);
  const [first = ""] = words;
  const step = first.startsWith("@") ? first.slice(1) : null;
  const text = words.slice(step === null ? 0 : 1).join(" ");
  const request = { by: context.variable("USER") ?? "user", attended: true, ...(text !== "" && { text }) };
  const [view] = await context.station.runs.fork(before, { ...request, ...(step !== null && { at: parseStep("/fork", step) }) });
  if (view === undefined) return;
  await context.stdout.print([
    line`A copy of the conversation after step ${view.forked?.step ?? 0}, with its own files: ${view.run}`,
    dim(`the other one: caisson chat --continue ${before}`),
  ]);
  await conversation.switchTo(view);
}

async function begin({ context, conversation }: SlashContext): Promise<void> {
  const before = conversation.run;
  conversation.forget();
  await context.stdout.print([
    line`A new conversation: the agent remembers nothing of the last one and starts from your folder.`,
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
    ...(rows.length === 0 ? [line`No conversations yet.`] : table(rows)),
    ...(total > runs.length ? [dim(`and ${total - runs.length} more: caisson ps --all`)] : []),
    ...(rows.length === 0 ? [] : [dim("To continue one: caisson chat --continue RUN")]),
  ]);
}

async function help({ context }: SlashContext): Promise<void> {
  const rows = slashCommands.map(({ name, argument = "", summary }) => [`  /${name} ${argument}`, dim(summary)]);
  const keys = [
    ["  Enter", "send; a working agent reads it before its next step"],
    ["  Alt-Enter, \\ Enter", "start a new line; pasted text keeps its line breaks"],
    ["  @ Tab", "complete a workspace path; Tab also completes commands"],
    ["  Up, Down", "recall earlier input"],
    ["  Ctrl-C", "hold the agent, or twice to stop it; when idle, clear the input, or twice to leave"],
    ["  Ctrl-D", "leave; the agent's changes stay"],
  ] as const;
  await context.stdout.print([...table(rows), line``, ...table(keys.map(([key, meaning]) => [key, dim(meaning)]))]);
}
