import { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { EFFECT_LABEL, JOB_LABEL } from "../../contract/label/station-labels.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { StepEffect } from "../../workflow/turn.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { EffectContext } from "../durable/kind.ts";
import { createRunSandbox, type RunSandbox, type RunSandboxOptions } from "../runs/run-sandbox.ts";
import type { ChangesOptions } from "../sessions/session-changes.ts";
import { effectLabel } from "./agent-work.ts";
import { type StepOutcome, sessionOfCommand } from "./workflow-kind.ts";
import { workflowKind } from "./workflow-names.ts";

export interface SessionCommandsOptions extends Pick<RunSandboxOptions, "removeRemains" | "places"> {
  sessions: SessionStore;
  runtime: ChangesOptions["runtime"];
  crashpoint: Crashpoint;
}

/**
 * Runs commands in the workspace of an earlier step. Such a command holds the session, as a run does, and works in a
 * separate sandbox that outlives this process: after a crash, the next driver finds the sandbox by the effect's id. The
 * sandbox exists until the command's outcome is in the log, so that no command runs twice, and ends before the next
 * command works in the session.
 */
export interface SessionCommands {
  run(effect: StepEffect, context: EffectContext, work: (sandbox: Sandbox) => Promise<StepOutcome>): Promise<StepOutcome>;
  /** Ends the command's sandbox and stores its files. */
  leave(effect: StepEffect, context: EffectContext): Promise<void>;
}

const definition = AgentDefinition.parse({ name: "command", system: "" });

export function createSessionCommands(options: SessionCommandsOptions): SessionCommands {
  const { sessions } = options;
  const inPlace = async <Result>(
    effect: StepEffect,
    context: EffectContext,
    work: (place: RunSandbox) => Promise<Result>,
  ): Promise<Result> => {
    const id = sessionOfCommand(effect) ?? "";
    const key = keyOf(effect);
    await using _lock = await sessions.lock(id, key);
    const session = await sessions.get(id);
    if (session.owner !== context.facts.owner) throw new CaissonError("denied", `the session ${id} belongs to another owner`);
    const runtime = await options.runtime(session.runtime ?? undefined);
    const labels = { [JOB_LABEL]: `${workflowKind.prefix}${context.facts.id}`, [EFFECT_LABEL]: key };
    const onReady = async () => void (session.runtime === null && (await sessions.update(id, { runtime: runtime.name })));
    const place = createRunSandbox({ ...options, run: key, labels, runtime, definition, session, previous: () => null, onReady });
    return await work(place);
  };
  return {
    run: (effect, context, work) =>
      inPlace(effect, context, async (place) => {
        let isOver = false;
        try {
          const outcome = await work(await place.get());
          isOver = outcome.status === "cancelled";
          return outcome;
        } catch (error) {
          // A driver that is asked to release the command leaves the sandbox to the next one.
          isOver = context.isCancelled() || !context.signal.aborted;
          throw error;
        } finally {
          if (isOver) await place.end();
          else await place.release();
        }
      }),
    leave: (effect, context) => inPlace(effect, context, (place) => place.end()),
  };
}

/** Returns the key by which the sandbox is found and the session is held. */
const keyOf = ({ id }: StepEffect): string => effectLabel(id.replace(/:leave$/, ""));
