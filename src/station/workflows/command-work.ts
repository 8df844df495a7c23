import { CaissonError } from "../../contract/error/error.ts";
import { EFFECT_LABEL, JOB_LABEL } from "../../contract/label/station-labels.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { WorkspaceSource } from "../../contract/session/session.ts";
import type { StepOf } from "../../contract/workflow/workflow.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { HeldSandbox, Process } from "../../verbs/held-sandbox.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import type { SessionVerbs } from "../../verbs/sessions.ts";
import type { Json } from "../../workflow/state.ts";
import type { StepEffect } from "../../workflow/turn.ts";
import type { EffectContext } from "../durable/kind.ts";
import { artifactsOf, putArtifacts } from "./artifacts.ts";
import type { SessionCommands } from "./session-commands.ts";
import { digestOfEffect, type StepOutcome, type StepWork, sessionOfCommand } from "./workflow-kind.ts";
import { workflowKind } from "./workflow-names.ts";

/** How much of the end of each stream we store: a build's output does not belong in a log. */
const OUTPUT_CHARS_MAX = 32_000;

/**
 * Implements command steps, in one sandbox per workflow instance. The guest remembers each command's id: after a crash,
 * the same request returns the same process and its outcome, never a second process.
 */
export function createCommandWork({
  sandboxes,
  sessions,
  inSession,
}: {
  sandboxes: SandboxVerbs;
  sessions: SessionVerbs;
  /** Runs commands in the workspace of an earlier step. */
  inSession: SessionCommands;
}): { command: StepWork; clean: (context: EffectContext) => Promise<number> } {
  const opening = new Map<string, Promise<unknown>>();
  const labelOf = ({ facts }: EffectContext) => `${workflowKind.prefix}${facts.id}`;
  const findAll = async (context: EffectContext) =>
    (await sandboxes.list({ label: [`${JOB_LABEL}=${labelOf(context)}`], sweep: false })).sandboxes;
  const find = async (context: EffectContext) => (await findAll(context)).filter(({ labels }) => labels[EFFECT_LABEL] === undefined);
  const work = async (sandbox: Sandbox, effect: StepEffect, context: EffectContext) => {
    const { files = {} } = effect.given as { files?: Record<string, Json> };
    if (!(await isBegun(sandbox, effect))) await putArtifacts(sandbox, files, { sessions, owner: context.facts.owner });
    return await run(sandbox, effect, context);
  };
  /** Opens the sandbox of the instance, which concurrent commands share. */
  const hold = async (effect: StepEffect, context: EffectContext): Promise<HeldSandbox> => {
    const label = labelOf(context);
    const before = opening.get(label) ?? Promise.resolve();
    const held = before.then(async () => {
      const [there] = await find(context);
      if (there !== undefined) return await sandboxes.hold(there.id);
      const config = SandboxConfig.parse({ workspace: workspaceOf(effect.source), keep: true, labels: { [JOB_LABEL]: label } });
      return await sandboxes.create({ spec: config }, { owner: context.facts.owner });
    });
    const settled = ignore(held, "returned below; the next command opens it again");
    opening.set(label, settled);
    void settled.then(() => opening.get(label) === settled && opening.delete(label));
    return await held;
  };
  return {
    command: {
      async perform(effect, context) {
        if (sessionOfCommand(effect) !== null) {
          return await inSession.run(effect, context, async (sandbox) =>
            effect.cancel === true ? await kill(sandbox, effect) : await work(sandbox, effect, context),
          );
        }
        if (effect.cancel === true) return await killIfThere(effect, { ids: (await find(context)).map(({ id }) => id), sandboxes });
        await using sandbox = await hold(effect, context);
        return await work(sandbox, effect, context);
      },
      async leave(effect, { status, output, error }, context) {
        await inSession.leave(effect, context);
        if (status !== "completed") return { status, ...(error && { error }) };
        const session = sessionOfCommand(effect) ?? "";
        return { status, output: { ...(output as object), session, ...(await artifactsOf(effect.step, session, sessions)) } };
      },
    },
    async clean(context) {
      const found = await findAll(context);
      for (const { id } of found) await sandboxes.remove(id);
      return found.length;
    },
  };
}

function workspaceOf(source: WorkspaceSource | null): { kind: "empty" } | { kind: "folder"; path: string } {
  if (source === null || source.kind === "empty") return { kind: "empty" };
  if (source.kind === "folder") return { kind: "folder", path: source.path };
  throw new CaissonError(
    "unsupported",
    `a command's workspace cannot come from ${source.kind === "git" ? "a repository" : "another machine"}`,
    {
      hint: "Use an agent step instead, or start the workflow with a folder.",
    },
  );
}

const refOf = (effect: StepEffect): string => `wf-${digestOfEffect(effect.id).toString("hex").slice(0, 40)}`;

async function run(sandbox: Sandbox, effect: StepEffect, { signal, isCancelled }: EffectContext): Promise<StepOutcome> {
  const { argv, env, cwd } = effect.given as { argv: string[]; env: Record<string, string>; cwd: string | null };
  const process = await sandbox.spawn({
    argv: argv.map(String),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    ref: refOf(effect),
    keepLastOutput: true,
    ...defined({ cwd: cwd ?? undefined }),
  });
  const giveUp = () => (isCancelled() ? void process.kill() : process.detach());
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const output = await lastOf(process);
    const ended = await process.ended;
    signal.throwIfAborted();
    const { check = true } = effect.step as StepOf<"command">;
    if (ended.kind !== "exited")
      return { status: "failed", error: { code: ended.kind, text: `${argv[0]} did not exit normally (${ended.kind})` } };
    if (check && ended.exitCode !== 0) {
      return {
        status: "failed",
        error: {
          code: "exit",
          text: `${argv[0]} ended with exit code ${ended.exitCode}${output.stderr === "" ? "" : `: ${output.stderr.slice(-1000)}`}`,
        },
      };
    }
    return { status: "completed", output: { exitCode: ended.exitCode, ...output } };
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

async function lastOf({ output }: Process): Promise<{ stdout: string; stderr: string }> {
  const texts = { stdout: "", stderr: "" };
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { stream, data } of output) {
    texts[stream] = (texts[stream] + decoders[stream].decode(data, { stream: true })).slice(-OUTPUT_CHARS_MAX);
  }
  return texts;
}

/** Returns whether the command was started. Its files are copied only once, before that. */
async function isBegun(sandbox: Pick<Sandbox, "processes">, effect: StepEffect): Promise<boolean> {
  return (await sandbox.processes()).some(({ ref }) => ref === refOf(effect));
}

async function killIfThere(
  effect: StepEffect,
  { ids, sandboxes }: { ids: readonly string[]; sandboxes: SandboxVerbs },
): Promise<StepOutcome> {
  for (const id of ids) {
    await using sandbox = await sandboxes.hold(id).catch(ifGone);
    if (sandbox !== null) await kill(sandbox, effect);
  }
  return { status: "cancelled" };
}

async function kill(sandbox: Sandbox, effect: StepEffect): Promise<StepOutcome> {
  const process = await sandbox.attach(refOf(effect)).catch(ifGone);
  process?.discardOutput();
  await process?.kill().catch(ifGone);
  return { status: "cancelled" };
}

function ifGone(error: unknown): null {
  if (error instanceof CaissonError && ["not_found", "gone", "lost"].includes(error.code)) return null;
  throw error;
}
