import { z } from "zod";

/** Arguments and answers of the station's verbs about images that were built here. */

/** What `--image` takes as a name in a registry, without a host or a tag: it can never be a path or an option. */
export const ImageName = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:[._-][a-z0-9]+)*$/, "must be lower-case letters and digits, with single dots, dashes or underscores between them");
export type ImageName = z.infer<typeof ImageName>;

/**
 * How many packages besides those that are named, in mmdebstrap's words: `custom` adds none, `extract` none and runs
 * nothing of them, `minbase` is the smallest system with apt.
 */
export const ImageVariant = z.enum(["extract", "custom", "essential", "apt", "minbase", "buildd", "important", "standard"]);

export const BuildImage = z.strictObject({
  distribution: z.literal("debian"),
  name: ImageName.default("debian"),
  /** Absent: this machine's own where it is a Debian, else the stable one. */
  suite: z
    .string()
    .max(64)
    .regex(/^[a-z][a-z0-9-]*$/, "must be the name of a release, such as bookworm")
    .optional(),
  packages: z
    .array(
      z
        .string()
        .max(128)
        .regex(/^[a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?$/, "must be names of packages"),
    )
    .max(1000)
    .default([]),
  variant: ImageVariant.default("minbase"),
  /** An archive instead of the distribution's own: its address, or a line of sources.list. */
  mirror: z
    .string()
    .max(2048)
    .regex(
      /^(?:(?:https?|copy):\/\/[^\s\0]*|deb [^\n\0]+)$/,
      "must be an address (http://, https:// or, for a folder, copy://) or a line of sources.list",
    )
    .optional(),
});
export type BuildImage = z.input<typeof BuildImage>;

export const ImageView = z.object({
  name: ImageName,
  distribution: z.string(),
  suite: z.string(),
  packages: z.array(z.string()),
  /** Of the root file system as it was packed. */
  digest: z.string(),
  bytes: z.number(),
  createdAt: z.iso.datetime(),
});
export type ImageView = z.infer<typeof ImageView>;
