import { z } from "zod";
import type { AnyEventDefinition } from "./define-event.ts";
import { DrivenEvent } from "./driven-event.ts";
import type { EventFamily } from "./event-family.ts";
import { MergeEvent, mergeEvents } from "./merge-event.ts";
import { ShipEvent, shipEvents } from "./ship-event.ts";
import { OwnSpecEvent, specEvents } from "./spec-event.ts";
import { OwnWorkflowEvent, workflowEvents } from "./workflow-event.ts";

/** The kinds of driven things (ADR 41), by the names that people call them by. */
export const DrivenKind = z.enum(["workflow", "spec", "ship", "merge"]);
export type DrivenKind = z.infer<typeof DrivenKind>;

/** What the ids of each kind begin with. */
export const drivenIdPrefixes = { workflow: "wf", spec: "spec", ship: "ship", merge: "mrg" } as const satisfies Record<DrivenKind, string>;

/** What the streams of each kind hold; their names begin with the kind's. */
export const drivenFamilies: Readonly<Record<DrivenKind, EventFamily<AnyEventDefinition>>> = {
  workflow: workflowEvents,
  spec: specEvents,
  ship: shipEvents,
  merge: mergeEvents,
};

/** Which thing of which kind. */
export const DrivenRef = z.object({ kind: DrivenKind, id: z.string() });
export type DrivenRef = z.infer<typeof DrivenRef>;

/** An event of a driven thing, whatever its kind. */
export const AnyDrivenEvent = z.union([DrivenEvent, OwnWorkflowEvent, OwnSpecEvent, ShipEvent, MergeEvent]);
export type AnyDrivenEvent = z.infer<typeof AnyDrivenEvent>;
