import { z } from "zod";
import { ENV_CHARACTERS_MAX, PATH_CHARACTERS_MAX, recordOf } from "../bounded.ts";
import { EnvName, RuntimeName, SnapshotId, TemplateId } from "../ids.ts";
import { Owner } from "../token/owner.ts";

/** Templates: root file systems that were built here, with the settings of their image. */

/** `NAME` or `NAME:TAG`. It can never be a path or an option, and never begins like an id. */
export const TemplateName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,63})?$/,
    "must be 1 to 64 lower-case letters, digits, dots, dashes or underscores, optionally with a tag after a colon",
  )
  .refine((name) => !name.startsWith("tpl_"), "must not begin with tpl_, as ids do")
  .refine((name) => name !== "host" && name !== "scratch", "must not be host or scratch, which exist already");
export type TemplateName = z.infer<typeof TemplateName>;

const Text = z.string().max(ENV_CHARACTERS_MAX);
const Words = z.array(Text).max(4096);

/** What an image says about its programs. Sandboxes use the variables; the rest is kept for exports. */
export const TemplateConfig = z.object({
  env: recordOf(EnvName, Text, 1000),
  workdir: z.string().max(PATH_CHARACTERS_MAX),
  /** The user as the Dockerfile named it; null for root. */
  user: z.string().max(256).nullable(),
  entrypoint: Words.nullable(),
  command: Words.nullable(),
  labels: recordOf(z.string().max(1024), Text, 1000),
  ports: z.array(z.string().max(256)).max(1000),
  volumes: z.array(z.string().max(PATH_CHARACTERS_MAX)).max(1000),
  stopSignal: z.string().max(256).nullable(),
});
export type TemplateConfig = z.infer<typeof TemplateConfig>;

export const TemplateView = z.object({
  id: TemplateId,
  /** Sorted. A template without a name is found by its id. */
  names: z.array(TemplateName),
  owner: Owner,
  kind: z.enum(["dockerfile", "devcontainer", "image"]),
  runtime: RuntimeName,
  snapshot: SnapshotId,
  config: TemplateConfig,
  /** What the file asks for and the template does not have, each as a sentence. */
  ignored: z.array(z.string()),
  /** Identifies everything that the template was built from. */
  digest: z.string(),
  /** What the template's own steps wrote. */
  bytes: z.number(),
  createdAt: z.iso.datetime(),
});
export type TemplateView = z.infer<typeof TemplateView>;
