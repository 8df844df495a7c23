import { z } from "zod";
import { ENV_CHARACTERS_MAX, LongText, PathText, recordOf } from "../bounded.ts";
import { ImageText } from "../image/image-text.ts";
import { BuildImage } from "../image/image-verbs.ts";
import { owned } from "../label/list-filter.ts";
import { NetworkPolicy } from "../network/network.ts";
import { LimitsRequest } from "../sandbox/sandbox-fields.ts";
import { FolderOrigin, UploadId } from "../upload/upload.ts";
import { HidingRules } from "../workspace/workspace-guard.ts";
import { TemplateName, TemplateView } from "./template.ts";

/** Arguments and answers of the station's verbs for templates. */

/** A path below the context folder. */
export const ContextPath = z
  .string()
  .min(1)
  .max(4096)
  .refine(
    (path) => !path.startsWith("/") && !path.includes("\0") && !path.split("/").includes(".."),
    "must be a path below the folder, without ..",
  );

/** A name of a build argument, as Dockerfiles allow it. */
const ArgName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/, "must be a variable name: letters, digits and _");

export const BuildTemplate = z.strictObject({
  /** Moves a name that another template has. Absent: the template only has an id. */
  name: TemplateName.optional(),
  /** The folder of the station's machine that COPY and ADD read. Absent: an empty one. */
  context: PathText.optional(),
  /** An uploaded folder as the context. Overrides `context`. */
  uploaded: z.strictObject({ upload: UploadId, origin: FolderOrigin }).optional(),
  /** Default: `Dockerfile`, or else the folder's devcontainer.json. */
  file: ContextPath.optional(),
  /** The text of the Dockerfile, instead of `file`. */
  dockerfile: LongText.optional(),
  /** Builds a Debian system instead of a file, as `images.build` does. Its image gets the template's name. */
  debian: BuildImage.omit({ distribution: true, name: true }).optional(),
  /** The stage to build. Default: the last. */
  target: z.string().min(1).max(200).optional(),
  /** Values for ARG. They are stored with the template's steps: never pass secrets. */
  args: recordOf(ArgName, z.string().max(ENV_CHARACTERS_MAX), 1000).default({}),
  /** What FROM and COPY --from mean by a name, instead of an image of that name. */
  images: recordOf(z.string().min(1).max(200), ImageText, 100).default({}),
  /** What RUN and ADD may reach. */
  network: NetworkPolicy.default({ mode: "none" }),
  /** Files of the context to hide or to show, in addition to those that look like credentials. */
  hiding: HidingRules.prefault({}),
  /** The limits of each step's sandbox. `wallClockMs` limits one RUN. */
  limits: LimitsRequest.default({}),
  /** Whether to run every step again. */
  noCache: z.boolean().default(false),
  runtime: z.string().min(1).max(100).optional(),
});
export type BuildTemplate = z.input<typeof BuildTemplate>;

/** One instruction of a build that changes files. */
export const BuildStep = z.object({
  /** The stage's name or number. */
  stage: z.string(),
  /** The line in its file; 0 for an instruction of a devcontainer.json. */
  line: z.int(),
  /** The instruction, or its first characters. */
  text: z.string(),
  /** `cached`: its files were known, and nothing ran. */
  state: z.enum(["cached", "started", "ended"]),
});
export type BuildStep = z.infer<typeof BuildStep>;

export const BuildEvent = z.union([
  z.object({ step: BuildStep }),
  /** What a command printed; not redacted beyond the sandbox's secrets, and not bounded in total. */
  z.object({ output: z.string() }),
  z.object({ notice: z.string() }),
  z.object({ template: TemplateView }),
]);
export type BuildEvent = z.infer<typeof BuildEvent>;

export const ListTemplates = z.strictObject({ ...owned });
export type ListTemplates = z.input<typeof ListTemplates>;

export const TagTemplate = z.strictObject({ name: TemplateName });
export type TagTemplate = z.input<typeof TagTemplate>;

export const ImportTemplate = z.strictObject({
  name: TemplateName,
  /** An OCI layout, an archive or a name in a registry. */
  image: ImageText,
  runtime: z.string().min(1).max(100).optional(),
});
export type ImportTemplate = z.input<typeof ImportTemplate>;
