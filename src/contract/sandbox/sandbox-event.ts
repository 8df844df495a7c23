import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { ProcessRef, RuntimeName, SandboxId, SnapshotId } from "../ids.ts";
import { ChangeLabels } from "../label/change-labels.ts";
import { networkEvents } from "../network/network-event.ts";
import { Ended } from "../outcome.ts";
import { Owner } from "../token/owner.ts";

export const SandboxCreated = defineEvent("sandbox.created", 1, concerns("facts"), {
  sandbox: SandboxId,
  runtime: RuntimeName,
  warnings: z.array(z.string()),
  /** Only in a station's log. */
  owner: Owner.optional(),
  name: z.string().optional(),
  /** The run that the sandbox belongs to, if any. */
  run: z.string().optional(),
});
export const SandboxPaused = defineEvent("sandbox.paused", 1, concerns("facts"), { sandbox: SandboxId });
export const SandboxResumed = defineEvent("sandbox.resumed", 1, concerns("facts"), { sandbox: SandboxId });
/** The labels changed; null removes one. */
export const SandboxLabelled = defineEvent("sandbox.labelled", 1, concerns(), { sandbox: SandboxId, changes: ChangeLabels });
export const SandboxSnapshotted = defineEvent("sandbox.snapshotted", 1, concerns(), { sandbox: SandboxId, snapshot: SnapshotId });
export const SandboxEnded = defineEvent("sandbox.ended", 1, concerns("facts"), {
  sandbox: SandboxId,
  why: z.enum(["destroyed", "orphaned", "lost"]),
});
export const CommandStarted = defineEvent("command.started", 1, concerns(), {
  sandbox: SandboxId,
  ref: ProcessRef,
  pid: z.int(),
  argv: z.array(z.string()),
});
/** Output that is not UTF-8 is base64. */
export const CommandOutput = defineEvent("command.output", 1, concerns(), {
  sandbox: SandboxId,
  ref: ProcessRef,
  stream: z.enum(["stdout", "stderr"]),
  offset: z.int(),
  encoding: z.enum(["utf8", "base64"]),
  text: z.string(),
});
export const CommandEnded = defineEvent("command.ended", 1, concerns(), { sandbox: SandboxId, ref: ProcessRef, ended: Ended });

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
