import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { eventFamily } from "./event-family.ts";
import { SandboxId } from "./ids.ts";
import { JsonValue } from "./json-value.ts";

/** A kind of event of a program's own choice, such as `task.progress`. */
export const ReportedType = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,31}(?:\.[a-z][a-z0-9_]{0,31}){0,3}$/, "1 to 4 words of lower-case letters, digits and _, with dots between");

export const ArtifactName = z
  .string()
  .regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/, "1 to 128 letters, digits or . _ -, and no dot at the beginning");
export type ArtifactName = z.infer<typeof ArtifactName>;

/** A program inside said something with its sandbox's token. What it says is data, and nobody vouches for it. */
export const SandboxReported = defineEvent("sandbox.reported", 1, { sandbox: SandboxId, type: ReportedType, data: JsonValue });
/** A program inside left a file for the sandbox's owner; one of the same name is replaced. */
export const ArtifactStored = defineEvent("artifact.stored", 1, {
  sandbox: SandboxId,
  name: ArtifactName,
  bytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const all = [SandboxReported, ArtifactStored] as const;
export const insideEvents = eventFamily(all);
