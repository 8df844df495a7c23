import { z } from "zod";
import { SandboxId } from "../ids.ts";
import { JsonValue } from "../json-value.ts";
import { ArtifactName, ReportedType } from "./inside-event.ts";

/** What programs in a sandbox can send to and receive from the station, with the sandbox's own token. */

export const insideLimits = {
  eventBytesMax: 100 * 1024,
  messageBytesMax: 10 * 1024,
  messagesMax: 100,
  artifactBytesMax: 64 * 1024 * 1024,
  artifactsMax: 100,
  artifactsBytesMax: 256 * 1024 * 1024,
} as const;

/** Maximum calls per minute. */
export const insideRates = { events: 100, heartbeats: 10, polls: 30, others: 60 } as const;

export const ReportEvent = z.strictObject({ type: ReportedType, data: JsonValue.default(null) });
export type ReportEvent = z.input<typeof ReportEvent>;

const text = z
  .string()
  .min(1)
  .max(insideLimits.messageBytesMax)
  .refine((words) => Buffer.byteLength(words) <= insideLimits.messageBytesMax, `must be at most ${insideLimits.messageBytesMax} bytes`);

/** `resume`: continue. For a run's sandbox this reflects what the run was asked to do. */
export const InsideControl = z.enum(["resume", "pause", "abort"]);
export type InsideControl = z.infer<typeof InsideControl>;

export const TellInside = z
  .strictObject({ text: text.optional(), control: InsideControl.optional() })
  .refine(({ text: words, control }) => words !== undefined || control !== undefined, "must have a text or a control");
export type TellInside = z.infer<typeof TellInside>;

export const InsideMessage = z.object({ at: z.iso.datetime(), from: z.string(), text: z.string() });
export type InsideMessage = z.infer<typeof InsideMessage>;

export const ArtifactView = z.object({
  name: ArtifactName,
  bytes: z.int().nonnegative(),
  storedAt: z.iso.datetime(),
});
export type ArtifactView = z.infer<typeof ArtifactView>;
export const StoredArtifact = z.object({ name: ArtifactName, bytes: z.int().nonnegative(), sha256: z.string() });
export type StoredArtifact = z.infer<typeof StoredArtifact>;

/** The state of a sandbox's exchange with its station. */
export const InsideView = z.object({
  sandbox: SandboxId,
  /** Time of the last heartbeat from inside; null before the first. */
  lastBeatAt: z.iso.datetime().nullable(),
  control: InsideControl,
  /** Messages that no program inside has received yet. */
  waiting: z.int().nonnegative(),
});
export type InsideView = z.infer<typeof InsideView>;
