import type { z } from "zod";
import type { NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { checkValue, tellProblems } from "../../contract/plain-problems.ts";
import { type GatePhase, PHASE_BYTES_MAX, phaseData, phases, type SpecData, type WrittenPhase } from "../../contract/spec.ts";
import type { NewSpecEvent } from "../../contract/spec-event.ts";
import type { DecideSpec, DiffSpec, EditSpec, ExecuteSpec, ExportSpec, SpecDiff } from "../../contract/spec-verbs.ts";
import { refuseSecretIn } from "../../workspace/git/address.ts";
import type { Folded } from "../driven/driven-log.ts";
import { coverage } from "./coverage.ts";
import { decideSpec } from "./decide-spec.ts";
import { specDiff, specMarkdown } from "./spec-markdown.ts";
import { dataOf, lastVersion, openAttempt, type SpecState } from "./spec-state.ts";
import { doneTasks, titleOf } from "./spec-view.ts";
import { taskGraph } from "./task-graph.ts";

/** What people say to a spec, as events; each is judged by what the spec has come to, and throws for what cannot be. */

export function executed(
  { state, facts }: Pick<Folded<SpecState>, "state" | "facts">,
  { from, until, source, by }: z.output<typeof ExecuteSpec>,
): (NewSpecEvent | NewDrivenEvent)[] {
  const isAtWork = facts.finish === null && (state.isDriven || facts.cancelRequested !== null);
  // Paused by a station that it took down: somebody has looked, and lets it go on.
  if (isAtWork && facts.paused !== null) return [{ type: "driven.continued", data: { by } }];
  // Whoever asks for what is under way anyway only wants it driven.
  if (isAtWork && from === undefined && source === undefined && facts.cancelRequested === null) return [];
  if (isAtWork) {
    throw new CaissonError("conflict", `${state.spec} is driven already`, { hint: `Follow it: caisson spec run ${state.spec}` });
  }
  refuseSecretIn(source);
  if ((source ?? state.source) === null) {
    throw new CaissonError("invalid", `${state.spec} has no project to work on`, {
      hint: "Name one: caisson spec run SPEC --repo DIR|URL",
    });
  }
  if (state.source !== null && source !== undefined)
    throw new CaissonError("invalid", `${state.spec} has a project already`, { hint: "Leave the project out, or make another spec." });
  if (from !== undefined) refuseAhead(state, from);
  const execution: NewSpecEvent = {
    type: "spec.executed",
    data: { by, from: from ?? null, until, ...(source !== undefined && { source }) },
  };
  return facts.finish === null ? [execution] : [{ type: "driven.reopened", data: { by } }, execution];
}

/** A phase is written from what those before it say. */
function refuseAhead(state: SpecState, from: z.output<typeof ExecuteSpec>["from"] & string): void {
  const missing = phases.slice(0, phases.indexOf(from)).find((phase) => phase !== "complete" && state.current[phase] === undefined);
  if (missing !== undefined)
    throw new CaissonError("invalid", `${state.spec} cannot begin with ${from}: ${missing} is not written yet`, {
      hint: "Leave the phase out to go on from where it is.",
    });
}

export function decided(
  state: SpecState,
  { approved, phase, version, text, by }: z.output<typeof DecideSpec>,
  now: string,
): NewSpecEvent[] {
  const asked = askedOf(state, now);
  if (asked === null || (phase !== undefined && phase !== asked.phase)) {
    throw new CaissonError("conflict", `${state.spec} does not wait for anybody to agree to ${phase ?? "anything"}`, {
      hint: `\`caisson spec show ${state.spec}\` says what it does.`,
    });
  }
  if (version !== undefined && version !== asked.version) {
    throw new CaissonError("stale", `${asked.phase} of ${state.spec} is version ${asked.version}, not ${version}`, {
      hint: `Look at it first: caisson spec diff ${state.spec} --from ${version}`,
    });
  }
  if (!approved && text === "")
    throw new CaissonError("invalid", "a rejection says what must change", { hint: "Its words are given to the next attempt." });
  return [{ type: approved ? "spec.approved" : "spec.rejected", data: { ...asked, by, text } }];
}

function askedOf(state: SpecState, now: string): { phase: GatePhase; version: number } | null {
  const [move] = decideSpec(state, { now });
  return move?.kind === "ask" ? { phase: move.phase, version: move.version } : null;
}

export function edited(state: SpecState, { phase, data, by }: z.output<typeof EditSpec>): NewSpecEvent[] {
  const isBuilding = state.tasks.some(({ finish }) => finish === null) || state.merges.some(({ session }) => session === undefined);
  if (state.isDriven && (openAttempt(state) !== undefined || isBuilding)) {
    throw new CaissonError("conflict", `an agent is at work on ${state.spec}`, {
      hint: `End that first: caisson spec cancel ${state.spec}`,
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

/** A person may know better than an evaluator; what cannot be is refused all the same. */
function checkedContent(phase: WrittenPhase, given: unknown): Extract<NewSpecEvent, { type: "spec.written" }>["data"]["content"] {
  const bytes = Buffer.byteLength(JSON.stringify(given));
  if (bytes > PHASE_BYTES_MAX) throw new CaissonError("too_large", `${phase} has ${bytes} bytes; at most ${PHASE_BYTES_MAX} are taken`);
  const parsed = checkValue(phaseData[phase], given);
  if (!parsed.success) throw new CaissonError("invalid", `this is not what ${phase} looks like: ${tellProblems(parsed.problems)}`);
  const content = { phase, data: parsed.data } as ReturnType<typeof checkedContent>;
  const problems = content.phase === "tasks" ? taskGraph(content.data.tasks).problems : [];
  if (problems.length > 0) throw new CaissonError("invalid", `these tasks cannot be done: ${problems.join("; ")}`);
  return content;
}

export function cancelled({ state, facts }: Pick<Folded<SpecState>, "state" | "facts">, { by }: { by: string }): NewDrivenEvent[] {
  if (facts.finish !== null) throw new CaissonError("conflict", `${state.spec} is over`, { hint: "There is nothing to cancel." });
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
  throw new CaissonError("not_found", `${state.spec} has no version ${version}`, { hint: `Its last one is ${lastVersion(state)}.` });
}
