import type { z } from "zod";
import type { NewJobEvent } from "../../contract/durable/durable-event.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { type GatePhase, PHASE_BYTES_MAX, phaseData, phases, type SpecData, type WrittenPhase } from "../../contract/spec/spec.ts";
import type { NewSpecEvent } from "../../contract/spec/spec-event.ts";
import type { DecideSpec, DiffSpec, EditSpec, ExecuteSpec, ExportSpec, SpecDiff } from "../../contract/spec/spec-verbs.ts";
import { refuseSecretIn } from "../../workspace/git/address.ts";
import type { Folded } from "../durable/durable-log.ts";
import { coverage } from "./coverage.ts";
import { decideSpec } from "./decide-spec.ts";
import { specDiff, specMarkdown } from "./spec-markdown.ts";
import { dataOf, lastVersion, openAttempt, type SpecState } from "./spec-state.ts";
import { doneTasks, titleOf } from "./spec-view.ts";
import { taskGraph } from "./task-graph.ts";

/**
 * Functions that turn requests of people into events. Each checks the spec's state and throws for what is not possible.
 */

export function executionEvents(
  { state, facts }: Pick<Folded<SpecState>, "state" | "facts">,
  { from, until, source, by }: z.output<typeof ExecuteSpec>,
): (NewSpecEvent | NewJobEvent)[] {
  const isAtWork = facts.finish === null && (state.isDriven || facts.cancelRequested !== null);
  // It was paused because it had crashed a station. This request shows that a person has looked, so it continues.
  if (isAtWork && facts.paused !== null) return [{ type: "driven.continued", data: { by } }];
  // A request for work in progress only makes sure that it is driven.
  if (isAtWork && from === undefined && source === undefined && facts.cancelRequested === null) return [];
  if (isAtWork) {
    throw new CaissonError("conflict", `${state.spec} is already being executed`, { hint: `Follow it: caisson spec run ${state.spec}` });
  }
  refuseSecretIn(source);
  if ((source ?? state.source) === null) {
    throw new CaissonError("invalid", `${state.spec} has no project to work on`, {
      hint: "Name one: caisson spec run SPEC --repo DIR|URL",
    });
  }
  if (state.source !== null && source !== undefined)
    throw new CaissonError("invalid", `${state.spec} already has a project`, { hint: "Omit the project, or create another spec." });
  if (from !== undefined) refuseAhead(state, from);
  const execution: NewSpecEvent = {
    type: "spec.executed",
    data: { by, from: from ?? null, until, ...(source !== undefined && { source }) },
  };
  return facts.finish === null ? [execution] : [{ type: "driven.reopened", data: { by } }, execution];
}

/** Throws if an earlier phase is missing, because each phase is written from the previous ones. */
function refuseAhead(state: SpecState, from: z.output<typeof ExecuteSpec>["from"] & string): void {
  const missing = phases.slice(0, phases.indexOf(from)).find((phase) => phase !== "complete" && state.current[phase] === undefined);
  if (missing !== undefined)
    throw new CaissonError("invalid", `${state.spec} cannot start with ${from}: ${missing} is not written yet`, {
      hint: "Omit the phase to continue where the spec is.",
    });
}

export function decisionEvents(
  state: SpecState,
  { approved, phase, version, text, by }: z.output<typeof DecideSpec>,
  now: string,
): NewSpecEvent[] {
  const pendingGate = pendingGateOf(state, now);
  if (pendingGate === null || (phase !== undefined && phase !== pendingGate.phase)) {
    throw new CaissonError("conflict", `${state.spec} is not waiting for approval${phase === undefined ? "" : ` of ${phase}`}`, {
      hint: `Run \`caisson spec show ${state.spec}\` to see its state.`,
    });
  }
  if (version !== undefined && version !== pendingGate.version) {
    throw new CaissonError("stale", `${pendingGate.phase} of ${state.spec} is version ${pendingGate.version}, not ${version}`, {
      hint: `Review the change first: caisson spec diff ${state.spec} --from ${version}`,
    });
  }
  if (!approved && text === "")
    throw new CaissonError("invalid", "a rejection must say what to change", { hint: "Give a comment, which the next attempt receives." });
  return [{ type: approved ? "spec.approved" : "spec.rejected", data: { ...pendingGate, by, text } }];
}

function pendingGateOf(state: SpecState, now: string): { phase: GatePhase; version: number } | null {
  const [move] = decideSpec(state, { now });
  return move?.kind === "ask" ? { phase: move.phase, version: move.version } : null;
}

export function editEvents(state: SpecState, { phase, data, by }: z.output<typeof EditSpec>): NewSpecEvent[] {
  const isBuilding = state.tasks.some(({ finish }) => finish === null) || state.merges.some(({ session }) => session === undefined);
  if (state.isDriven && (openAttempt(state) !== undefined || isBuilding)) {
    throw new CaissonError("conflict", `an agent is at work on ${state.spec}`, {
      hint: `Cancel it first: caisson spec cancel ${state.spec}`,
    });
  }
  refuseAhead(state, phase);
  return [
    {
      type: "spec.written",
      data: { version: lastVersion(state) + 1, by: { kind: "person", name: by }, content: checkedContent(phase, data) },
    },
  ];
}

/** Accepts a person's content without an evaluator, but rejects what is impossible. */
function checkedContent(phase: WrittenPhase, data: unknown): Extract<NewSpecEvent, { type: "spec.written" }>["data"]["content"] {
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes > PHASE_BYTES_MAX) throw new CaissonError("too_large", `${phase} has ${bytes} bytes; the limit is ${PHASE_BYTES_MAX}`);
  const parsed = checkValue(phaseData[phase], data);
  if (!parsed.success)
    throw new CaissonError("invalid", `the data does not match the schema of ${phase}: ${tellProblems(parsed.problems)}`);
  const content = { phase, data: parsed.data } as ReturnType<typeof checkedContent>;
  const problems = content.phase === "tasks" ? taskGraph(content.data.tasks).problems : [];
  if (problems.length > 0) throw new CaissonError("invalid", `these tasks cannot be done: ${problems.join("; ")}`);
  return content;
}

export function cancelEvents({ state, facts }: Pick<Folded<SpecState>, "state" | "facts">, { by }: { by: string }): NewJobEvent[] {
  if (facts.finish !== null) throw new CaissonError("conflict", `${state.spec} has ended`, { hint: "There is nothing to cancel." });
  return facts.cancelRequested === null ? [{ type: "driven.cancel_requested", data: { by, text: "" } }] : [];
}

export function diffOf(state: SpecState, { from, to }: z.output<typeof DiffSpec>): SpecDiff {
  const last = to ?? lastVersion(state);
  const first = from ?? Math.max(0, last - 1);
  for (const version of [last, first]) refuseUnknown(state, version);
  const at = (version: number) =>
    specMarkdown({ title: titleOf(state), idea: state.idea, data: version === 0 ? {} : dataOf(state, version) });
  return { from: first, to: last, diff: specDiff(at(first), at(last)) };
}

export function exportOf(
  state: SpecState,
  { format, version }: z.output<typeof ExportSpec>,
): { format: "markdown" | "json"; text: string } {
  if (version !== undefined) refuseUnknown(state, version);
  const data: SpecData = dataOf(state, version);
  const rows = version === undefined ? coverage(data, doneTasks(state)) : [];
  const { spec, name, idea } = state;
  if (format === "markdown") return { format, text: specMarkdown({ title: titleOf(state), idea, data, coverage: rows }) };
  return {
    format,
    text: `${JSON.stringify({ spec, name, idea, version: version ?? lastVersion(state), ...data, coverage: rows }, null, 2)}\n`,
  };
}

function refuseUnknown(state: SpecState, version: number): void {
  if (version <= lastVersion(state)) return;
  throw new CaissonError("not_found", `${state.spec} has no version ${version}`, { hint: `The latest version is ${lastVersion(state)}.` });
}
