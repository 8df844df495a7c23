import { z } from "zod";
import { ChangeLabels } from "./change-labels.ts";
import { defineEvent } from "./define-event.ts";
import { ProcessRef, RuntimeName, SandboxId, SnapshotId } from "./ids.ts";
import { networkEvents } from "./network-event.ts";
import { Ended } from "./outcome.ts";
import { Owner } from "./owner.ts";

export const SandboxCreated = defineEvent("sandbox.created", 1, {
  sandbox: SandboxId,
  runtime: RuntimeName,
  warnings: z.array(z.string()),
  /** In a station's log. */
  owner: Owner.optional(),
  name: z.string().optional(),
  /** Whose sandbox it is, where it is a run's. */
  run: z.string().optional(),
});
export const SandboxPaused = defineEvent("sandbox.paused", 1, { sandbox: SandboxId });
export const SandboxResumed = defineEvent("sandbox.resumed", 1, { sandbox: SandboxId });
/** Its labels were changed; null takes one away. */
export const SandboxLabelled = defineEvent("sandbox.labelled", 1, { sandbox: SandboxId, changes: ChangeLabels });
export const SandboxSnapshotted = defineEvent("sandbox.snapshotted", 1, { sandbox: SandboxId, snapshot: SnapshotId });
export const SandboxEnded = defineEvent("sandbox.ended", 1, {
  sandbox: SandboxId,
  why: z.enum(["destroyed", "orphaned", "lost"]),
});
export const CommandStarted = defineEvent("command.started", 1, {
  sandbox: SandboxId,
  ref: ProcessRef,
  pid: z.int(),
  argv: z.array(z.string()),
});
/** Bytes that are not UTF-8 travel as base64. */
export const CommandOutput = defineEvent("command.output", 1, {
  sandbox: SandboxId,
  ref: ProcessRef,
  stream: z.enum(["stdout", "stderr"]),
  offset: z.int(),
  encoding: z.enum(["utf8", "base64"]),
  text: z.string(),
});
export const CommandEnded = defineEvent("command.ended", 1, { sandbox: SandboxId, ref: ProcessRef, ended: Ended });

export const SandboxEvent = z.discriminatedUnion("type", [
  SandboxCreated,
  SandboxPaused,
  SandboxResumed,
  SandboxSnapshotted,
  SandboxEnded,
  CommandStarted,
  CommandOutput,
  CommandEnded,
  ...networkEvents.definitions,
]);
export type SandboxEvent = z.infer<typeof SandboxEvent>;
