import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { DrivenEvent, drivenFamily } from "./driven-event.ts";
import type { NewEventOf } from "./event-family.ts";
import { ChosenName } from "./ids.ts";
import { JsonValue } from "./json-value.ts";
import { FinishReason, RunId, SessionId } from "./run.ts";
import { WorkspaceSource } from "./session.ts";
import { GatePhase, Judgement, phaseData, SpecPhase, WrittenPhase } from "./spec.ts";

/**
 * The events of a spec's log, in the stream `spec/<id>`. Intents (`…started`, `…merging`) come before a run or a merge
 * is asked for, under a key that finds it again; outcomes come after.
 */

const Words = z.string().max(20_000);
/** Finds the run or the merge of an intent again. */
const Key = z.string().max(128);
const Attempt = z.int().positive();
const Version = z.int().positive();

/** The idea, and how its runs are made. Nothing is done before it is executed. */
export const SpecProposed = defineEvent("spec.proposed", 1, {
  name: ChosenName.optional(),
  idea: Words,
  /** The project; a spec may be written down before it has one. */
  source: WorkspaceSource.nullable(),
  /** After which phases a person has to agree. */
  gates: z.array(GatePhase),
  /** What its runs are started with, as `StartRun` has it. */
  runs: JsonValue,
  /** Tasks that are done at the same time, at most. */
  parallel: z.int().positive(),
});
/** From here on it is driven: from where it is, or from a phase that is written anew. */
export const SpecExecuted = defineEvent("spec.executed", 1, {
  by: z.string(),
  from: SpecPhase.nullable(),
  /** Where it ends: `sync` for a plan alone. */
  until: z.enum(["sync", "complete"]),
  source: WorkspaceSource.optional(),
});
export const SpecPhaseStarted = defineEvent("spec.phase_started", 1, {
  phase: WrittenPhase,
  attempt: Attempt,
  key: Key,
  feedback: z.array(Words),
});
export const SpecPhaseRunning = defineEvent("spec.phase_running", 1, { phase: WrittenPhase, attempt: Attempt, run: RunId });
export const SpecPhaseJudged = defineEvent("spec.phase_judged", 1, {
  phase: WrittenPhase,
  attempt: Attempt,
  run: RunId.nullable(),
  judgement: Judgement,
  /** When it is tried again; null when it passed or was the last attempt. */
  retryAt: z.iso.datetime().nullable(),
});
/** A new version: by the run of a phase that passed, or by a person. Later phases are stale. */
export const SpecWritten = defineEvent("spec.written", 1, {
  version: Version,
  by: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("run"), run: RunId }),
    z.object({ kind: z.literal("person"), name: z.string() }),
  ]),
  content: z.discriminatedUnion("phase", [
    z.object({ phase: z.literal("explore"), data: phaseData.explore }),
    z.object({ phase: z.literal("prd"), data: phaseData.prd }),
    z.object({ phase: z.literal("requirements"), data: phaseData.requirements }),
    z.object({ phase: z.literal("design"), data: phaseData.design }),
    z.object({ phase: z.literal("tasks"), data: phaseData.tasks }),
    z.object({ phase: z.literal("sync"), data: phaseData.sync }),
  ]),
});
export const SpecApproved = defineEvent("spec.approved", 1, { phase: GatePhase, version: Version, by: z.string(), text: Words });
/** Its words are feedback for the next attempt. */
export const SpecRejected = defineEvent("spec.rejected", 1, { phase: GatePhase, version: Version, by: z.string(), text: Words });
export const SpecTaskStarted = defineEvent("spec.task_started", 1, {
  task: z.string(),
  attempt: Attempt,
  key: Key,
  /** The session with whose files it begins; null: the project's. */
  base: SessionId.nullable(),
});
export const SpecTaskRunning = defineEvent("spec.task_running", 1, { task: z.string(), run: RunId, session: SessionId });
export const SpecTaskEnded = defineEvent("spec.task_ended", 1, {
  task: z.string(),
  run: RunId.nullable(),
  finish: FinishReason,
  /** The agent's last words, or what went wrong. */
  text: Words,
  /** What it really changed, as its session says. */
  changed: z.array(z.string().max(4096)).max(1000),
  /** Whether that is not all. */
  changedMore: z.boolean(),
});
export const SpecMergeStarted = defineEvent("spec.merge_started", 1, { step: z.int().positive(), key: Key, sessions: z.array(SessionId) });
export const SpecMergeRunning = defineEvent("spec.merge_running", 1, { step: z.int().positive(), merge: z.string() });
export const SpecMergeEnded = defineEvent("spec.merge_ended", 1, {
  step: z.int().positive(),
  /** Null when nothing came of it. */
  session: SessionId.nullable(),
  text: Words,
});
/** What it has come to; its end follows. */
export const SpecConcluded = defineEvent("spec.concluded", 1, {
  outcome: z.enum(["done", "planned", "failed", "cancelled"]),
  text: Words,
  /** The session that holds the merged work. */
  session: SessionId.nullable(),
});

const all = [
  SpecProposed,
  SpecExecuted,
  SpecPhaseStarted,
  SpecPhaseRunning,
  SpecPhaseJudged,
  SpecWritten,
  SpecApproved,
  SpecRejected,
  SpecTaskStarted,
  SpecTaskRunning,
  SpecTaskEnded,
  SpecMergeStarted,
  SpecMergeRunning,
  SpecMergeEnded,
  SpecConcluded,
] as const;
export const specEvents = drivenFamily(all);
/** Those of specs alone. */
export const OwnSpecEvent = z.discriminatedUnion("type", all);
/** With those that everything driven has. */
export const SpecEvent = z.union([DrivenEvent, OwnSpecEvent]);
export type SpecEvent = z.infer<typeof SpecEvent>;
/** The same, as they are handed in. */
export type NewSpecEvent = NewEventOf<z.infer<typeof OwnSpecEvent>>;
