import { onTestFinished, vi } from "vitest";
import { makeEvent } from "../../contract/event/event-family.ts";
import { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import type { ToolOutcome } from "../../contract/run/run.ts";
import { type NewRunEvent, type RunEvent, runEvents } from "../../contract/run/run-event.ts";
import { noCrash } from "../../lib/crashpoint.ts";
import type { Log } from "../../log/log.ts";
import { foldTrajectory } from "./fold-trajectory.ts";
import { Guardian, type GuardianOptions } from "./guardian.ts";
import { emptyTrajectory, type Trajectory } from "./trajectory.ts";

export const RUN = "run_k3v7q2m5x4ab";

/** Has no minimum age, which most tests do not concern. */
export const settingsOf = (overrides: Partial<Parameters<typeof GuardianConfig.parse>[0] & object> = {}): GuardianConfig =>
  GuardianConfig.parse({ stepsMin: 1, workedMsMin: 0, ...overrides });

export interface ScriptedCall {
  tool?: string;
  args?: Record<string, unknown>;
  text?: string;
  outcome?: ToolOutcome;
  /** A file that it changed, which an event reports. */
  changes?: string;
  details?: Record<string, unknown>;
}

export function created(
  options: { run?: string; task?: string; onAsk?: "wait" | "deny"; guardian?: object; owner?: string } = {},
): NewRunEvent {
  const { run = RUN, task = "Fix the parser in src/parser.ts so that its tests pass", onAsk = "wait", guardian, owner } = options;
  const definition = { name: "coder", system: "", harness: { onAsk }, ...(guardian && { guardian }) };
  const agent = { name: "coder", digest: "x", definition };
  const data = { run, parent: null, session: "s", agent, task, model: "scripted", budgets: {}, ...(owner && { owner }) };
  return { type: "run.created", data } as NewRunEvent;
}

const claimed: NewRunEvent = {
  type: "run.claimed",
  data: { owner: "{}", epoch: 1, pid: 1, host: "h", measured: true },
};

/** Returns the events of one step with these calls. Each step has the same text and cost. */
export function stepEvents(step: number, calls: readonly ScriptedCall[], { costUsd = 0.01, say = "", tokens = 100 } = {}): NewRunEvent[] {
  const usage = { inputTokens: tokens, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
  const call = `m${step}`;
  const parts = say === "" ? [] : [{ kind: "text" as const, text: say }];
  return [
    { type: "step.started", data: { step, workedMs: step * 10_000 } },
    { type: "model.ended", data: { call, parts, usage, costUsd, stop: "tools", durationMs: 1 } },
    ...calls.flatMap((toolCall, at): NewRunEvent[] => {
      const { tool = "bash", args = {}, text = "", outcome = "ok", changes, details = {} } = toolCall;
      const id = `t${step}.${at + 1}`;
      const file = { call: id, path: changes ?? "", kind: "modified" as const, linesAdded: 1, linesRemoved: 0 };
      return [
        { type: "tool.requested", data: { call: id, step, name: tool, arguments: args as never } },
        ...(changes === undefined ? [] : [{ type: "file.changed" as const, data: file }]),
        {
          type: "tool.ended",
          data: { call: id, outcome, text, details: { ...details, ...(changes && { changedFiles: true }) } as never, durationMs: 1 },
        },
      ];
    }),
  ];
}

/** Folds a run that made these steps and started another one. */
export function trajectoryAfter(
  steps: readonly (readonly ScriptedCall[])[],
  options: Parameters<typeof created>[0] & Parameters<typeof stepEvents>[2] = {},
): Trajectory {
  const events = [
    created(options),
    claimed,
    ...steps.flatMap((calls, at) => stepEvents(at + 1, calls, options)),
    { type: "step.started", data: { step: steps.length + 1 } } satisfies NewRunEvent,
  ];
  return folded(events);
}

export function folded(events: readonly NewRunEvent[], into: Trajectory = emptyTrajectory(RUN)): Trajectory {
  for (const event of events) foldTrajectory(into, { ...makeEvent(runEvents, event, "2026-01-02T00:00:00.000Z"), seq: into.seq + 1 });
  return into;
}

export const runBegan = (options: Parameters<typeof created>[0] = {}): NewRunEvent[] => [created(options), claimed];

export const repeated = <Item>(count: number, make: (at: number) => Item): Item[] => Array.from({ length: count }, (_, at) => make(at));

/** Three calls: one that is always the same, one that makes progress, and one that changes files without an event. */
export const same: ScriptedCall = { tool: "read", args: { path: "a.ts" }, text: "same" };
export const edit = (n: number): ScriptedCall => ({ tool: "edit", args: { n }, text: "ok", changes: "a.ts" });
export const shell = (n: number): ScriptedCall => ({ args: { command: `sed -i s/${"abcdefgh"[n % 8]}/x/ a.ts` }, text: "(no output)" });

const make = (events: readonly NewRunEvent[]) => events.map((each) => makeEvent(runEvents, each));
export const append = (log: Log, events: readonly NewRunEvent[], run = RUN) => log.append(`run/${run}`, make(events));
export const steps = (from: number, calls: readonly ScriptedCall[]) => calls.flatMap((call, at) => stepEvents(from + at, [call]));
/** Starts another step, so that the guardian evaluates everything before it. */
export const next = (step: number): NewRunEvent[] => [{ type: "step.started", data: { step } }];

/** Starts a guardian for the runs in this log until the test ends. */
export function guarding(log: Log, settings: GuardianConfig, overrides: Partial<GuardianOptions> = {}): Guardian {
  const guardian = new Guardian({
    log,
    settings,
    crashpoint: noCrash,
    look: async () => "",
    judge: async () => null,
    sameFolder: async () => true,
    requeue: async () => undefined,
    onDefect: (error) => {
      throw error;
    },
    ...overrides,
  });
  guardian.start();
  onTestFinished(() => guardian[Symbol.asyncDispose]());
  return guardian;
}

export async function eventsOf<Type extends RunEvent["type"]>(
  log: Log,
  type: Type,
  run = RUN,
): Promise<Extract<RunEvent, { type: Type }>["data"][]> {
  return (await log.read(`run/${run}`)).filter((event) => event.type === type).map(({ data }) => data as never);
}

export const until = (check: () => Promise<boolean>) => vi.waitUntil(check, { timeout: 30_000, interval: 5 });
