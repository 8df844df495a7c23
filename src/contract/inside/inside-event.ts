import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily } from "../event/event-family.ts";
import { SandboxId } from "../ids.ts";
import { JsonValue } from "../json-value.ts";

/** An event type that the program chooses, such as `task.progress`. */
export const ReportedType = z
  .string()
  .regex(
    /^[a-z][a-z0-9_]{0,31}(?:\.[a-z][a-z0-9_]{0,31}){0,3}$/,
    "must be 1 to 4 words of lower-case letters, digits and _, with dots between them",
  );

export const ArtifactName = z
  .string()
  .regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/, "must be 1 to 128 letters, digits or . _ -, and not begin with a dot");
export type ArtifactName = z.infer<typeof ArtifactName>;

/** A program inside reported an event with its sandbox's token. The data is untrusted. */
export const SandboxReported = defineEvent("sandbox.reported", 1, concerns("terminal", "console"), {
  sandbox: SandboxId,
  type: ReportedType,
  data: JsonValue,
});
/** A program inside stored a file for the sandbox's owner, replacing one of the same name. */
export const ArtifactStored = defineEvent("artifact.stored", 1, concerns("terminal", "console", "guardian"), {
  sandbox: SandboxId,
  name: ArtifactName,
  bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const all = [SandboxReported, ArtifactStored] as const;
export const insideEvents = eventFamily(all);
