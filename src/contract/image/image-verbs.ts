import { z } from "zod";

/** Arguments and answers of the station's verbs for images that were built here. */

/** A registry name for `--image`, without a host or tag. It can never be a path or an option. */
export const ImageName = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:[._-][a-z0-9]+)*$/, "must be lower-case letters and digits, with single dots, dashes or underscores between them");
export type ImageName = z.infer<typeof ImageName>;

/**
 * How many packages to add beyond the named ones, as mmdebstrap defines them: `custom` adds none, `extract` adds none
 * and runs nothing from them, `minbase` is the smallest system with apt.
 */
export const ImageVariant = z.enum(["extract", "custom", "essential", "apt", "minbase", "buildd", "important", "standard"]);

export const BuildImage = z.strictObject({
  distribution: z.literal("debian"),
  name: ImageName.default("debian"),
  /** Default: this machine's own suite if it runs Debian, otherwise stable. */
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
  /** An archive to use instead of the distribution's own: a URL or a sources.list line. */
  mirror: z
    .string()
    .max(2048)
    .regex(
      /^(?:(?:https?|copy):\/\/[^\s\0]*|deb [^\n\0]+)$/,
      "must be a URL (http://, https:// or, for a folder, copy://) or a sources.list line",
    )
    .optional(),
});
export type BuildImage = z.input<typeof BuildImage>;

export const ImageView = z.object({
  name: ImageName,
  distribution: z.string(),
  suite: z.string(),
  packages: z.array(z.string()),
  /** Digest of the packed root file system. */
  digest: z.string(),
  bytes: z.number(),
  createdAt: z.iso.datetime(),
});
export type ImageView = z.infer<typeof ImageView>;
