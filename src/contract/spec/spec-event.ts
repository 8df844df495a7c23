import { z } from "zod";
import { JobEvent, jobFamily } from "../durable/durable-event.ts";
import { concerns, defineEvent } from "../event/define-event.ts";
import type { NewEventOf } from "../event/event-family.ts";
import { ChosenName, RunId, SessionId } from "../ids.ts";
import { JsonValue } from "../json-value.ts";
import { FinishReason } from "../outcome.ts";
import { WorkspaceSource } from "../session/session.ts";
import { GatePhase, Judgement, phaseData, SpecPhase, WrittenPhase } from "./spec.ts";

/**
 * The events of a spec, in the stream `spec/<id>`. Intents (`…started`, `…merging`) come before a run or merge is
 * requested, with a key for finding it again; outcomes come after.
 */

const Words = z.string().max(20_000);
/** A key for finding the run or merge of an intent again. */
const Key = z.string().max(128);
const Attempt = z.int().positive();
const Version = z.int().positive();

/** The idea, and the settings for its runs. No work begins before the spec is executed. */
export const SpecProposed = defineEvent("spec.proposed", 1, concerns("state", "facts"), {
  name: ChosenName.optional(),
  idea: Words,
  /** The project. A spec can be written before it has one. */
  source: WorkspaceSource.nullable(),
  /** The phases that need a person's approval. */
  gates: z.array(GatePhase),
  /** Settings for its runs, as in `StartRun`. */
  runs: JsonValue,
  /** Maximum number of tasks at the same time. */
  parallel: z.int().positive(),
});
/** The spec is driven from here on, from its current phase or from one that is written again. */
export const SpecExecuted = defineEvent("spec.executed", 1, concerns("state", "facts"), {
  by: z.string(),
  from: SpecPhase.nullable(),
  /** Where to stop: `sync` for a plan only. */
  until: z.enum(["sync", "complete"]),
  source: WorkspaceSource.optional(),
});
export const SpecPhaseStarted = defineEvent("spec.phase_started", 1, concerns("state", "facts", "terminal"), {
  phase: WrittenPhase,
  attempt: Attempt,
  key: Key,
  feedback: z.array(Words),
});
export const SpecPhaseRunning = defineEvent("spec.phase_running", 1, concerns("state", "terminal"), {
  phase: WrittenPhase,
  attempt: Attempt,
  run: RunId,
});
export const SpecPhaseJudged = defineEvent("spec.phase_judged", 1, concerns("state", "terminal"), {
  phase: WrittenPhase,
  attempt: Attempt,
  run: RunId.nullable(),
  judgement: Judgement,
  /** The time of the next attempt; null if it passed or this was the last one. */
  retryAt: z.iso.datetime().nullable(),
});
/** A new version, by the run of a phase that passed, or by a person. Later phases become stale. */
export const SpecWritten = defineEvent("spec.written", 1, concerns("state", "facts", "terminal"), {
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
export const SpecApproved = defineEvent("spec.approved", 1, concerns("state", "terminal"), {
  phase: GatePhase,
  version: Version,
  by: z.string(),
  text: Words,
});
/** The text is feedback for the next attempt. */
export const SpecRejected = defineEvent("spec.rejected", 1, concerns("state", "terminal"), {
  phase: GatePhase,
  version: Version,
  by: z.string(),
  text: Words,
});
export const SpecTaskStarted = defineEvent("spec.task_started", 1, concerns("state", "facts", "terminal"), {
  task: z.string(),
  attempt: Attempt,
  key: Key,
  /** The session whose files it starts with; null: the project's. */
  base: SessionId.nullable(),
});
export const SpecTaskRunning = defineEvent("spec.task_running", 1, concerns("state", "terminal"), {
  task: z.string(),
  run: RunId,
  session: SessionId,
});
export const SpecTaskEnded = defineEvent("spec.task_ended", 1, concerns("state", "terminal"), {
  task: z.string(),
  run: RunId.nullable(),
  finish: FinishReason,
  /** The agent's final message, or the reason for the failure. */
  text: Words,
  /** The actual changes, according to its session. */
  changed: z.array(z.string().max(4096)).max(1000),
  /** Whether there are more changes. */
  changedMore: z.boolean(),
});
export const SpecMergeStarted = defineEvent("spec.merge_started", 1, concerns("state", "terminal"), {
  step: z.int().positive(),
  key: Key,
  sessions: z.array(SessionId),
});
export const SpecMergeRunning = defineEvent("spec.merge_running", 1, concerns("state", "terminal"), {
  step: z.int().positive(),
  merge: z.string(),
});
export const SpecMergeEnded = defineEvent("spec.merge_ended", 1, concerns("state", "terminal"), {
  step: z.int().positive(),
  /** Null if there is no result. */
  session: SessionId.nullable(),
  text: Words,
});
/** The outcome of the spec; the end event follows. */
export const SpecConcluded = defineEvent("spec.concluded", 1, concerns("state", "facts", "terminal"), {
  outcome: z.enum(["done", "planned", "failed", "cancelled"]),
  text: Words,
  /** The session with the merged work. */
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
export const specEvents = jobFamily(all);
/** Only the events of specs. */
export const OwnSpecEvent = z.discriminatedUnion("type", all);
/** Including the events of all durable jobs. */
export const SpecEvent = z.union([JobEvent, OwnSpecEvent]);
export type SpecEvent = z.infer<typeof SpecEvent>;
/** A spec event that is not yet in the log. */
export type NewSpecEvent = NewEventOf<z.infer<typeof OwnSpecEvent>>;
