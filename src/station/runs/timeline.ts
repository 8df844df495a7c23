import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { RunTimeline, TimelineFork, TimelineStep } from "../../contract/run/run-timeline.ts";
import type { Log } from "../../log/log.ts";
import type { NumberedRunEvent } from "../../verbs/runs.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import { headOfRun, toRunHead } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { runEvents } from "./run-events.ts";

const FORKS_MAX = 10_000;
const TEXT_CHARACTERS_MAX = 200;
const TOOLS_MAX = 100;

/** See `RunVerbs.timeline`. */
export async function timelineOf(run: string, { log, sessions }: { log: Log; sessions: SessionStore }): Promise<RunTimeline> {
  const { facts } = await headOfRun(log, run);
  const steps: TimelineStep[] = [];
  for await (const event of runEvents(log, run, {})) addToSteps(steps, event);
  const session = await sessions.get(facts.session).catch(ifUnusable);
  const points = session === null ? [] : await sessions.points(session.id);
  const stored = new Set(points.flatMap((point) => (point.run === run && point.step !== undefined ? [point.step] : [])));
  for (const step of steps) step.isStored = stored.has(step.step);
  return { run, from: originOf(facts), steps, forks: await forksOf(run, log) };
}

const originOf = ({ forked }: Pick<RunFacts, "forked">) => (forked === null ? null : { run: forked.run, step: forked.step });

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

/** Returns the forks of a run and the forks of these, oldest first. */
async function forksOf(run: string, log: Log): Promise<TimelineFork[]> {
  const isFork = (head: unknown) => (head as Partial<RunFacts> | null)?.forked != null;
  const { heads } = await log.heads({ prefix: runStream(""), matches: isFork, limit: FORKS_MAX });
  const byParent = Map.groupBy(heads.map(toRunHead), ({ facts }) => facts.forked?.run);
  const family: TimelineFork[] = [];
  const seen = new Set([run]);
  for (const parents = [run]; parents.length > 0; ) {
    for (const { facts } of byParent.get(parents.shift()) ?? []) {
      const from = originOf(facts);
      if (from === null || seen.has(facts.run)) continue;
      seen.add(facts.run);
      parents.push(facts.run);
      const { name, status, finish, step: steps, createdAt } = facts;
      family.push({ run: facts.run, name, from, status, finish, steps, createdAt });
    }
  }
  return family.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
}
