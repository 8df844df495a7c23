import { z } from "zod";
import { BestEvent, bestEvents } from "../best/best-event.ts";
import { JobEvent } from "../durable/durable-event.ts";
import { type JobKind, JobRef } from "../durable/durable-kinds.ts";
import type { AnyEventDefinition } from "../event/define-event.ts";
import type { EventFamily } from "../event/event-family.ts";
import { MergeEvent, mergeEvents } from "../merge/merge-event.ts";
import { RunEvent } from "../run/run-event.ts";
import { SandboxLogEvent } from "../sandbox/sandbox-log-event.ts";
import { ShipEvent, shipEvents } from "../ship/ship-event.ts";
import { OwnSpecEvent, specEvents } from "../spec/spec-event.ts";
import { OwnWorkflowEvent, workflowEvents } from "../workflow/workflow-event.ts";

/** A station's feed: the events of runs, sandboxes and durable jobs in one order. */

/** The event families of each kind; stream names begin with the kind. */
export const jobFamilies: Readonly<Record<JobKind, EventFamily<AnyEventDefinition>>> = {
  workflow: workflowEvents,
  spec: specEvents,
  ship: shipEvents,
  merge: mergeEvents,
  best: bestEvents,
};

/** An event of a durable job of any kind. */
export const AnyJobEvent = z.union([JobEvent, OwnWorkflowEvent, OwnSpecEvent, ShipEvent, MergeEvent, BestEvent]);
export type AnyJobEvent = z.infer<typeof AnyJobEvent>;

/** An event of a run. `position` increases with every event of the log. */
export const FedRunEvent = z.object({
  run: z.string(),
  seq: z.int().positive(),
  position: z.int().positive(),
  /** Null if it cannot be read. */
  event: RunEvent.nullable(),
  damage: z.string().nullable(),
});
export type FedRunEvent = z.infer<typeof FedRunEvent>;

/** An event of a sandbox. */
export const FedSandboxEvent = z.object({
  sandbox: z.string(),
  /** Null if it predates owners. */
  owner: z.string().nullable(),
  ...FedRunEvent.omit({ run: true }).shape,
  event: SandboxLogEvent.nullable(),
});
export type FedSandboxEvent = z.infer<typeof FedSandboxEvent>;
/** An event of a workflow, spec, ship, merge or best-of. */
export const FedJobEvent = z.object({
  driven: JobRef,
  /** Null if the job's first event cannot be read, or the job was removed. */
  owner: z.string().nullable(),
  ...FedRunEvent.omit({ run: true }).shape,
  event: AnyJobEvent.nullable(),
});
export type FedJobEvent = z.infer<typeof FedJobEvent>;
export const FedEvent = z.union([FedRunEvent, FedSandboxEvent, FedJobEvent]);
export type FedEvent = z.infer<typeof FedEvent>;
