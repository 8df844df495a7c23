import { CaissonError } from "../../contract/error/error.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { RunTimeline, TimelineStep } from "../../contract/run/run-timeline.ts";
import type { StepEnds } from "../../contract/run/step-ends.ts";
import type { Log } from "../../log/log.ts";
import type { NumberedRunEvent } from "../../verbs/runs.ts";
import { ifUnusable } from "../../workspace/sessions.ts";
import { runEvents } from "../runs/run-events.ts";
import { pointsOf, type StepFilesOptions } from "../sessions/step-files.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { familyOf, originOf } from "./fork-family.ts";
import { readStepEnds } from "./step-end.ts";

const TEXT_CHARACTERS_MAX = 200;
const TOOLS_MAX = 100;
/** How many generations above a fork are searched for the files of the steps that it inherited. */
const GENERATIONS_MAX = 50;

export interface TimelineOptions extends StepFilesOptions {
  log: Log;
}

/** See `RunVerbs.timeline`. */
export async function timelineOf(run: string, options: TimelineOptions): Promise<RunTimeline> {
  const { log } = options;
  const { facts } = await headOfRun(log, run);
  const steps: TimelineStep[] = [];
  for await (const event of runEvents(log, run, {})) addToSteps(steps, event);
  await markStored(steps, facts, options);
  return { run, from: originOf(facts), steps, ...(await familyOf(facts, log)) };
}

/** Marks the steps whose files are stored: by the run itself, or by the run that it was forked from. */
async function markStored(steps: readonly TimelineStep[], facts: RunFacts, options: TimelineOptions): Promise<void> {
  const own = await storedSteps(facts, options);
  for (const step of steps) step.isStored = own.has(step.step);
  let missing = steps.filter(({ isStored, isInherited }) => isInherited && !isStored);
  if (missing.length === 0) return;
  const { ends } = await readStepEnds(options.log, facts.run);
  let parent = facts.forked?.run;
  for (let generation = 0; parent !== undefined && missing.length > 0 && generation < GENERATIONS_MAX; generation++) {
    const found = await parentSteps(parent, options);
    if (found === null) return;
    // The parent may have rewound the step and taken another one instead.
    for (const step of missing) step.isStored = found.stored.has(step.step) && found.ends[step.step] === ends[step.step];
    missing = missing.filter(({ isStored }) => !isStored);
    parent = found.parent;
  }
}

/** Returns what a run that was forked knows about its steps; null if it was removed. */
async function parentSteps(
  run: string,
  options: TimelineOptions,
): Promise<{ stored: ReadonlySet<number>; ends: StepEnds["ends"]; parent: string | undefined } | null> {
  try {
    const { facts } = await headOfRun(options.log, run);
    const { ends } = await readStepEnds(options.log, run);
    return { stored: await storedSteps(facts, options), ends, parent: facts.forked?.run };
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  }
}

async function storedSteps({ run, session: name }: RunFacts, options: TimelineOptions): Promise<ReadonlySet<number>> {
  const session = await options.sessions.get(name).catch(ifUnusable);
  const points = session === null ? [] : await pointsOf(session, options);
  return new Set(points.filter((point) => point.run === run).map(({ step }) => step));
}

function addToSteps(steps: TimelineStep[], event: NumberedRunEvent): void {
  const last = steps.at(-1);
  switch (event.type) {
    case "step.started":
      steps.push({ step: event.data.step, at: event.at, isInherited: false, text: "", tools: [], ...nothingKnown, isStored: false });
      return;
    case "model.ended": {
      if (last === undefined) return;
      const text = event.data.parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join(" ");
      last.text = text.trim().slice(0, TEXT_CHARACTERS_MAX);
      last.tools = event.data.parts.flatMap((part) => (part.kind === "toolCall" ? [part.name] : [])).slice(0, TOOLS_MAX);
      return;
    }
    case "step.ended": {
      const { step: number, files, bytes, costUsd, point } = event.data;
      const step = steps.findLast(({ step }) => step === number);
      if (step !== undefined) Object.assign(step, { costUsd, ...(point !== null && { files, bytes }) });
      return;
    }
    case "run.rewound":
      while ((steps.at(-1)?.step ?? 0) > event.data.toStep) steps.pop();
      return;
    case "run.forked":
      for (const step of steps) step.isInherited = true;
  }
}

const nothingKnown = { files: null, bytes: null, costUsd: null };
